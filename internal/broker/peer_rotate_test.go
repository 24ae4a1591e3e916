package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/redistest"
)

// rotating is a fleet whose brokers have clocks that a test sets ahead, and what they log.
type rotating struct {
	server  *redistest.Server
	brokers []*broker.Broker
	ahead   []*atomic.Int64
	log     lines
}

func (r *rotating) join(t *testing.T) *broker.Broker {
	ahead := new(atomic.Int64)
	b := join(t, r.server, func(c *broker.Config) {
		c.Properties["listeners"], c.Properties["muster.bootstrap.user"] = "SASL_PLAINTEXT://127.0.0.1:0", "root:sesame"
		c.Properties["connection.failed.authentication.delay.ms"] = "0"
		c.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, nil)
		c.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	})
	r.brokers, r.ahead = append(r.brokers, b), append(r.ahead, ahead)
	return b
}

func asRoot() kgo.Opt {
	return kgo.SASL(fscram.Auth{User: "root", Pass: "sesame"}.AsSha512Mechanism())
}

// rotate asks for another secret.
func rotate(t *testing.T, b *broker.Broker) error {
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	protocol.AskRotate(&req.UnknownTags)
	resp, err := req.RequestWith(t.Context(), client(t, b, asRoot()))
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Results[0].ErrorCode)
}

// transactAll makes transactions in all partitions until ctx ends, and counts them.
func transactAll(ctx context.Context, c *kgo.Client, done *atomic.Int64) error {
	for ctx.Err() == nil {
		if err := c.BeginTransaction(); err != nil {
			return err
		}
		for p := range int32(3) {
			if err := c.ProduceSync(context.Background(), &kgo.Record{Topic: "t", Partition: p, Value: []byte("v")}).FirstErr(); err != nil {
				return fmt.Errorf("produce: %w", err)
			}
		}
		if err := c.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		done.Add(1)
	}
	return nil
}

// TestTheSecretIsRotatedWhileTransactionsGoOn has three brokers ask each other about
// transactions, and write markers, all the time, while their clocks are set ahead one after
// the other.
func TestTheSecretIsRotatedWhileTransactionsGoOn(t *testing.T) {
	t.Parallel()
	r := &rotating{server: redistest.Single(t)}
	for range 3 {
		r.join(t)
	}
	c := client(t, r.brokers[0], asRoot(), kgo.TransactionalID("x"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Minute))
	produce(t, client(t, r.brokers[0], asRoot()), "t", 0, 1)
	ctx, stop := context.WithCancel(t.Context())
	var done atomic.Int64
	var failed error
	var running sync.WaitGroup
	running.Go(func() { failed = transactAll(ctx, c, &done) })
	defer running.Wait()
	defer stop()
	goOn := func(after string) {
		t.Helper()
		want := done.Load() + 5
		eventually(t, "transactions after "+after, func(ctx context.Context) error {
			if n := done.Load(); n < want {
				return fmt.Errorf("%d of %d", n, want)
			}
			for i, b := range r.brokers {
				if _, err := b.Ask(ctx, r.brokers[(i+1)%3].NodeID(), &kmsg.ListTransactionsRequest{Version: 1}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	goOn("the start")
	old := r.brokers[0].Image().Secrets.Current
	must(t, rotate(t, r.brokers[0]))
	goOn("the rotation")
	assert.ErrorIs(t, rotate(t, r.brokers[1]), kerr.InvalidRequest, "a rotation during a rotation")
	for _, ahead := range []time.Duration{metadata.SecretSwitch + time.Second, metadata.SecretOverlap + time.Second} {
		for i := range r.brokers {
			r.ahead[i].Store(int64(ahead))
			goOn(fmt.Sprintf("clock %d is %s ahead", i, ahead))
		}
	}
	stop()
	running.Wait()
	assert.True(t, failed == nil, "%v", failed)
	for _, b := range r.brokers {
		if n := b.FailedLogins(); n != 0 {
			t.Errorf("broker %d has refused %v logins", b.NodeID(), n)
		}
	}
	if lines := r.log.with("stranger", "does not know the secret", "was rotated"); len(lines) > 0 {
		t.Errorf("brokers refuse each other:\n%s", strings.Join(lines, ""))
	}
	b, list := r.brokers[0], &kmsg.ListTransactionsRequest{Version: 1}
	if _, err := peerWith(t, b, b.Addr(), old, list); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("by the old secret: %v", err)
	}
	if _, err := peerWith(t, b, b.Addr(), b.Image().Secrets.Current, list); err != nil {
		t.Errorf("by the new secret: %v", err)
	}
	// Users that do not exist look the same to a broker that does not know the first secret.
	if one, other := challenge(t, b, "nobody"), challenge(t, r.join(t), "nobody"); one != other || one == "" {
		t.Errorf("a user that does not exist has %s and %s", one, other)
	}
}

func TestASessionOfABrokerEndsWithTheSecretThatItCameBy(t *testing.T) {
	r := &rotating{server: redistest.Single(t)}
	b := r.join(t)
	l := broker.PeerLogin(b.Image().Secrets.Current)
	c := client(t, b, kgo.RequestRetries(0), kgo.RetryTimeout(time.Nanosecond),
		kgo.SASL(asBroker{fscram.Auth{User: l.Name, Pass: l.Password}.AsSha256Mechanism(), l.Mechanism}))
	ask := func() error {
		_, err := c.SeedBrokers()[0].Request(t.Context(), &kmsg.ListTransactionsRequest{Version: 1})
		return err
	}
	must(t, errors.Join(ask(), rotate(t, b), ask()))
	r.ahead[0].Store(int64(metadata.SecretOverlap + time.Second))
	assert.Error(t, ask(), "the session goes on")
	assert.True(t, len(r.log.with("the session of a broker has ended")) != 0, "no one is told why")
}
