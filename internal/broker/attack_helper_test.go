package broker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	fsasl "github.com/twmb/franz-go/pkg/sasl"
)

// stranger is a connection that many goroutines of a test have each their own of: it
// returns errors. It counts what the broker sends.
type stranger struct {
	net.Conn
	id            string // the client id of its requests
	frames, bytes int
}

func stranded(addr string) (*stranger, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &stranger{Conn: c}, c.SetDeadline(time.Now().Add(5 * time.Minute))
}

func (s *stranger) send(req kmsg.Request) error {
	_, err := s.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(s.id)).AppendRequest(nil, req, 7))
	return err
}

var errHalfFrame = errors.New("a frame ends in its middle")

// frame reads a frame.
func (s *stranger) frame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(s, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(s, body); err != nil {
		return nil, fmt.Errorf("%w: %w", errHalfFrame, err)
	}
	s.frames++
	s.bytes += len(body)
	return body, nil
}

// ask sends a request and reads the answer.
func (s *stranger) ask(req kmsg.Request) (kmsg.Response, error) {
	if err := s.send(req); err != nil {
		return nil, err
	}
	body, err := s.frame()
	if err != nil {
		return nil, err
	}
	return answerTo(req, body)
}

// answerTo reads the answer to a request from a frame.
func answerTo(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	skip := 4
	if resp.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		skip++
	}
	return resp, resp.ReadFrom(body[skip:])
}

// login goes through a whole login, and returns the code that it ends with. A client of
// SCRAM is left with an error of its own if the broker's last message is not right.
func (s *stranger) login(m fsasl.Mechanism) (int16, error) {
	shaken, err := s.ask(&kmsg.SASLHandshakeRequest{Version: 1, Mechanism: m.Name()})
	if err != nil || shaken.(*kmsg.SASLHandshakeResponse).ErrorCode != 0 {
		return 0, fmt.Errorf("handshake: %+v, %w", shaken, err)
	}
	session, message, err := m.Authenticate(context.Background(), "")
	for done := false; err == nil; {
		resp, asked := s.ask(&kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: message})
		if asked != nil {
			return 0, asked
		}
		answer := resp.(*kmsg.SASLAuthenticateResponse)
		if answer.ErrorCode != 0 || done {
			return answer.ErrorCode, nil
		}
		if done, message, err = session.Challenge(answer.SASLAuthBytes); done {
			return 0, err
		}
	}
	return 0, err
}

// wrongLogin connects, fails to log in, and sees the end of the connection.
func wrongLogin(addr string, m fsasl.Mechanism) (*stranger, error) {
	s, err := stranded(addr)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if code, err := s.login(m); err != nil || code != 58 {
		return nil, fmt.Errorf("a wrong login by %s: code %d, %w", m.Name(), code, err)
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("after a wrong login: %w", err)
	}
	return s, nil
}

// rightLogin connects, logs in, and is served.
func rightLogin(addr string, m fsasl.Mechanism) error {
	s, err := stranded(addr)
	if err != nil {
		return err
	}
	defer s.Close()
	if code, err := s.login(m); err != nil || code != 0 {
		return fmt.Errorf("code %d, %w", code, err)
	}
	_, err = s.ask(&kmsg.MetadataRequest{Version: 5})
	return err
}
