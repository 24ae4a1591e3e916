package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"muster/internal/watch/history"
	"muster/internal/watch/lag"
)

// tape is a history in memory: groups belong to partitions by the length of their names.
type tape struct {
	exists  bool
	led     []int32
	records map[int32][][]byte
	times   []time.Time
	fail    error
	reads   int
}

func (h *tape) Led(_ context.Context, create bool) ([]int32, func(string) int32) {
	if h.exists = h.exists || create; !h.exists {
		return nil, nil
	}
	return h.led, func(group string) int32 { return int32(len(group) % 2) }
}

func (h *tape) Write(_ context.Context, partition int32, at time.Time, records [][]byte) error {
	if h.fail != nil {
		return h.fail
	}
	if h.records == nil {
		h.records = map[int32][][]byte{}
	}
	h.records[partition] = append(h.records[partition], records...)
	h.times = append(h.times, at)
	return nil
}

func (h *tape) Read(_ context.Context, partition int32, from time.Time, f func([]byte)) error {
	h.reads++
	for _, b := range h.records[partition] {
		if r, err := history.Decode(b); err == nil && time.UnixMilli(r.Time).Before(from) {
			continue
		}
		f(b)
	}
	return h.fail
}

// taped is a world with a history, and a group in each of its two partitions.
func taped(t *testing.T, h *tape) (w *world, log *bytes.Buffer) {
	w, log = newWorld(t), &bytes.Buffer{}
	w.w = New(Options{
		Node: self, Source: w, MaxBytes: 1 << 20, Now: func() time.Time { return w.now }, History: h, HistoryEvery: 10 * time.Minute,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	w.topic("orders", self, self)
	w.logs[orders0], w.logs[orders1] = Log{0, 1000, 1000, 1, 0}, Log{0, 1000, 1000, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 5, orders1: 7}, orders0), billing(map[Part]int64{orders0: 5}, orders0)}
	w.groups[0].Row.Name, w.groups[1].Row.Name = "aa", "bbb"
	return w, log
}

// written returns the records of a partition, and clears them.
func (h *tape) written(t *testing.T, partition int32) (out []*history.Record) {
	t.Helper()
	for _, b := range h.records[partition] {
		r, err := history.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	h.records[partition] = nil
	return out
}

func TestHistoryIsWrittenEveryTenMinutes(t *testing.T) {
	h := &tape{led: []int32{0, 1}}
	w, _ := taped(t, h)
	w.passes(60, nil)
	if h.exists {
		t.Fatal("the topic is created before there is something to write")
	}
	w.passes(3, nil)
	if !h.exists || len(h.written(t, 0)) != 1 || len(h.written(t, 1)) != 1 {
		t.Fatalf("after ten minutes: %+v", h)
	}
	w.groups[0].Offsets[1].Committed = 70
	w.passes(57, nil)
	if got := h.written(t, 0); got != nil {
		t.Errorf("before the next ten minutes: %+v", got)
	}
	w.passes(3, nil)
	got := h.written(t, 0)
	if len(got) != 1 || got[0].Whole || len(got[0].Groups) != 1 || got[0].Groups[0].Name != "aa" || len(got[0].Groups[0].Topics) != 1 ||
		!slices.Equal(got[0].Groups[0].Topics[0].Positions, []history.Position{{Partition: 1, Committed: 70}}) {
		t.Errorf("what changed: %+v", got)
	}
	if got := h.written(t, 1); got != nil {
		t.Errorf("nothing changed: %+v", got)
	}
	w.passes(6*6*60, nil)
	got = append(h.written(t, 0), h.written(t, 1)...)
	if len(got) != 2 || !got[0].Whole || len(got[0].Groups[0].Topics[0].Positions) != 2 || !got[1].Whole {
		t.Errorf("after six hours: %+v", got)
	}
}

func TestHistoryThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	h := &tape{exists: true, led: []int32{0, 1}, fail: errors.New("no disk")}
	w, log := taped(t, h)
	w.passes(70, nil)
	if !bytes.Contains(log.Bytes(), []byte("no disk")) {
		t.Errorf("nobody is told: %s", log)
	}
	h.fail = nil
	w.passes(60, nil)
	if got := h.written(t, 0); len(got) != 1 || len(got[0].Groups) != 1 {
		t.Errorf("%+v", got)
	}
	w.groups[0].Offsets[0].Committed++
	h.fail = errors.New("no disk")
	w.passes(60, nil)
	h.fail = nil
	w.passes(60, nil)
	if got := h.written(t, 0); len(got) != 1 || len(got[0].Groups) != 1 {
		t.Errorf("a change whose write failed: %+v", got)
	}
}

