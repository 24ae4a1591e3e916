// Package demo runs a broker in memory with topics, producers and groups in every
// state that is worth a look: behind and catching up, behind for good, rebalancing again
// and again, stuck, waiting for a static member, for a transaction, for anybody at all.
//
//	Start:  broker → topics → committed offsets → producers, members, one goroutine each
//	Close:  members leave → producers stop → broker closes; nothing is left
//
// Nothing is made up. All is done by Kafka clients over the network, as anybody's would
// do it, and what the broker says of it are its own findings; some take minutes by their
// rules, and Groups tells which. What it holds is bounded: topics have a retention by
// size, and all rates are low. It knows nothing of the console or of commands.
package demo

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/broker"
)

// The addresses that a demo has if they are free.
const (
	DefaultListen = "127.0.0.1:9092"
	DefaultHTTP   = "127.0.0.1:9021"
)

// Options of a demo. The zero value is fine.
type Options struct {
	// Listen and HTTP are the addresses for Kafka clients and for the console, as
	// host:port. Empty for the usual ones, or free ones if someone has those.
	Listen, HTTP string
	// Seed decides what is in the records.
	Seed uint64
	// Logger receives the broker's log. Nothing is logged if it is nil.
	Logger *slog.Logger

	// Tests cannot wait for minutes.
	timing     *timing
	properties map[string]string
	clock      func() time.Time
}

// timing is how long things take.
type timing struct {
	joined, away  time.Duration // The member that comes and goes.
	lives, gone   time.Duration // The static member.
	session       time.Duration // Of the static member.
	rests         time.Duration // The group that catches up, when it has.
	open, between time.Duration // The long transaction, and between two of them.
	heartbeat     time.Duration // Between two of a member.
}

var usual = timing{
	joined: 20 * time.Second, away: 15 * time.Second,
	lives: 20 * time.Second, gone: 10 * time.Minute, session: 30 * time.Second,
	rests: 4 * time.Minute,
	open:  12 * time.Minute, between: time.Minute, heartbeat: 3 * time.Second,
}

// Demo is a running demo.
type Demo struct {
	broker  *broker.Broker
	logger  *slog.Logger
	timing  timing
	seed    uint64
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start starts a demo. When it returns, topics and groups are there, and members are on
// their way. The context is for starting only: to stop the demo, call Close.
func Start(ctx context.Context, o Options) (*Demo, error) {
	d := &Demo{logger: o.Logger, timing: usual, seed: o.Seed, stop: func() {}}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	if o.timing != nil {
		d.timing = *o.timing
	}
	cfg := broker.Config{Properties: properties(&o), Logger: o.Logger}
	if o.clock != nil {
		cfg.SetClock(o.clock)
	}
	b, err := broker.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	d.broker = b
	if err := d.fill(ctx); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("the demo's topics could not be filled: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	d.goProducers(background)
	for i := range groups {
		for _, run := range groups[i].run {
			d.running.Go(func() { run(background, d) })
		}
	}
	return d, nil
}

// properties are the settings of the broker. What it keeps for people is kept for half a
// day, since memory is all that there is.
func properties(o *Options) map[string]string {
	const halfDay = "43200000"
	props := map[string]string{
		"muster.store": "mem", "listeners": "PLAINTEXT://" + address(o.Listen, DefaultListen), "muster.http.listener": address(o.HTTP, DefaultHTTP),
		// Applications that start are together after a second, and not one by one.
		"group.initial.rebalance.delay.ms":  "1000",
		"log.retention.check.interval.ms":   "60000",
		"muster.group.history.max.bytes":    "16777216",
		"muster.group.journal.retention.ms": halfDay, "muster.transaction.journal.retention.ms": halfDay, "muster.audit.retention.ms": halfDay,
	}
	maps.Copy(props, o.properties)
	return props
}

// address returns where to listen: where it was asked for, else at the usual place if it
// is free, else at a port that is.
func address(asked, usual string) string {
	if asked != "" {
		return asked
	}
	for _, a := range []string{usual, "127.0.0.1:0"} {
		if l, err := net.Listen("tcp", a); err == nil {
			_ = l.Close()
			return l.Addr().String() // By number, so that the settings tell where it is.
		}
	}
	return usual // The broker says what is wrong.
}

// Addr returns the address for Kafka clients, as host:port.
func (d *Demo) Addr() string { return d.broker.Addr() }

// HTTP returns the address of the console, as host:port.
func (d *Demo) HTTP() string { return d.broker.HTTPAddr() }

// Close ends it all.
func (d *Demo) Close() error {
	d.stop()
	d.running.Wait()
	return d.broker.Close()
}

// fill makes the topics, the records that wait in them, and a committed offset for every
// group that has one from the start.
func (d *Demo) fill(ctx context.Context) error {
	client, err := d.client("demo", kgo.ProducerBatchMaxBytes(8<<10)) // Those who read slowly take batches one by one.
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for i := range topics {
		t := &topics[i]
		if _, err := admin.CreateTopic(ctx, t.partitions, 1, map[string]*string{"retention.bytes": &keptBytes}, t.name); err != nil {
			return err
		}
	}
	random := d.random(0)
	for i := range topics {
		t := &topics[i]
		for range t.backlog {
			client.Produce(ctx, t.record(random), nil)
		}
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	for i := range groups {
		if err := groups[i].begin(ctx, admin); err != nil {
			return err
		}
	}
	return nil
}

// random returns a source of its own for each who wants one, so that what one does does
// not depend on who else ran when.
func (d *Demo) random(of uint64) *rand.Rand { return rand.New(rand.NewPCG(d.seed, of)) }

// client makes a Kafka client. All of them want little: there are many, in one process.
func (d *Demo) client(id string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(d.broker.Addr()), kgo.ClientID(id), kgo.DisableClientMetrics(),
		kgo.FetchMaxWait(time.Second), kgo.FetchMinBytes(64 << 10), kgo.FetchMaxBytes(1 << 20), kgo.FetchMaxPartitionBytes(256 << 10),
		kgo.ProducerLinger(300 * time.Millisecond),
		kgo.MetadataMinAge(250 * time.Millisecond), kgo.MetadataMaxAge(time.Minute),
	}, opts...)...)
}

// wait waits, and says whether the demo goes on.
func wait(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
