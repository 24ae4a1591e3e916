package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/redistest"
)

// challenge returns salt and iterations that a broker tells for a name.
func challenge(t *testing.T, b *broker.Broker, name string) string {
	t.Helper()
	w := connect(t, b)
	w.handshake("SCRAM-SHA-256")
	_, told, _ := strings.Cut(string(w.token("n,,n="+name+",r=nonce").SASLAuthBytes), ",")
	return told
}

func TestAFleetWhereEverybodyLogsIn(t *testing.T) {
	s := redistest.Single(t)
	var brokers []*broker.Broker
	for range 2 {
		brokers = append(brokers, join(t, s, func(c *broker.Config) {
			c.Properties["listeners"], c.Properties["muster.bootstrap.user"] = "SASL_PLAINTEXT://127.0.0.1:0", "root:sesame"
		}))
	}
	login := kgo.SASL(fscram.Auth{User: "root", Pass: "sesame"}.AsSha512Mechanism())
	c := client(t, brokers[0], login, kgo.TransactionalID("x"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.TransactionTimeout(time.Minute))
	// The partitions are led by both, so the coordinator has to write markers to the other.
	eventually(t, "a transaction", func(ctx context.Context) error {
		if err := c.BeginTransaction(); err != nil {
			return err
		}
		err := c.ProduceSync(ctx, toT("a"), toT("b"), toT("c")).FirstErr()
		return errors.Join(err, c.EndTransaction(ctx, err == nil))
	})
	for i, b := range brokers {
		other := brokers[1-i]
		eventually(t, "an answer of the other broker", func(ctx context.Context) error {
			_, err := b.Ask(ctx, other.NodeID(), &kmsg.ListTransactionsRequest{Version: 1})
			return err
		})
	}
	if one, other := challenge(t, brokers[0], "nobody"), challenge(t, brokers[1], "nobody"); one != other || one == "" {
		t.Errorf("a user that does not exist has %s and %s", one, other)
	}
	must(t, brokers[0].SetPassword(t.Context(), "ann", "anns", sasl.SHA256))
	eventually(t, "the user to be known to the other", func(context.Context) error {
		return try(t, brokers[1], fscram.Auth{User: "ann", Pass: "anns"}.AsSha256Mechanism(), nil)
	})
}

func toT(value string) *kgo.Record { return &kgo.Record{Topic: "t", Value: []byte(value)} }
