package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/record"
	"muster/internal/store/mem"
	"muster/internal/watch"
	"muster/internal/watch/history"
	"muster/internal/watch/lag"
)

// rig is a source over partitions in memory, and shards of groups.
type rig struct {
	*Source
	t       *testing.T
	manager *partition.Manager
	image   *metadata.Image
	shards  map[int32]*group.Shard // nil while one loads
	away    bool
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, image: metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}), shards: map[int32]*group.Shard{}}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	r.manager = partition.NewManager(partition.Options{Store: mem.New(), Self: 1, Logger: logger})
	t.Cleanup(func() { _ = r.manager.Close(context.Background()) })
	r.Source = New(Options{
		Image: func() *metadata.Image { return r.image }, Partition: r.manager.Get, Groups: r, Away: func() bool { return r.away },
		CreateTopic: func(_ context.Context, name string) error { r.topic(name, 1); return nil },
		Count: func(_ context.Context, places []watch.PartitionOffset) []*lag.Count {
			return make([]*lag.Count, len(places))
		},
		Now: time.Now, Logger: logger,
	})
	return r
}

func (r *rig) topic(name string, partitions int) {
	edit := r.image.Edit()
	edit.PutTopic(metadata.Topic{Name: name, Partitions: slices.Repeat([]metadata.Partition{{Leader: 1}}, partitions)})
	before := r.image
	r.image = edit.Image()
	if err := r.manager.Apply(r.t.Context(), before, r.image, edit.Changed()); err != nil {
		r.t.Fatal(err)
	}
}

