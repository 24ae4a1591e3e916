package partition

import (
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/disk"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

const testTopic = "t"

var testTopicID = metadata.TopicID{15: 9}

// rig is a manager with one topic of one partition.
type rig struct {
	*Manager
	t     *testing.T
	now   time.Time
	ahead atomic.Int64 // of now, where others look at the clock meanwhile
	image *metadata.Image
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRig(t *testing.T, s store.Store, set map[string]string) *rig {
	t.Helper()
	r := &rig{t: t, now: time.UnixMilli(1_700_000_000_000)}
	r.Manager = NewManager(Options{Store: s, Self: 1, Now: func() time.Time { return r.now.Add(time.Duration(r.ahead.Load())) }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	empty := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1})
	edit := empty.Edit()
	edit.PutTopic(metadata.Topic{Name: testTopic, ID: testTopicID, Partitions: []metadata.Partition{{Leader: 1}}, Set: set})
	r.image = edit.Image()
	before := *empty
	before.ClusterID = "" // As at a start: what the store holds stays.
	must(t, r.Apply(t.Context(), &before, r.image, edit.Changed()))
	return r
}

func (r *rig) part() *Partition { return r.Get(testTopic, 0) }

type producerAt struct {
	id    int64
	epoch int16
	seq   int32
}

var plain = producerAt{-1, -1, -1}

func (r *rig) batch(p producerAt, n int, values ...string) record.Batch {
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = p.id, p.epoch, p.seq
	var recs []record.Record
	for i := range n {
		rec := record.Record{OffsetDelta: int32(i), Timestamp: r.now.UnixMilli(), Value: []byte("v")}
		if i < len(values) {
			rec.Key, rec.Value = []byte(values[i]), []byte(values[i])
		}
		recs = append(recs, rec)
	}
	b, err := record.Build(tmpl, recs)
	must(r.t, err)
	return b
}

func (r *rig) append(b record.Batch, acks int16) Appended {
	r.t.Helper()
	done := make(chan Appended, 1)
	r.part().Append(r.t.Context(), b, Produce{Acks: acks}, func(a Appended) { done <- a })
	select {
	case a := <-done:
		return a
	case <-time.After(time.Minute):
		r.t.Fatal("append was never answered")
	}
	return Appended{}
}

func (r *rig) wantAppend(b record.Batch, offset int64) {
	r.t.Helper()
	if a := r.append(b, AcksAll); a.Err != nil || a.BaseOffset != offset {
		r.t.Fatalf("got %+v, want offset %d", a, offset)
	}
}

func (r *rig) wantRefused(b record.Batch, code *kerr.Error) {
	r.t.Helper()
	r.wantNot(b, Produce{Acks: AcksAll}, code)
}

func diskStore(t *testing.T, fs vfs.FS) store.Store {
	t.Helper()
	s, err := disk.Open("data", disk.Options{FS: fs})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestIdempotentProducerRules(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	r.wantAppend(r.batch(plain, 2), 0)
	// An unknown producer starts anywhere.
	for i := range 6 {
		r.wantAppend(r.batch(producerAt{7, 0, int32(42 + 2*i)}, 2), int64(2+2*i))
	}
	r.wantAppend(r.batch(producerAt{7, 0, 52}, 2), 12)                             // The last again.
	r.wantAppend(r.batch(producerAt{7, 0, 44}, 2), 4)                              // Fifth from the end.
	r.wantRefused(r.batch(producerAt{7, 0, 42}, 2), kerr.OutOfOrderSequenceNumber) // Sixth from the end: forgotten.
	r.wantRefused(r.batch(producerAt{7, 0, 55}, 1), kerr.OutOfOrderSequenceNumber) // A gap.
	r.wantRefused(r.batch(producerAt{7, 0, 53}, 1), kerr.OutOfOrderSequenceNumber) // Overlap.
	r.wantRefused(r.batch(producerAt{7, 1, 3}, 1), kerr.OutOfOrderSequenceNumber)  // A new epoch starts at 0.
	r.wantAppend(r.batch(producerAt{7, 1, 0}, 1), 14)                              //
	r.wantRefused(r.batch(producerAt{7, 0, 54}, 1), kerr.InvalidProducerEpoch)     // The old epoch is fenced.
	r.wantAppend(r.batch(producerAt{8, 0, 0}, 1), 15)                              // Producers are independent.
	r.wantAppend(r.batch(producerAt{9, 0, math.MaxInt32 - 1}, 3), 16)              // Sequences wrap:
	r.wantAppend(r.batch(producerAt{9, 0, 1}, 1), 19)                              // MaxInt-1, MaxInt, 0, then 1.
	r.wantAppend(r.batch(producerAt{9, 0, math.MaxInt32 - 1}, 3), 16)              // Also as a duplicate.
}

// Two batches may be under way to a partition that is being created, and the
// first be refused because it came too early. If the second were taken, the first
// could never be appended (KAFKA-15591).
func TestAPartitionThatWasNeverWrittenTakesOnlySequenceZero(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	r.now = r.now.Add(soon)
	r.wantRefused(r.batch(producerAt{7, 0, 17}, 1), kerr.OutOfOrderSequenceNumber)
	r.wantAppend(r.batch(producerAt{7, 0, 0}, 17), 0)
	r.wantAppend(r.batch(producerAt{7, 0, 17}, 1), 17)
	r.wantAppend(r.batch(producerAt{8, 0, 3}, 1), 18)
	// Nothing is left, but there was something: state may have expired with it.
	if _, err := r.part().DeleteBefore(t.Context(), -1); err != nil {
		t.Fatal(err)
	}
	r.wantAppend(r.batch(producerAt{9, 0, 3}, 1), 19)
}

func TestProducersExpire(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	r.wantAppend(r.batch(producerAt{1, 0, 0}, 1), 0)
	r.now = r.now.Add(23 * time.Hour)
	r.wantAppend(r.batch(producerAt{2, 0, 0}, 1), 1)
	r.now = r.now.Add(2 * time.Hour)
	r.part().expireProducers(r.now)
	if got := r.part().Producers(); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("left: %+v", got)
	}
	r.wantAppend(r.batch(producerAt{1, 0, 55}, 1), 2)
}

func TestBadBatchesAreRefused(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"max.message.bytes": "1000", "message.timestamp.before.max.ms": "60000"})
	big := r.batch(plain, 1, string(make([]byte, 1000)))
	r.wantRefused(big, kerr.MessageTooLarge)
	torn := r.batch(plain, 1)
	torn[len(torn)-1] ^= 1
	r.wantRefused(torn, kerr.CorruptMessage)
	old := r.batch(plain, 1)
	old[16] = 1
	r.wantRefused(old, kerr.InvalidRecord)
	early := r.batch(plain, 1)
	r.now = r.now.Add(2 * time.Minute)
	r.wantRefused(early, kerr.InvalidTimestamp)
	late := r.batch(plain, 1)
	r.now = r.now.Add(-2 * time.Hour)
	r.wantRefused(late, kerr.InvalidTimestamp)
}

