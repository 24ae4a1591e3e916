package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

var librdkafkaLogin = loginClient{
	name: "librdkafka", tokens: true, again: true,
	produce: librdkafkaLoginProduce,
	consume: librdkafkaLoginConsume,
	refused: func(err error) bool {
		var kerr kafka.Error
		return errors.As(err, &kerr) && kerr.Code() == kafka.ErrAuthentication
	},
}

// librdkafkaLoginConfig returns the settings of a client, and more of them.
func librdkafkaLoginConfig(a *account, more kafka.ConfigMap) *kafka.ConfigMap {
	config := kafka.ConfigMap{
		"bootstrap.servers": a.addr, "log_level": 0, "statistics.interval.ms": 200, "reconnect.backoff.max.ms": 500,
	}
	for k, v := range more {
		config[k] = v
	}
	if a.trust != "" {
		config["ssl.ca.location"] = a.trust
	}
	if a.own != "" {
		config["ssl.certificate.location"], config["ssl.key.location"] = a.own, a.own
	}
	switch {
	case a.mechanism == "":
		config["security.protocol"] = "ssl"
		return &config
	case a.trust == "":
		config["security.protocol"] = "sasl_plaintext"
	default:
		config["security.protocol"] = "sasl_ssl"
	}
	config["sasl.mechanism"] = a.mechanism
	if a.mechanism != "OAUTHBEARER" {
		config["sasl.username"], config["sasl.password"] = a.user, a.password.get()
	}
	return &config
}

// librdkafkaHandle is a producer or a consumer.
type librdkafkaHandle interface {
	SetOAuthBearerToken(kafka.OAuthBearerToken) error
	SetSaslCredentials(user, password string) error
}

// librdkafkaFollow has a client know of changes of its password.
func librdkafkaFollow(a *account, h librdkafkaHandle) (forget func()) {
	if a.password == nil {
		return func() {}
	}
	return a.password.follow(func(password string) error { return h.SetSaslCredentials(a.user, password) })
}

// librdkafkaSeen takes in what a client tells besides records.
func librdkafkaSeen(a *account, h librdkafkaHandle, seen *librdkafkaCounts, event kafka.Event) error {
	switch e := event.(type) {
	case kafka.OAuthBearerTokenRefresh:
		return librdkafkaToken(a, h, seen)
	case *kafka.Stats:
		if !seen.renew.IsZero() && time.Now().After(seen.renew) {
			// It asks by itself when a fifth of a token's time is left, but looks only once a
			// second, which is late for tokens as short as those of tests.
			if err := librdkafkaToken(a, h, seen); err != nil {
				return err
			}
		}
		return seen.take(a, e.String())
	case kafka.Error:
		// It tries again by itself. Only who does not come in, or may not what it wants, ends.
		refused := e.Code() == kafka.ErrAuthentication && !a.patient.Load() || strings.Contains(e.Error(), "SSL alert")
		if refused || e.Code() == kafka.ErrGroupAuthorizationFailed || e.Code() == kafka.ErrClusterAuthorizationFailed {
			return e
		}
	}
	return nil
}

// librdkafkaToken gives the client a token.
func librdkafkaToken(a *account, h librdkafkaHandle, seen *librdkafkaCounts) error {
	token, ends, err := a.token()
	if err != nil {
		return err
	}
	seen.renew = time.Now().Add(time.Until(ends) / 2)
	return h.SetOAuthBearerToken(kafka.OAuthBearerToken{TokenValue: token, Expiration: ends, Principal: a.user})
}

// librdkafkaCounts is what a client has counted so far, and when it is to get a new token.
type librdkafkaCounts struct {
	logins, connected int64
	renew             time.Time
}

// take adds what is new in the statistics to what is seen of an account.
func (c *librdkafkaCounts) take(a *account, text string) error {
	var stats struct {
		Brokers map[string]struct {
			Connects int64            `json:"connects"`
			Requests map[string]int64 `json:"req"`
		} `json:"brokers"`
	}
	if err := json.Unmarshal([]byte(text), &stats); err != nil {
		return fmt.Errorf("librdkafka's statistics: %w", err)
	}
	var logins, connected int64
	for _, b := range stats.Brokers {
		logins += b.Requests["SaslHandshake"]
		connected += b.Connects
	}
	a.logins.Add(logins - c.logins)
	a.connected.Add(connected - c.connected)
	c.logins, c.connected = logins, connected
	return nil
}

func librdkafkaLoginProduce(ctx context.Context, a *account, topic string, next func() (string, bool)) error {
	p, err := kafka.NewProducer(librdkafkaLoginConfig(a, kafka.ConfigMap{"enable.idempotence": true, "linger.ms": 0}))
	if err != nil {
		return err
	}
	defer p.Close()
	defer librdkafkaFollow(a, p)()
	var seen librdkafkaCounts
	for value, more := next(); more; value, more = next() {
		m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny}, Value: []byte(value)}
		if err := p.Produce(m, nil); err != nil {
			return err
		}
		for acknowledged := false; !acknowledged; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case event := <-p.Events():
				if m, ok := event.(*kafka.Message); ok {
					acknowledged, err = true, m.TopicPartition.Error
				} else {
					err = librdkafkaSeen(a, p, &seen, event)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func librdkafkaLoginConsume(ctx context.Context, a *account, topic, group string, got func(string) bool) error {
	c, err := kafka.NewConsumer(librdkafkaLoginConfig(a, kafka.ConfigMap{
		"group.id": group, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200, "heartbeat.interval.ms": 200,
	}))
	if err != nil {
		return err
	}
	defer c.Close() // It commits and leaves the group.
	defer librdkafkaFollow(a, c)()
	if err := c.Subscribe(topic, nil); err != nil {
		return err
	}
	var seen librdkafkaCounts
	for ctx.Err() == nil {
		event := c.Poll(50)
		m, ok := event.(*kafka.Message)
		if !ok {
			if err := librdkafkaSeen(a, c, &seen, event); err != nil {
				return err
			}
			continue
		}
		if m.TopicPartition.Error != nil {
			return m.TopicPartition.Error
		}
		if !got(string(m.Value)) {
			return nil
		}
	}
	return ctx.Err()
}
