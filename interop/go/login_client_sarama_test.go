package interop

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

var saramaLogin = loginClient{
	name: "sarama", tokens: true, again: true,
	produce: saramaLoginProduce,
	consume: saramaLoginConsume,
	refused: func(err error) bool { return errors.Is(err, sarama.ErrSASLAuthenticationFailed) },
}

func saramaLoginConfig(a *account) (*sarama.Config, error) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Return.Successes = true
	// Sarama demands these three for an idempotent producer.
	cfg.Producer.Idempotent = true
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Net.MaxOpenRequests = 1
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	cfg.Consumer.Return.Errors = true
	cfg.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	cfg.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	cfg.Metadata.Retry.Max = 1
	cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, saramaDialer{a}
	if a.trust != "" {
		secure, err := tlsOf(a.trust, a.own)
		if err != nil {
			return nil, err
		}
		cfg.Net.TLS.Enable, cfg.Net.TLS.Config = true, secure
	}
	if a.mechanism == "" {
		return cfg, nil
	}
	s := &cfg.Net.SASL
	s.Enable, s.Mechanism, s.User = true, sarama.SASLMechanism(a.mechanism), a.user
	switch a.mechanism {
	case sarama.SASLTypeOAuth:
		s.TokenProvider = saramaTokens{a}
	case sarama.SASLTypePlaintext:
		s.Password = a.password.get()
	case sarama.SASLTypeSCRAMSHA256:
		s.Password = "asked for at each login"
		s.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{a: a, hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		s.Password = "asked for at each login"
		s.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{a: a, hash: scram.SHA512} }
	}
	return cfg, nil
}

func saramaLoginProduce(ctx context.Context, a *account, topic string, next func() (string, bool)) error {
	cfg, err := saramaLoginConfig(a)
	if err != nil {
		return err
	}
	p, err := sarama.NewSyncProducer([]string{a.addr}, cfg)
	if err != nil {
		return err
	}
	for value, more := next(); more && ctx.Err() == nil; value, more = next() {
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}); err != nil {
			_ = p.Close() // The first error counts.
			return err
		}
	}
	return errors.Join(p.Close(), ctx.Err())
}

func saramaLoginConsume(ctx context.Context, a *account, topic, group string, got func(string) bool) error {
	cfg, err := saramaLoginConfig(a)
	if err != nil {
		return err
	}
	g, err := sarama.NewConsumerGroup([]string{a.addr}, group, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for err := range g.Errors() {
			if !a.patient.Load() || !connectionLost(err) {
				cancel(err)
			}
		}
	}()
	h := &saramaLoginHandler{got: got}
	for !h.enough && ctx.Err() == nil {
		if err := g.Consume(ctx, []string{topic}, h); err != nil {
			cancel(err)
		}
	}
	if err := g.Close(); err != nil { // It leaves the group.
		return err
	}
	return context.Cause(ctx)
}

// connectionLost says whether an error is that a connection has ended, as it does when its
// session has, and the client was too late to log in again. sarama then connects anew.
func connectionLost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, sarama.ErrNotConnected)
}

// saramaLoginHandler reads the only partition.
type saramaLoginHandler struct {
	got    func(string) bool
	enough bool
}

func (h *saramaLoginHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h *saramaLoginHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *saramaLoginHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		more := h.got(string(m.Value))
		session.MarkMessage(m, "")
		if !more {
			h.enough = true // Consume returns after the claims have.
			return nil
		}
	}
	return nil
}

// saramaDialer counts connections.
type saramaDialer struct{ a *account }

func (d saramaDialer) Dial(network, addr string) (net.Conn, error) {
	d.a.connected.Add(1)
	return (&net.Dialer{Timeout: clientTimeout}).Dial(network, addr)
}

// saramaTokens counts logins by tokens: one is asked for at each.
type saramaTokens struct{ a *account }

func (t saramaTokens) Token() (*sarama.AccessToken, error) {
	token, _, err := t.a.token()
	t.a.logins.Add(1)
	return &sarama.AccessToken{Token: token}, err
}

// saramaScram is what sarama has its users bring along, as its examples do it. It takes the
// password of the moment.
type saramaScram struct {
	a    *account
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (s *saramaScram) Begin(user, _, authzID string) error {
	s.a.during.RLock()
	client, err := s.hash.NewClient(user, s.a.password.get(), authzID)
	if err != nil {
		s.a.during.RUnlock()
		return err
	}
	s.ClientConversation = client.NewConversation()
	return nil
}

func (s *saramaScram) Step(challenge string) (string, error) {
	answer, err := s.ClientConversation.Step(challenge)
	if err != nil || s.Done() {
		s.a.during.RUnlock()
	}
	if err == nil && s.Done() {
		s.a.logins.Add(1)
	}
	return answer, err
}