func TestCompactedTopicsNeedKeys(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"cleanup.policy": "compact"})
	r.wantRefused(r.batch(plain, 2, "k"), kerr.InvalidRecord)
	r.wantAppend(r.batch(plain, 2, "k", "l"), 0)
}

func TestLogAppendTimeReplacesTheProducersTimestamp(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"message.timestamp.type": "LogAppendTime"})
	b := r.batch(plain, 2)
	r.now = r.now.Add(time.Hour)
	a := r.append(b, AcksAll)
	if a.Err != nil || a.LogAppendTime != r.now.UnixMilli() {
		t.Fatalf("got %+v", a)
	}
	hit, ok, _ := r.part().OffsetForTimestamp(t.Context(), r.now.UnixMilli(), 10)
	if !ok || hit.Offset != 0 || hit.Timestamp != r.now.UnixMilli() {
		t.Errorf("found %+v %v", hit, ok)
	}
}

func TestReadersSeeAcksAllRecordsOnlyOnceTheyAreDurable(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	release := make(chan struct{})
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			<-release
		}
		return nil
	})
	done := make(chan Appended, 1)
	r.part().Append(t.Context(), r.batch(plain, 3), Produce{Acks: AcksAll}, func(a Appended) { done <- a })
	if hw, end := r.part().HighWatermark(), r.part().LogEndOffset(); hw != 0 || end != 3 {
		t.Errorf("before the sync: high watermark %d, log end %d", hw, end)
	}
	if f := r.part().Read(t.Context(), Fetch{LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20, MinOne: true}); f.Records.Len != 0 {
		t.Error("a reader saw records that a loss of power would take away")
	}
	close(release)
	if a := <-done; a.Err != nil || r.part().HighWatermark() != 3 {
		t.Errorf("after the sync: %+v, high watermark %d", a, r.part().HighWatermark())
	}
	fs.SetHook(nil)
}

