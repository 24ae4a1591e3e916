package source

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/protocol"
	"muster/internal/watch"
)

// lookingAt is what is known of two topics.
func lookingAt() *looking {
	l := &looking{topics: map[string]*metadata.Topic{}, topicSet: map[string]struct{}{}, parts: 6}
	for _, name := range []string{"orders", "users"} {
		l.topics[name] = &metadata.Topic{Name: name, Partitions: make([]metadata.Partition, 3)}
	}
	return l
}

func assignment(topics ...kmsg.ConsumerMemberAssignmentTopic) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	a.Topics = topics
	return a.AppendTo(nil)
}

func TestWhatMembersSayIsReadAsFarAsItIsTrue(t *testing.T) {
	honest := assignment(kmsg.ConsumerMemberAssignmentTopic{Topic: "orders", Partitions: []int32{2, 0}}, kmsg.ConsumerMemberAssignmentTopic{Topic: "users", Partitions: []int32{1}})
	whole := []watch.Part{{Topic: "orders", Partition: 2}, {Topic: "orders", Partition: 0}, {Topic: "users", Partition: 1}}
	for _, c := range []struct {
		name string
		b    []byte
		want []watch.Part
	}{
		{"nothing", nil, nil},
		{"honest", honest, whole},
		{"cut short in a partition", honest[:len(honest)-6], whole[:2]},
		{"a topic and partitions that do not exist", assignment(kmsg.ConsumerMemberAssignmentTopic{Topic: "x", Partitions: []int32{0}}, kmsg.ConsumerMemberAssignmentTopic{Topic: "orders", Partitions: []int32{-1, 3, 1}}), []watch.Part{{Topic: "orders", Partition: 1}}},
		{"very many topics", []byte{0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 1, 'x'}, nil},
		{"fewer than none", []byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0, 1, 'x'}, nil},
		{"a long name", []byte{0, 0, 0, 0, 0, 1, 0x7f, 0xff, 'x'}, nil},
		{"very many partitions", binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x00\x00\x01\x00\x06orders"), 1<<30), nil},
	} {
		if got := lookingAt().assigned(c.b, nil, 100); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	again := assignment(kmsg.ConsumerMemberAssignmentTopic{Topic: "orders", Partitions: slices.Repeat([]int32{1}, 1000)})
	if got := lookingAt().assigned(again, nil, 6); len(got) != 6 {
		t.Errorf("of a partition that is named 1000 times there are %d", len(got))
	}
}

func TestSubscriptionsAreReadAsFarAsTheyAreTrue(t *testing.T) {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = []string{"users", "x", "orders", "users"}
	whole := m.AppendTo(nil)
	for _, c := range []struct {
		name string
		b    []byte
		most int
		read int
		want []string
	}{
		{"honest", whole, 100, 4, []string{"orders", "users"}},
		{"no more than is allowed", whole, 2, 2, []string{"users"}},
		{"cut short", whole[:6+7+3+2], 100, 2, []string{"users"}},
		{"nothing", nil, 100, 0, nil},
		{"very many", []byte{0, 0, 0x7f, 0xff, 0xff, 0xff}, 100, 0, nil},
	} {
		l := lookingAt()
		if n := l.subscribed(c.b, c.most); n != c.read {
			t.Errorf("%s: %d names are read", c.name, n)
		}
		if got := slices.Sorted(maps.Keys(l.topicSet)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// look is portion of groups that no one has seen before.
func (l *looking) look(s *group.Shard, names []string) int {
	roll := make([]rolled, len(names))
	for i := range names {
		roll[i].name = names[i]
	}
	return l.portion(s, roll, make([]watch.Group, len(names)), &taken{})
}

// fullShard has groups, each with so many offsets.
func fullShard(t testing.TB, groups, offsets int) *group.Shard {
	s := group.NewShard(group.DefaultConfig())
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Partitions: make([]metadata.Partition, offsets)})
	image := edit.Image()
	s.Step(machine.Input{Now: time.Now(), Image: image, Event: machine.Loaded{}})
	for g := range groups {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation = 8, fmt.Sprintf("group-%06d", g), -1
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic = "orders"
		for p := range offsets {
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset = int32(p), int64(g)
			topic.Partitions = append(topic.Partitions, part)
		}
		req.Topics = append(req.Topics, topic)
		fx := s.Step(machine.Input{Now: time.Now(), Image: image, MaxBatch: 1 << 20, Event: machine.Request{ID: machine.RequestID(g + 1), Msg: req}})
		if resp := fx.Replies[0].Msg.(*kmsg.OffsetCommitResponse); resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("%+v", resp)
		}
		s.ReleaseEffects()
	}
	return s
}

// A shard's lock is held for a portion of its groups, however many there are, and however
// many offsets they have.
func TestAShardIsLookedAtInPortions(t *testing.T) {
	for _, c := range []struct{ groups, offsets, most int }{{1000, 1, portionGroups}, {50, 200, 3}, {3, 5000, 1}} {
		s := fullShard(t, c.groups, c.offsets)
		l := &looking{}
		names := s.Names().List()
		seen, portions := 0, 0
		for rest := names; len(rest) > 0; portions++ {
			n := l.look(s, rest)
			if n == 0 || len(l.looks) > c.most {
				t.Fatalf("%+v: a portion has %d groups of %d names", c, len(l.looks), n)
			}
			for i := range l.looks {
				if l.looks[i].Name != rest[i] || len(l.looks[i].Offsets) != c.offsets {
					t.Fatalf("%+v: %s with %d offsets", c, l.looks[i].Name, len(l.looks[i].Offsets))
				}
			}
			seen += len(l.looks)
			rest = rest[n:]
		}
		if seen != c.groups || portions < c.groups/c.most {
			t.Errorf("%+v: %d groups in %d portions", c, seen, portions)
		}
	}
	s := fullShard(t, 3, 1)
	crowd := make([]string, 0, 3)
	for i := range 3 {
		crowd = append(crowd, fmt.Sprint("crowd-", i))
		for m := range portionItems / 2 {
			joinShard(t, s, crowd[i], fmt.Sprint("member-", m))
		}
	}
	l := &looking{}
	if n := l.look(s, crowd); n != 2 {
		t.Errorf("of groups with many members a portion has %d", n)
	}
	if n := l.look(s, []string{"gone", "group-000001", "gone too"}); n != 3 || len(l.looks) != 1 || l.looks[0].Name != "group-000001" {
		t.Errorf("%d of three, %+v", n, l.looks)
	}
}

// BenchmarkPortions says how long a shard's lock is held at most.
func BenchmarkPortions(b *testing.B) {
	s := fullShard(b, 10_000, 10)
	names, l := s.Names().List(), &looking{}
	longest := time.Duration(0)
	for b.Loop() {
		for rest := names; len(rest) > 0; {
			began := time.Now()
			rest = rest[l.look(s, rest):]
			longest = max(longest, time.Since(began))
		}
	}
	b.ReportMetric(float64(longest.Microseconds()), "µs-longest-lock")
}

// Where there is no time for all, each has its turn.
func TestStreamsAreAskedForInTurn(t *testing.T) {
	const n = 10 * refreshAtOnce
	var began [n]atomic.Int64
	from := 0
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		var some atomic.Int64
		from = inTurn(ctx, n, from, func(i int) {
			began[i].Add(1)
			if some.Add(1) == 2*refreshAtOnce {
				cancel()
			}
		})
		cancel()
	}
	for i := range began {
		if began[i].Load() == 0 {
			t.Errorf("number %d never had its turn", i)
		}
	}
	if from = inTurn(t.Context(), n, n-1, func(i int) { began[i].Store(0) }); from != 0 {
		t.Errorf("after all had their turn it goes on with %d", from)
	}
	for i := range began {
		if began[i].Load() != 0 {
			t.Errorf("number %d had no turn though there was time", i)
		}
	}
	if next := inTurn(t.Context(), 0, 5, func(int) { t.Error("there is nobody") }); next != 0 {
		t.Errorf("of nobody it goes on with %d", next)
	}
}