func TestTheEndOfAGroupIsWrittenBeforeItsSuccessor(t *testing.T) {
	h := &tape{exists: true, led: []int32{0, 1}}
	w, _ := taped(t, h)
	w.passes(70, nil)
	h.written(t, 0)
	w.w.deleted("aa")
	w.w.deleted("cc")
	w.passes(60, nil)
	got := h.written(t, 0)
	if len(got) != 2 || len(got[0].Groups) != 2 || !got[0].Groups[0].Deleted() || !got[0].Groups[1].Deleted() || got[1].Groups[0].Name != "aa" || got[1].Groups[0].Deleted() {
		t.Errorf("%+v", got)
	}
	w.groups[0].Offsets[0].Committed++
	w.passes(60, nil)
	if got := h.written(t, 0); len(got) != 1 || got[0].Groups[0].Deleted() {
		t.Errorf("it is written again: %+v", got)
	}
}

// When a partition comes back, groups of these names may be others.
func TestTheEndOfAGroupThatIsAnotherBrokersIsForgotten(t *testing.T) {
	h := &tape{exists: true, led: []int32{0, 1}}
	w, _ := taped(t, h)
	w.passes(70, nil)
	h.written(t, 0)
	w.w.deleted("aa")
	w.w.deleted("bbb")
	w.passes(1, nil)
	h.led = []int32{1} // Before it is due.
	w.passes(1, nil)
	h.led = []int32{0, 1}
	w.passes(120, nil)
	for _, r := range h.written(t, 0) {
		if slices.ContainsFunc(r.Groups, func(g history.Group) bool { return g.Deleted() }) {
			t.Errorf("%+v", r)
		}
	}
	if got := h.written(t, 1); !slices.ContainsFunc(got, func(r *history.Record) bool { return r.Groups[0].Deleted() }) {
		t.Errorf("of what it still leads: %+v", got)
	}
}

func TestHistoryIsReadOnceAPassHasSeenTheGroups(t *testing.T) {
	h := &tape{exists: true, led: []int32{0}, records: map[int32][][]byte{}}
	w, log := taped(t, h)
	past := func(ago time.Duration, lag int64) []byte {
		return history.Encode(&history.Record{Time: w.now.Add(-ago).UnixMilli(), Groups: []history.Group{{Name: "aa", Lag: lag}}})[0]
	}
	h.records[0] = [][]byte{past(50*time.Hour, 4), past(2*time.Hour, 3), {9, 9, 9}, past(time.Hour, 2)}
	history := func() (out []int64) {
		w.w.Read(func(t *lag.Tracker) {
			for _, p := range t.History("aa", 2) {
				out = append(out, p.Lag)
			}
		})
		return out
	}
	groups := w.groups
	w.groups = nil
	w.passes(1, nil) // The shard is loading.
	w.groups = groups
	w.passes(1, nil)
	if got := history(); len(got) < 2 || got[0] != 3 || got[1] != 2 {
		t.Errorf("%v", got)
	}
	if !bytes.Contains(log.Bytes(), []byte("unreadable=1")) {
		t.Errorf("nobody is told: %s", log)
	}
	w.passes(10, nil)
	if h.reads != 1 {
		t.Errorf("read %d times", h.reads)
	}
	h.led = nil
	w.passes(1, nil)
	h.led = []int32{0} // Another broker led it meanwhile.
	w.passes(2, nil)
	if h.reads != 2 {
		t.Errorf("read %d times", h.reads)
	}
}

func TestWhatIsNotWrittenYetIsWrittenAtTheEnd(t *testing.T) {
	h := &tape{exists: true, led: []int32{0, 1}}
	w, _ := taped(t, h)
	w.passes(2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.w.Run(ctx)
	if len(h.written(t, 0)) != 1 || len(h.written(t, 1)) != 1 {
		t.Errorf("%+v", h)
	}
	w.w.opts.History = nil
	w.passes(1, nil) // Without a history nothing is written, and nothing fails.
}
