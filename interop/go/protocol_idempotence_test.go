package interop

import (
	"math"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// newProducerID asks for a producer id.
func newProducerID(w *wire) int64 {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.ProducerID, req.ProducerEpoch = 4, -1, -1
	resp := ask[*kmsg.InitProducerIDResponse](w, req)
	assert.MustTrue(w.t, resp.ErrorCode == 0 && resp.ProducerID >= 0 && resp.ProducerEpoch == 0, "InitProducerId: %+v", resp)
	return resp.ProducerID
}

// sequenceStep is a batch of an idempotent producer and what must come of it.
type sequenceStep struct {
	name     string
	epoch    int16
	sequence int32
	records  int
	want     error
	offset   int64 // the base offset in the answer
}

func (s sequenceStep) run(w *wire, topic string, producer int64) {
	w.t.Helper()
	var p kmsg.ProduceResponseTopicPartition
	// A log far away may have been opened a moment ago, and a batch that is out of
	// order have overtaken one that was refused before that: it is to come again.
	waitFor(w.t, s.name+" to be decided", func() error {
		p = produce(w, topic, 0, batch{
			values: values(s.name, s.records), idempotent: true, producer: producer, epoch: s.epoch, sequence: s.sequence,
		})
		if p.ErrorCode == kerr.NotLeaderForPartition.Code && s.want == kerr.OutOfOrderSequenceNumber && storeKind != "disk" {
			return kerr.NotLeaderForPartition
		}
		return nil
	})
	wantCode(w.t, s.name, p.ErrorCode, s.want)
	if want := s.offset; s.want == nil && p.BaseOffset != want {
		w.t.Errorf("%s: base offset %d, want %d", s.name, p.BaseOffset, want)
	}
}

func TestIdempotentProducersAreDeduplicated(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "once", 1)
	w := dial(t, addr)
	id := newProducerID(w)
	for _, s := range []sequenceStep{
		{"first", 0, 0, 3, nil, 0},
		{"first again", 0, 0, 3, nil, 0},
		{"second", 0, 3, 1, nil, 3},
		{"a gap", 0, 5, 1, kerr.OutOfOrderSequenceNumber, 0},
		{"third", 0, 4, 1, nil, 4},
		{"first again, after two more", 0, 0, 3, nil, 0},
		{"first again, but of another size", 0, 0, 2, kerr.OutOfOrderSequenceNumber, 0},
		{"fourth", 0, 5, 1, nil, 5},
		{"fifth", 0, 6, 1, nil, 6},
		{"first again, the oldest of five", 0, 0, 3, nil, 0},
		{"sixth", 0, 7, 1, nil, 7},
		{"first again, no longer remembered", 0, 0, 3, kerr.OutOfOrderSequenceNumber, 0},
		{"second again, the oldest of five now", 0, 3, 1, nil, 3},
		{"new epoch, not from 0", 1, 8, 1, kerr.OutOfOrderSequenceNumber, 0},
		{"new epoch", 1, 0, 1, nil, 8},
		{"old epoch", 0, 8, 1, kerr.InvalidProducerEpoch, 0},
		{"new epoch goes on", 1, 1, 1, nil, 9},
	} {
		s.run(w, "once", id)
	}
	if recs := readAll(w, "once", 0); len(recs) != 10 {
		t.Errorf("the log has %d records, want 10", len(recs))
	}
	assert.True(t, newProducerID(w) != id, "two producers got the id %d", id)
}

func TestSequencesOfUnknownProducersStartAnywhereAndWrap(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "wrap", 1)
	w := dial(t, addr)
	id := newProducerID(w)
	// Where nothing was ever written, no one can have been forgotten (KAFKA-15591).
	sequenceStep{"not the first of an empty partition", 0, 5, 1, kerr.OutOfOrderSequenceNumber, 0}.run(w, "wrap", id)
	sequenceStep{"somebody else's", 0, 0, 1, nil, 0}.run(w, "wrap", newProducerID(w))
	for _, s := range []sequenceStep{
		{"up to the last but one", 0, math.MaxInt32 - 2, 2, nil, 1},
		{"across the end", 0, math.MaxInt32, 3, nil, 3},
		{"a gap", 0, 3, 1, kerr.OutOfOrderSequenceNumber, 0},
		{"across the end again", 0, math.MaxInt32, 3, nil, 3},
		{"after the end", 0, 2, 1, nil, 6},
	} {
		s.run(w, "wrap", id)
	}
}

func TestIdempotenceSurvivesRestarts(t *testing.T) {
	for name, stop := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			b := serve(t, data, steadyLease...)
			createTopic(t, b.addr(), "once", 1)
			w := dial(t, b.addr())
			id := newProducerID(w)
			sequenceStep{"first", 0, 0, 3, nil, 0}.run(w, "once", id)
			sequenceStep{"second", 0, 3, 1, nil, 3}.run(w, "once", id)
			// The producer stays known though its records go.
			offsets := kadm.Offsets{}
			offsets.AddOffset("once", 0, 4, -1)
			if deleted, err := kadm.NewClient(connect(t, b.addr())).DeleteRecords(t.Context(), offsets); err != nil || deleted.Error() != nil {
				t.Fatal(err, deleted.Error())
			}

			b.signal(stop)
			if err := b.wait(); err != nil && stop == syscall.SIGTERM {
				t.Fatal(err)
			}
			b = serve(t, data, steadyLease...)
			w = dial(t, b.addr())
			for _, s := range []sequenceStep{
				{"first after the restart", 0, 0, 3, nil, 0},
				{"second after the restart", 0, 3, 1, nil, 3},
				{"a gap", 0, 5, 1, kerr.OutOfOrderSequenceNumber, 0},
				{"third", 0, 4, 1, nil, 4},
				{"new epoch", 1, 0, 1, nil, 5},
				{"old epoch", 0, 5, 1, kerr.InvalidProducerEpoch, 0},
			} {
				s.run(w, "once", id)
			}
			assert.True(t, newProducerID(w) != id, "a producer id was given out twice: %d", id)
		})
	}
}
