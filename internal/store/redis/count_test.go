package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
	"muster/internal/store"
)

// counted is a stream whose records are counted.
type counted struct {
	t      *testing.T
	client rueidis.Client
	prefix string
	place  Place
}

func newCounted(t *testing.T, kind redistest.Kind) *counted {
	t.Helper()
	return &counted{
		t: t, client: redistest.Shared(t, kind).Client(t), prefix: redistest.Prefix(t),
		place: Place{TopicPartition: store.TopicPartition{Topic: "orders", Partition: 3}},
	}
}

func (c *counted) do(words ...string) {
	c.t.Helper()
	if err := c.client.Do(context.Background(), c.client.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build()).Error(); err != nil {
		c.t.Fatalf("%q: %v", words, err)
	}
}

// fill adds n entries of a size, one in every millisecond from one on.
func (c *counted) fill(from, n, size int) {
	c.t.Helper()
	key, value := logKeys(c.prefix, c.place.TopicPartition).stream, strings.Repeat("x", size)
	for n > 0 {
		some := min(n, 5000)
		commands := make(rueidis.Commands, some)
		for i := range commands {
			commands[i] = c.client.B().Xadd().Key(key).Id(strconv.Itoa(from+i)+"-0").FieldValue().FieldValue("v", value).Build()
		}
		for _, r := range c.client.DoMulti(context.Background(), commands...) {
			if err := r.Error(); err != nil {
				c.t.Fatal(err)
			}
		}
		from, n = from+some, n-some
	}
}

func (c *counted) from(offsets ...int64) []Count {
	c.t.Helper()
	places := make([]Place, len(offsets))
	for i, o := range offsets {
		places[i] = c.place
		places[i].Offset = o
	}
	counts, err := CountFrom(context.Background(), c.client, c.prefix, places)
	if err != nil {
		c.t.Fatal(err)
	}
	return counts
}

// wantFrom demands the count from an offset: a number, with a + if there may be
// more, or nothing.
func (c *counted) wantFrom(offset int64, want string) {
	c.t.Helper()
	n := c.from(offset)[0]
	got := ""
	if n.Known {
		got = strconv.FormatInt(n.Records, 10)
	}
	if n.AtLeast {
		got += "+"
	}
	if got != want {
		c.t.Errorf("from %d there are %q, not %q", offset, got, want)
	}
}

// milli is the first offset of a millisecond.
func milli(ms int64) int64 { return ms << defaultBits }

func TestRecordsAreCountedWhereOffsetsHaveGaps(t *testing.T) {
	for _, kind := range []redistest.Kind{redistest.KindSingle, redistest.KindCluster} {
		c := newCounted(t, kind)
		key := logKeys(c.prefix, c.place.TopicPartition).stream
		c.wantFrom(0, "0") // There is no stream.
		c.fill(1000, 10, 1)
		c.do("XADD", key, "1009-1", "v", "x")
		for offset, want := range map[int64]string{
			0: "11", milli(5): "11", milli(1000): "11", milli(1000) + 1: "10", milli(1001): "10",
			milli(1005): "6", milli(1009): "2", milli(1009) + 1: "1", milli(1009) + 2: "0", milli(1 << 40): "0",
		} {
			c.wantFrom(offset, want)
		}
		c.do("XADD", key, "1009-5000", "v", "x") // This has no offset.
		c.wantFrom(milli(1009)+1, "1")
		c.wantFrom(milli(1010), "0")
		c.do("XDEL", key, "1005-0", "1007-0", "1009-5000") // By a Redis client.
		c.wantFrom(milli(1004), "5")
		c.do("XTRIM", key, "MINID", "1004")
		c.wantFrom(milli(1001), "5") // What was deleted is not to be read.
		c.wantFrom(milli(1005), "4")
	}
}

func TestManyPlacesAreCountedAtOnce(t *testing.T) {
	c := newCounted(t, redistest.KindSingle)
	c.fill(1, 200, 1)
	var offsets []int64
	for ms := range int64(200) {
		offsets = append(offsets, milli(ms+1))
	}
	for i, n := range c.from(offsets...) {
		if n != (Count{Records: int64(200 - i), Known: true}) {
			t.Fatalf("from the %dth there are %+v", i, n)
		}
	}
	if got := c.from(); len(got) != 0 {
		t.Errorf("of no places there are %v", got)
	}
}

// A log keeps the layout and the bits that it was made with.
func TestCountsGoByWhatTheLogSaysOfItself(t *testing.T) {
	c := newCounted(t, redistest.KindSingle)
	c.fill(1000, 10, 1)
	meta := logKeys(c.prefix, c.place.TopicPartition).meta
	c.do("HSET", meta, "layout", "stream", "bits", "4")
	c.wantFrom(1005<<4, "5")
	c.place.SequenceBits = 12
	c.wantFrom(1005<<4, "5")
	c.do("HSET", meta, "bits", "12")
	c.wantFrom(1005<<12, "5")
	c.do("HSET", meta, "bits", "nonsense")
	if _, err := CountFrom(context.Background(), c.client, c.prefix, []Place{c.place}); err == nil {
		t.Error("bits that are no number are no error")
	}
	c.do("HSET", meta, "layout", "log")
	c.wantFrom(0, "")
}

func TestCountsEndSomewhere(t *testing.T) {
	c := newCounted(t, redistest.KindSingle)
	c.fill(1, CountLimit+500, 1)
	c.wantFrom(0, fmt.Sprint(CountLimit+500)) // The length is known.
	c.wantFrom(milli(502), fmt.Sprint(CountLimit-1))
	c.wantFrom(milli(500), fmt.Sprintf("%d+", CountLimit))
	// Two such counts are all that one call has time for.
	counts := c.from(milli(400), milli(400), milli(400), milli(CountLimit+500))
	full := Count{CountLimit, true, true}
	if counts[0] != full || counts[1] != full || counts[3] != (Count{1, false, true}) {
		t.Errorf("the counts are %+v", counts)
	}
	if n := counts[2]; n.Records < countFirst || n.Records > countTotal/10 || !n.AtLeast {
		t.Errorf("the count that came too late is %+v", n)
	}
}

// Large entries are read fewer at a time, and counted all the same.
func TestLargeRecordsAreCounted(t *testing.T) {
	c := newCounted(t, redistest.KindSingle)
	c.fill(1, 300, 20_000)
	c.wantFrom(milli(2), "299")
	k := logKeys(c.prefix, c.place.TopicPartition)
	one := counting{Place: c.place, keys: []string{k.stream, k.meta}, bits: defaultBits, after: "1-0"}
	if err := one.look(context.Background(), c.client, countSlice); err != nil {
		t.Fatal(err)
	}
	if n := one.count.Records; n < 1 || n > 20 { // A quarter of a megabyte, and the rest of what was read with it.
		t.Errorf("one look at records of 20 kB counted %d of them", n)
	}
}

func TestACountWithoutRedisFails(t *testing.T) {
	c := newCounted(t, redistest.KindSingle)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := CountFrom(ctx, c.client, c.prefix, []Place{c.place}); err == nil {
		t.Error("a count that nobody made is no error")
	}
	c.do("SET", logKeys(c.prefix, c.place.TopicPartition).stream, "no stream")
	if _, err := CountFrom(context.Background(), c.client, c.prefix, []Place{c.place}); err == nil {
		t.Error("the records of a string were counted")
	}
}
