package main

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"runtime/debug"
	"strings"

	"github.com/Shopify/sarama"
	"github.com/xdg-go/scram"
)

type oldSarama struct{}

func (oldSarama) version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/Shopify/sarama" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}

func (oldSarama) config(w way) (*sarama.Config, error) {
	c := sarama.NewConfig()
	c.Version = sarama.V2_0_0_0 // The default has no headers of records.
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Metadata.Retry.Max = 1
	c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password = true, user, w.password
	c.Net.SASL.Mechanism = sarama.SASLMechanism(w.mechanism)
	switch w.mechanism {
	case sarama.SASLTypeSCRAMSHA256:
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &exchange{hash: sha256.New} }
	case sarama.SASLTypeSCRAMSHA512:
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &exchange{hash: sha512.New} }
	}
	if w.tls() {
		text, err := os.ReadFile(authority())
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		c.Net.TLS.Enable, c.Net.TLS.Config = true, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return c, nil
}

// exchange is the client's side of SCRAM, which sarama leaves to others.
type exchange struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (e *exchange) Begin(user, password, authzID string) error {
	c, err := e.hash.NewClient(user, password, authzID)
	if err == nil {
		e.ClientConversation = c.NewConversation()
	}
	return err
}

func (c oldSarama) produce(w way, topic string, values []string) error {
	config, err := c.config(w)
	if err != nil {
		return err
	}
	p, err := sarama.NewSyncProducer([]string{w.addr()}, config)
	if err != nil {
		return err
	}
	defer p.Close()
	for _, v := range values {
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(v)}); err != nil {
			return err
		}
	}
	return nil
}

func (c oldSarama) consume(w way, topic string, n int) ([]string, error) {
	config, err := c.config(w)
	if err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroup([]string{w.addr()}, topic, config)
	if err != nil {
		return nil, err
	}
	defer group.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	r := &reader{left: n, stop: stop}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{topic}, r); err != nil {
			return nil, err
		}
	}
	return r.values, nil
}

type reader struct {
	values []string
	left   int
	stop   func()
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		r.values = append(r.values, string(m.Value))
		s.MarkMessage(m, "")
		if r.left--; r.left == 0 {
			r.stop()
		}
	}
	return nil
}

// refused takes the end of the connection for a refusal: bare tokens have no other. With
// requests there is an error.
func (oldSarama) refused(err error) bool {
	return errors.Is(err, sarama.ErrOutOfBrokers) || errors.Is(err, sarama.ErrSASLAuthenticationFailed)
}