// write appends a batch.
func (r *rig) write(topic string, b record.Batch, err error) {
	r.t.Helper()
	done := make(chan error, 1)
	if err == nil {
		r.manager.Get(topic, 0).AppendOwn(r.t.Context(), b, func(_ int64, err error) { done <- err })
		err = <-done
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// records makes a batch of records with these times.
func records(times ...int64) (record.Batch, error) {
	out := make([]record.Record, len(times))
	for i, at := range times {
		out[i] = record.Record{OffsetDelta: int32(i), Timestamp: at, Value: []byte("x")}
	}
	return record.Build(record.PlainTemplate(), out)
}

func (r *rig) Led() (out []int32) {
	for i := range r.shards {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

func (r *rig) Look(shard int32, f func(machine.Core)) bool {
	if r.shards[shard] == nil {
		return false
	}
	f(r.shards[shard])
	return true
}

func TestLogsAreThoseOfPartitionsThatAreLed(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	b, err := records(1000, 2000, 3000)
	r.write("orders", b, err)
	orders := r.image.Topic("orders")
	got, ok := r.Log(orders, 0)
	if want := (watch.Log{Start: 0, End: 3, LastStable: 3, Bytes: int64(len(b))}); !ok || got != want {
		t.Errorf("%+v, %t, want %+v", got, ok, want)
	}
	if _, ok := r.Log(orders, 1); ok {
		t.Error("a partition that is not led is known")
	}
}

// dated is FirstTime without a limit on the time that a busy machine may take.
func (r *rig) dated(offset int64) (millis int64, ok bool) {
	for range 100 {
		r.dating = 0
		if millis, ok = r.FirstTime("orders", 0, offset); ok {
			break
		}
	}
	return millis, ok
}

// A record is as old as its batch says: linear between the first and the last.
func TestTheTimeOfARecordIsThatOfItsBatch(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	b, err := records(1000, 1000, 5000)
	r.write("orders", b, err)
	b, err = records(9000)
	r.write("orders", b, err)
	for offset, want := range map[int64]int64{0: 1000, 1: 3000, 2: 5000, 3: 9000} {
		if got, ok := r.dated(offset); !ok || got != want {
			t.Errorf("offset %d: %d, %t, want %d", offset, got, ok, want)
		}
	}
	r.dating = datingTime
	if _, ok := r.FirstTime("orders", 0, 1); ok {
		t.Error("it is looked for though the time of the pass is up")
	}
	r.Prepare(t.Context())
	if r.dating != 0 {
		t.Error("the next pass has no time")
	}
	r.away = true
	if _, ok := r.FirstTime("orders", 0, 1); ok || r.Count(t.Context(), make([]watch.PartitionOffset, 1)) != nil {
		t.Error("a store that is away is asked")
	}
}

// What ends a transaction is nothing to read. It is looked for once the partition rests.
func TestTheTailOfAPartitionAtRestIsKnown(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	b, err := records(1000)
	r.write("orders", b, err)
	ended, err := record.BuildMarker(7, 0, record.Marker{Commit: true}, 2000)
	r.write("orders", ended, err)
	p := r.manager.Get("orders", 0)
	if n := r.Tail(p, "orders", 0, 2); n != 0 {
		t.Errorf("at first sight %d", n)
	}
	rests := func(end int64) (n int64) {
		for range 100 {
			r.tails.began = time.Time{} // A busy machine may need more time than there is.
			if n = r.Tail(p, "orders", 0, end); n != 0 {
				break
			}
		}
		return n
	}
	if n := rests(2); n != 1 {
		t.Errorf("at rest %d", n)
	}
	b, err = records(3000)
	r.write("orders", b, err)
	if n := r.Tail(p, "orders", 0, 3); n != 0 {
		t.Errorf("after another record %d", n)
	}
	if r.tails.forget(func(string, int32) bool { return false }); len(r.tails.at) != 0 {
		t.Errorf("%d are remembered that this broker does not lead", len(r.tails.at))
	}
}

// What is written of a shard's groups can be read again from a time on; a partition is
// written once the groups of all its shards are loaded.
func TestHistoryIsWrittenAndRead(t *testing.T) {
	r := newRig(t)
	h := r.History()
	if led, of := h.Led(t.Context(), false); led != nil || of != nil {
		t.Error("there is a topic that nothing was written to")
	}
	r.shards[0] = nil
	if led, _ := h.Led(t.Context(), true); len(led) != 0 {
		t.Errorf("%v are led while a shard loads", led)
	}
	r.shards[0] = fullShard(t, 1, 1)
	led, of := h.Led(t.Context(), true)
	if !slices.Equal(led, []int32{0}) || of("billing") != 0 {
		t.Fatalf("%v are led", led)
	}
	now := time.Now().Add(-6 * time.Hour)
	for i := range 3 {
		value := history.Encode(&history.Record{Time: int64(i), Groups: []history.Group{{Name: fmt.Sprint("g", i)}}})
		if err := h.Write(t.Context(), 0, now.Add(time.Duration(i)*time.Hour), value); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[time.Duration]string{-time.Hour: "g0 g1 g2 ", 30 * time.Minute: "g1 g2 ", 5 * time.Hour: ""} {
		got := ""
		if err := h.Read(t.Context(), 0, now.Add(from), func(b []byte) {
			rec, err := history.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			got += rec.Groups[0].Name + " "
		}); err != nil || got != want {
			t.Errorf("from %v on: %q, %v, want %q", from, got, err, want)
		}
	}
}

// Leaders elsewhere are asked once each. What one does not answer stays unknown.
func TestLeadersElsewhereAreAsked(t *testing.T) {
	r := newRig(t)
	r.opts.Ask = func(_ context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
		if node == 3 {
			return nil, errors.New("away")
		}
		resp := kmsg.NewPtrListOffsetsResponse()
		for _, asked := range req.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = asked.Topic
			for i := range asked.Partitions {
				readers, asks := protocol.AsksBounds(&asked.Partitions[i].UnknownTags)
				if !asks || asked.Partitions[i].Timestamp != -1 {
					t.Errorf("%s is asked for %d", asked.Topic, asked.Partitions[i].Timestamp)
				}
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.Offset = asked.Partitions[i].Partition, 100
				protocol.SetBounds(&p.UnknownTags, protocol.Bounds{Start: 5, LastStable: 90, Bytes: 7, Tail: 2, Fetched: make([]int64, len(readers))})
				if p.Partition == 1 {
					p.ErrorCode = kerr.NotLeaderForPartition.Code
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil
	}
	got := r.Elsewhere(t.Context(), []watch.Question{
		{Topic: "orders", Partition: 0, Leader: 2, Readers: []watch.Reader{{ClientID: "app", Host: "h"}}}, {Topic: "orders", Partition: 1, Leader: 2},
		{Topic: "users", Partition: 0, Leader: 3}, {Topic: "users", Partition: 4, Leader: 2},
	})
	want := watch.Log{Start: 5, End: 100, LastStable: 90, Bytes: 7, Tail: 2}
	if !got[0].Known || got[0].Log != want || len(got[0].Fetched) != 1 || !got[0].Fetched[0].Known || got[1].Known || got[2].Known || !got[3].Known || got[3].Log != want {
		t.Errorf("%+v", got)
	}
}

// Groups are told with their facts once, and from then on when something happens to them.
func TestGroupsThatAreAsTheyWereAreToldWithoutFacts(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	r.shards[0] = fullShard(t, 3, 1)
	marks := r.Marks(0)
	look := func() (whole, same int) {
		r.Groups(t.Context(), r.image, func(some []watch.Group) {
			for i := range some {
				if some[i].Seen != nil {
					some[i].Quiet = lag.Resting
				}
			}
		}, func(some []watch.Group) {
			for i := range some {
				g := &some[i]
				if g.Same {
					same++
					continue
				}
				if whole++; g.Row.State != "Empty" || g.Row.Type != "classic" || len(g.Offsets) != 1 || g.Offsets[0].Topic != "orders" {
					t.Errorf("%+v", g)
				}
				g.Seen = &watch.Seen{}
			}
		})
		return whole, same
	}
	for i, want := range [][2]int{{3, 0}, {0, 3}} {
		if whole, same := look(); whole != want[0] || same != want[1] {
			t.Errorf("look %d: %d with facts, %d as they were", i, whole, same)
		}
	}
	key, value := (&schema.OffsetRecord{Group: "group-000001", Topic: "orders"}).Encode()
	b, err := record.Build(record.PlainTemplate(), []record.Record{{Key: key, Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	marks.Batch(b)
	if whole, same := look(); whole != 1 || same != 2 {
		t.Errorf("after a commit: %d with facts, %d as they were", whole, same)
	}
	r.Marks(0) // It is led anew.
	if whole, same := look(); whole != 3 || same != 0 {
		t.Errorf("led anew: %d with facts, %d as they were", whole, same)
	}
}
