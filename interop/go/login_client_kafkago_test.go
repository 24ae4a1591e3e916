package interop

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

var kafkaGoLogin = loginClient{
	name:    "kafka-go",
	produce: kafkaGoLoginProduce,
	consume: kafkaGoLoginConsume,
	refused: func(err error) bool { return errors.Is(err, kafka.SASLAuthenticationFailed) },
}

func kafkaGoMechanism(a *account) (sasl.Mechanism, error) {
	switch a.mechanism {
	case "PLAIN":
		return plain.Mechanism{Username: a.user, Password: a.password.get()}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, a.user, a.password.get())
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, a.user, a.password.get())
	}
	return nil, nil
}

func kafkaGoLoginProduce(ctx context.Context, a *account, topic string, next func() (string, bool)) (err error) {
	transport := &kafka.Transport{DialTimeout: clientTimeout} // By default it gives a login five seconds.
	defer transport.CloseIdleConnections()
	if transport.SASL, err = kafkaGoMechanism(a); err != nil {
		return err
	}
	if a.trust != "" {
		if transport.TLS, err = tlsOf(a.trust, a.own); err != nil {
			return err
		}
	}
	w := &kafka.Writer{
		Addr: kafka.TCP(a.addr), Topic: topic, RequiredAcks: kafka.RequireAll, Transport: transport, BatchTimeout: time.Millisecond, MaxAttempts: 2,
	}
	defer w.Close()
	for value, more := next(); more; value, more = next() {
		if err := w.WriteMessages(ctx, kafka.Message{Value: []byte(value)}); err != nil {
			return err
		}
	}
	return nil
}

func kafkaGoLoginConsume(ctx context.Context, a *account, topic, group string, got func(string) bool) (err error) {
	d := &kafka.Dialer{Timeout: clientTimeout}
	if d.SASLMechanism, err = kafkaGoMechanism(a); err != nil {
		return err
	}
	if a.trust != "" {
		if d.TLS, err = tlsOf(a.trust, a.own); err != nil {
			return err
		}
	}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{a.addr}, GroupID: group, Topic: topic, Dialer: d, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 200 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond, MaxWait: 500 * time.Millisecond,
	})
	for more := true; more; {
		m, err := r.FetchMessage(ctx)
		if err == nil {
			more = got(string(m.Value))
			err = r.CommitMessages(ctx, m) // It waits until that is done.
		}
		if err != nil {
			_ = r.Close() // The first error counts.
			return err
		}
	}
	return r.Close() // It leaves the group.
}