func TestAWaiterIsWokenByAnAppend(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	w := NewWaiter()
	r.part().Watch(w)
	r.wantAppend(r.batch(plain, 1), 0)
	select {
	case <-w.C:
	default:
		t.Error("not woken")
	}
	r.part().Unwatch(w)
	r.wantAppend(r.batch(plain, 1), 1)
	select {
	case <-w.C:
		t.Error("woken after Unwatch")
	default:
	}
}

func TestAFailedSyncIsReportedAndTheLogRecovers(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	r.wantAppend(r.batch(producerAt{1, 0, 0}, 1, "kept"), 0)
	fail := true
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync && fail {
			fail = false
			return errors.New("medium error")
		}
		return nil
	})
	if a := r.append(r.batch(producerAt{1, 0, 1}, 1, "lost"), AcksAll); !errors.Is(a.Err, kerr.KafkaStorageError) {
		t.Fatalf("got %+v", a)
	}
	if r.part().HighWatermark() != 1 {
		t.Errorf("high watermark %d", r.part().HighWatermark())
	}
	// The producer tries the same batch again, and it is there once.
	r.wantAppend(r.batch(producerAt{1, 0, 1}, 1, "again"), 1)
	if start, end := r.part().LogStartOffset(), r.part().LogEndOffset(); start != 0 || end != 2 {
		t.Errorf("log from %d to %d", start, end)
	}
}

func TestLeaderEpochChecks(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	p := r.part()
	p.epoch = 5
	for epoch, want := range map[int32]*kerr.Error{NoEpoch: nil, 5: nil, 4: kerr.FencedLeaderEpoch, 6: kerr.UnknownLeaderEpoch} {
		if got := p.CheckEpoch(epoch); got != want {
			t.Errorf("epoch %d: %v", epoch, got)
		}
	}
	epochs := []store.EpochStart{{Epoch: 1, Start: 0}, {Epoch: 3, Start: 10}, {Epoch: 5, Start: 20}}
	for epoch, want := range map[int32]EpochEnd{0: {NoEpoch, -1}, 1: {1, 10}, 2: {1, 10}, 3: {3, 20}, 4: {3, 20}, 5: {5, 30}, 9: {5, 30}} {
		if got := epochEnd(epochs, epoch, 30); got != want {
			t.Errorf("end of epoch %d: %+v, want %+v", epoch, got, want)
		}
	}
}

func TestDeleteBefore(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	for i := range 10 {
		r.wantAppend(r.batch(plain, 1), int64(i))
	}
	for _, c := range []struct {
		offset, want int64
		err          *kerr.Error
	}{{4, 4, nil}, {2, 4, nil}, {11, -1, kerr.OffsetOutOfRange}, {-2, -1, kerr.OffsetOutOfRange}, {-1, 10, nil}} {
		got, err := r.part().DeleteBefore(t.Context(), c.offset)
		if got != c.want || err != c.err {
			t.Errorf("DeleteBefore(%d) = %d, %v", c.offset, got, err)
		}
	}
}
