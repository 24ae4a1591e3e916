package interop

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var franzLogin = loginClient{
	name: "franz-go", tokens: true, again: true,
	produce: franzLoginProduce,
	consume: franzLoginConsume,
	// franz-go gives up a token at the reason, as if that were no part of the mechanism, and
	// does not wait for the code.
	refused: func(err error) bool {
		return errors.Is(err, kerr.SaslAuthenticationFailed) || strings.Contains(err.Error(), "unexpected data in oauth response")
	},
}

// franzMechanism returns how franz-go logs in.
func franzMechanism(a *account) sasl.Mechanism {
	now := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: a.user, Pass: a.password.get()}, nil
	}
	switch a.mechanism {
	case "PLAIN":
		return plain.Auth{User: a.user, Pass: a.password.get()}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Sha256(now)
	case "SCRAM-SHA-512":
		return scram.Sha512(now)
	}
	return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
		token, _, err := a.token()
		return oauth.Auth{Token: token}, err
	})
}

// franzLoginClient connects, and asks the broker something, so that it is known at once
// whether the client may come in.
func franzLoginClient(ctx context.Context, a *account, opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append(opts, kgo.SeedBrokers(a.addr), kgo.WithHooks(franzSeen{a}), kgo.FetchMaxWait(500*time.Millisecond), kgo.DialTimeout(clientTimeout))
	if a.mechanism != "" {
		opts = append(opts, kgo.SASL(seenMechanism{franzMechanism(a), a}))
	}
	if a.trust != "" {
		secure, err := tlsOf(a.trust, a.own)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(secure))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	if err := cl.Ping(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

func franzLoginProduce(ctx context.Context, a *account, topic string, next func() (string, bool)) error {
	cl, err := franzLoginClient(ctx, a)
	if err != nil {
		return err
	}
	defer cl.Close()
	for value, more := next(); more; value, more = next() {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

func franzLoginConsume(ctx context.Context, a *account, topic, group string, got func(string) bool) error {
	cl, err := franzLoginClient(ctx, a, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(200*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close() // It leaves the group.
	for more := true; more; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			more = got(string(it.Next().Value)) && more
		}
	}
	return cl.CommitUncommittedOffsets(ctx)
}

// franzSeen counts connections.
type franzSeen struct{ a *account }

func (s franzSeen) OnBrokerConnect(kgo.BrokerMetadata, time.Duration, net.Conn, error) {
	s.a.connected.Add(1)
}

// seenMechanism counts logins, and lets them be held up.
type seenMechanism struct {
	sasl.Mechanism
	a *account
}

func (m seenMechanism) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	m.a.during.RLock()
	s, first, err := m.Mechanism.Authenticate(ctx, host)
	if err != nil {
		m.a.during.RUnlock()
		return nil, nil, err
	}
	return &seenSession{s, m.a}, first, nil
}

type seenSession struct {
	sasl.Session
	a *account
}

func (s *seenSession) Challenge(text []byte) (bool, []byte, error) {
	done, answer, err := s.Session.Challenge(text)
	if done || err != nil {
		s.a.during.RUnlock()
	}
	if done {
		s.a.logins.Add(1)
	}
	return done, answer, err
}