// What a leader says of fetches is so long ago, by this broker's clock.
func TestFetchesThatALeaderTellsOfAreSoLongAgo(t *testing.T) {
	now := time.Now()
	got := answer(9, protocol.Bounds{Start: 1, LastStable: 8, Bytes: 7, Fetched: []int64{0, 1500, protocol.NeverFetched, protocol.FetchNotKnown}}, now)
	if !got.Known || got.Log != (watch.Log{Start: 1, End: 9, LastStable: 8, Bytes: 7}) {
		t.Errorf("%+v", got)
	}
	if want := []watch.Fetched{{At: now, Known: true}, {At: now.Add(-1500 * time.Millisecond), Known: true}, {Known: true}, {}}; !slices.Equal(got.Fetched, want) {
		t.Errorf("%v, want %v", got.Fetched, want)
	}
}

// A request to another broker is bounded in partitions and in bytes.
func TestQuestionsToAPeerAreSplit(t *testing.T) {
	split := func(questions []watch.Question) (out []int) {
		places := make([]int, len(questions))
		for i := range places {
			places[i] = i
		}
		for len(places) > 0 {
			n := boundsFit(questions, places)
			out, places = append(out, n), places[n:]
		}
		return out
	}
	if got := split(make([]watch.Question, 4100)); !slices.Equal(got, []int{2000, 2000, 100}) {
		t.Errorf("of many partitions: %v", got)
	}
	many := make([]watch.Question, 300)
	for i := range many {
		for range 32 {
			many[i].Readers = append(many[i].Readers, watch.Reader{ClientID: strings.Repeat("x", 256), Host: strings.Repeat("y", 256)})
		}
	}
	if got := split(many); !slices.Equal(got, []int{64, 64, 64, 64, 44}) {
		t.Errorf("of many readers: %v", got)
	}
	long := watch.Question{Topic: strings.Repeat("t", 2*boundsBytes)}
	if got := split([]watch.Question{long, long}); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("of what is too long by itself: %v", got)
	}
}

// joinShard has someone join a group.
func joinShard(t *testing.T, s *group.Shard, name, client string) {
	t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType = 3, name, 30_000, 30_000, "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	in := machine.Input{Now: time.Now(), MaxBatch: 1 << 20, Event: machine.Request{ID: 1 << 40, ClientID: client, Msg: req}}
	copy(in.Random[:], client)
	s.Step(in)
	s.ReleaseEffects()
}
