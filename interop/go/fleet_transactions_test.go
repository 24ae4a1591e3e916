package interop

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/redistest"
)

const (
	fleetCopies = 6   // brokers lost
	copiesEach  = 300 // records of each partition between two losses
)

// TestAFleetCopiesExactlyOnceThroughLosses has three brokers on one Redis and two
// members that copy in transactions. Brokers are killed in turn, and one is frozen
// for longer than its lease lasts: coordinators of transactions and groups and the
// leaders of what is copied move, with transactions in every state. Every record is
// copied once.
func TestAFleetCopiesExactlyOnceThroughLosses(t *testing.T) {
	onlyOn(t, "redis")
	for name, opts := range transactionVersions {
		t.Run(name, func(t *testing.T) { fleetCopiesThroughLosses(t, opts) })
	}
}

func fleetCopiesThroughLosses(t *testing.T, opts []kgo.Opt) {
	f := startFleet(t, redistest.Single(t).URL(), 3, "--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=100")
	createTopic(t, f.addrs[0], "in", 2)
	createTopic(t, f.addrs[0], "out", 2)
	c := &txnCopier{t: t, addrs: f.addrs, opts: opts}
	cl := f.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	stopA, stopB := c.member("a"), c.member("b")
	losses := often(fleetCopies)
	for n := range losses {
		c.fill(cl, n*copiesEach, (n+1)*copiesEach)
		waitFor(t, "copying to have begun", func() error {
			got, err := c.copied()
			if err == nil && got < (2*n+1)*copiesEach {
				err = fmt.Errorf("%d of %d records", got, (2*n+1)*copiesEach)
			}
			return err
		})
		victim := n % len(f.brokers)
		began := time.Now()
		if n == losses/2 {
			f.freeze(victim, func() { f.othersLead(victim) })
		} else {
			f.brokers[victim].kill()
			f.othersLead(victim)
			f.start(victim)
		}
		f.hasAll()
		t.Logf("loss %d took %s", n, time.Since(began).Round(time.Millisecond))
	}
	c.finish(losses * copiesEach)
	stopA()
	stopB()
	allDecided(t, strings.Join(f.addrs, ","), "out")
}

// othersLead waits until a broker that was lost leads nothing any more.
func (f *fleet) othersLead(victim int) {
	f.t.Helper()
	waitFor(f.t, "the others to lead", func() error {
		// A client of its own, which knows nothing of the lost broker.
		adm, err := admin(strings.Join(f.without(victim), ","))
		if err != nil {
			return err
		}
		defer adm.Close()
		m, err := adm.Metadata(f.t.Context())
		if err != nil {
			return err
		}
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				if p.Leader == int32(victim)+1 {
					return fmt.Errorf("%s-%d is still led by it", topic.Topic, p.Partition)
				}
			}
		}
		return nil
	})
}

// without returns the addresses of the other brokers.
func (f *fleet) without(victim int) (addrs []string) {
	for i, a := range f.addrs {
		if i != victim {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// TestBrokersTalkToEachOtherByTLS has two brokers whose only listener speaks TLS, so
// that a transaction needs them to trust each other.
func TestBrokersTalkToEachOtherByTLS(t *testing.T) {
	onlyOn(t, "redis")
	keystore := filepath.Join(t.TempDir(), "keystore.pem")
	pem, pool := newKeystore(t, 1)
	install(t, keystore, pem)
	url, prefix := redistest.Single(t).URL(), redistest.Prefix(t)
	var addrs []string
	for i := range 2 {
		addrs = append(addrs, fixedPort(t))
		startMuster(t, "--store", url, "--set", "muster.redis.prefix="+prefix, "--set", fmt.Sprintf("node.id=%d", i+1),
			"--set", "listeners=SSL://"+addrs[i], "--set", "ssl.keystore.location="+keystore)
	}
	secure := []kgo.Opt{kgo.SeedBrokers(addrs...), kgo.DialTLSConfig(&tls.Config{RootCAs: pool})}
	asking := connect(t, addrs[0], secure...)
	adm := kadm.NewClient(asking)
	waitFor(t, "both brokers to be in the metadata", func() error {
		req := kmsg.NewPtrMetadataRequest() // kadm would remember the answer for minutes.
		req.Topics = []kmsg.MetadataRequestTopic{}
		m, err := req.RequestWith(t.Context(), asking)
		if err == nil && len(m.Brokers) != 2 {
			err = fmt.Errorf("there are %d", len(m.Brokers))
		}
		return err
	})
	// With so many partitions and ids both brokers lead and coordinate some.
	if _, err := adm.CreateTopic(t.Context(), 8, 1, nil, "out"); err != nil {
		t.Fatal(err)
	}
	for id := range 6 {
		cl := connect(t, addrs[0], append(secure, kgo.TransactionalID(fmt.Sprint(id)), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		must(t, cl.BeginTransaction())
		for p := range int32(8) {
			must(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "out", Partition: p, Value: []byte("v")}).FirstErr())
		}
		must(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	}
	waitFor(t, "the markers", func() error {
		stable, err := adm.ListCommittedOffsets(t.Context(), "out")
		for _, o := range stable["out"] {
			if o.Offset != 12 {
				err = fmt.Errorf("partition %d is stable up to %d", o.Partition, o.Offset)
			}
		}
		return err
	})
}
