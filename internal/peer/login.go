package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Login is how a broker logs in to another: by SCRAM, whatever the mechanism is called, so
// that the password is not sent, and the other has to know it too.
type Login struct{ Mechanism, Name, Password string }

var errLoginLong = errors.New("the login does not end")

// login is how this broker logs in now; empty for not at all.
func (c *Client) login() Login {
	if c.opts.Login == nil {
		return Login{}
	}
	return c.opts.Login()
}

// logIn logs in. The steps are two; another broker that asks for more is none.
func (c *conn) logIn(ctx context.Context) error {
	l := c.login
	begin := kmsg.NewPtrSASLHandshakeRequest()
	begin.Version, begin.Mechanism = 1, l.Mechanism
	resp, err := c.roundTrip(ctx, begin)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.(*kmsg.SASLHandshakeResponse).ErrorCode); err != nil {
		return fmt.Errorf("%w: it lets no broker log in at this listener (%w)", errStranger, err)
	}
	mechanism := scram.Auth{User: l.Name, Pass: l.Password}.AsSha256Mechanism()
	exchange, message, err := mechanism.Authenticate(ctx, c.to.hostPort)
	if err != nil {
		return err
	}
	for range 2 {
		step := kmsg.NewPtrSASLAuthenticateRequest()
		step.Version, step.SASLAuthBytes = 2, message
		resp, err := c.roundTrip(ctx, step)
		if err != nil {
			return err
		}
		answer := resp.(*kmsg.SASLAuthenticateResponse)
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			return fmt.Errorf("%w: %w", errStranger, err)
		}
		done, next, err := exchange.Challenge(answer.SASLAuthBytes)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", errImpostor, err)
		case done:
			return nil
		}
		message = next
	}
	return errLoginLong
}
