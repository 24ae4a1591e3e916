package broker_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
)

// post is what the markers of coordinators go through: it can hold them up, has them
// arrive one after the other, and keeps copies.
type post struct {
	mu      sync.Mutex
	holding bool
	changed chan struct{} // closed when holding changes
	copies  []*kmsg.WriteTxnMarkersRequest
	losing  int // that many requests lose all markers but the first
}

func newPost(holding bool) *post { return &post{holding: holding, changed: make(chan struct{})} }

// through is for the configuration of a broker.
func (p *post) through(c *broker.Config) {
	c.Via(func(send broker.Send) broker.Send {
		return func(ctx context.Context, node int32, req kmsg.Request, done func(kmsg.Response, error)) {
			if m, ok := req.(*kmsg.WriteTxnMarkersRequest); ok {
				done(p.deliver(ctx, send, node, m))
				return
			}
			send(ctx, node, req, done)
		}
	})
}

// hold has markers wait from now on, or those that wait go on.
func (p *post) hold(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = yes
	close(p.changed)
	p.changed = make(chan struct{})
}

// pass keeps a copy of a marker and waits until it may go on.
func (p *post) pass(ctx context.Context, m *kmsg.WriteTxnMarkersRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copies = append(p.copies, copyOf(m))
	for p.holding {
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// seen returns copies of what was sent so far.
func (p *post) seen() (out []*kmsg.WriteTxnMarkersRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.copies {
		out = append(out, copyOf(m))
	}
	return out
}

// copyOf copies a request: whoever handles the original may change it.
func copyOf(m *kmsg.WriteTxnMarkersRequest) *kmsg.WriteTxnMarkersRequest {
	out := kmsg.NewPtrWriteTxnMarkersRequest()
	out.Version = out.MaxVersion()
	from := *m
	from.Version = out.Version
	if err := out.ReadFrom(from.AppendTo(nil)); err != nil {
		panic(err)
	}
	return out
}

// deliver sends the markers of a request one after the other, each when the one before
// is answered.
func (p *post) deliver(ctx context.Context, send broker.Send, node int32, m *kmsg.WriteTxnMarkersRequest) (kmsg.Response, error) {
	if err := p.pass(ctx, m); err != nil {
		return nil, err
	}
	all := m.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for i, one := range apart(m) {
		if i > 0 && p.loses() {
			break
		}
		var resp kmsg.Response
		var err error
		answered := make(chan struct{})
		send(ctx, node, one, func(r kmsg.Response, e error) {
			resp, err = r, e
			close(answered)
		})
		<-answered
		if err != nil {
			return nil, err
		}
		all.Markers = append(all.Markers, resp.(*kmsg.WriteTxnMarkersResponse).Markers...)
	}
	return all, nil
}

// loses says whether the rest of a request gets lost.
func (p *post) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing--
	return p.losing >= 0
}

// apart makes a request for each partition of a request.
func apart(m *kmsg.WriteTxnMarkersRequest) (out []*kmsg.WriteTxnMarkersRequest) {
	for _, marker := range m.Markers {
		for _, topic := range marker.Topics {
			for _, p := range topic.Partitions {
				one, to := marker, topic
				to.Partitions = []int32{p}
				one.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{to}
				req := kmsg.NewPtrWriteTxnMarkersRequest()
				req.Version, req.Markers = m.Version, []kmsg.WriteTxnMarkersRequestMarker{one}
				out = append(out, req)
			}
		}
	}
	return out
}

// ends returns where the partitions of t end, and up to where they are decided.
func ends(ctx context.Context, c *kgo.Client) (end, stable map[int32]int64, err error) {
	adm := kadm.NewClient(c)
	of := func(list func(context.Context, ...string) (kadm.ListedOffsets, error)) map[int32]int64 {
		out := map[int32]int64{}
		offsets, e := list(ctx, "t")
		if e == nil {
			e = offsets.Error()
		}
		for p, o := range offsets["t"] {
			out[p] = o.Offset
		}
		if err == nil {
			err = e
		}
		return out
	}
	return of(adm.ListEndOffsets), of(adm.ListCommittedOffsets), err
}

// wantCommitted waits until all is decided in t, and wants so many records of each value
// to be there for readers of committed ones. What t was created with does not count.
func wantCommitted(t *testing.T, b *broker.Broker, want map[string]int) {
	t.Helper()
	var end map[int32]int64
	c := client(t, b)
	eventually(t, "all to be decided", func(ctx context.Context) error {
		var stable map[int32]int64
		var err error
		if end, stable, err = ends(ctx, c); err == nil && !maps.Equal(end, stable) {
			err = fmt.Errorf("ends %v, decided up to %v", end, stable)
		}
		return err
	})
	got := map[string]int{}
	assert.Must(t, readUpTo(t.Context(), b, end, got), "read are %v", got)
	delete(got, "value 0")
	assert.EqualMaps(t, got, want, "committed")
}

// readUpTo counts the committed values of t.
func readUpTo(ctx context.Context, b *broker.Broker, end map[int32]int64, got map[string]int) error {
	from, left := map[int32]kgo.Offset{}, map[int32]bool{}
	for p, e := range end {
		if e > 0 {
			from[p], left[p] = kgo.NewOffset().AtStart(), true
		}
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": from}))
	if err != nil {
		return err
	}
	defer reader.Close()
	for len(left) > 0 {
		fs := reader.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return err
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				got[string(r.Value)]++
			}
			if r.Offset == end[r.Partition]-1 {
				delete(left, r.Partition)
			}
		})
	}
	return nil
}

// leaderOf returns the broker that leads a partition, and the others.
func leaderOf(t *testing.T, brokers []*broker.Broker, topic string, partition int32) (leader *broker.Broker, others []*broker.Broker) {
	t.Helper()
	at := brokers[0].Image().Topic(topic).Partitions[partition].Leader
	for _, b := range brokers {
		if b.NodeID() == at {
			leader = b
		} else {
			others = append(others, b)
		}
	}
	assert.MustTrue(t, leader != nil, "nobody leads %s-%d", topic, partition)
	return leader, others
}

// lose stops a broker, and waits until the others lead.
func lose(t *testing.T, b *broker.Broker, others []*broker.Broker) {
	t.Helper()
	must(t, b.Close())
	eventually(t, "the others to lead", func(context.Context) error {
		for _, o := range others {
			for _, topic := range []string{"t", metadata.TransactionsTopic, metadata.OffsetsTopic} {
				for i, p := range o.Image().Topic(topic).Partitions {
					if p.Leader == b.NodeID() || p.Leader < 0 {
						return fmt.Errorf("%s-%d has leader %d", topic, i, p.Leader)
					}
				}
			}
		}
		return nil
	})
}

// wantState waits until the coordinator of an id knows it to be in a state.
func wantState(t *testing.T, b *broker.Broker, id, want string) {
	t.Helper()
	c := client(t, b)
	eventually(t, "state of "+id, func(ctx context.Context) error {
		got, err := states(ctx, c, id)
		if err == nil && got[id] != want {
			err = fmt.Errorf("it is %s, not %s", got[id], want)
		}
		return err
	})
}
