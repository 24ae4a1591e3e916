package leader

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/share/window"
	"muster/internal/store"
	"muster/internal/store/disk"
)

// transact appends a batch of a transaction, and ends that if it is said how.
func (w *world) transact(producer int64, seq int32, n int, end string) {
	w.t.Helper()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence, tmpl.Transactional = producer, 0, seq, true
	w.appendBatch(tmpl, n)
	if end == "" {
		return
	}
	done := make(chan *kerr.Error, 1)
	w.m.Get("t", 0).WriteMarker(w.t.Context(), partition.Marker{ProducerID: producer, Commit: end == "commit", CoordinatorEpoch: 1, Start: partition.NoStart}, func(err *kerr.Error) { done <- err })
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
}

func TestOnlyCommittedRecordsAreDeliveredWhereTheGroupWantsThat(t *testing.T) {
	for _, committed := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.set.Committed = committed
			w.transact(7, 0, 2, "commit") // 0 1, marker 2
			w.transact(8, 0, 2, "abort")  // 3 4, marker 5
			w.transact(8, 2, 2, "commit") // 6 7, marker 8
			w.append(1)
			w.transact(9, 0, 2, "")
			got := w.fetch("m")
			if !committed {
				assert.Equal(t, got, "0-11")
				return
			}
			assert.Equal(t, got, "0-2 5-9", "of what is committed, with markers")
			assert.Equal(t, w.ack("m", window.Accept, 3, 4), "INVALID_RECORD_STATE", "of what was aborted")
			assert.Equal(t, w.ack("m", window.Accept, 0, 1), "ok")
			assert.Equal(t, w.ack("m", window.Gap, 2, 2), "ok")
			assert.Equal(t, w.ack("m", window.Gap, 5, 5), "ok")
			assert.Equal(t, w.ack("m", window.Accept, 6, 9), "ok")
			wait := NewWait()
			defer wait.End()
			f := plainFetch
			f.Member, f.Wait = "m", wait
			w.l.Acquire(t.Context(), w.in(), f)
			for len(wait.C) > 0 {
				<-wait.C
			}
			w.transact(9, 2, 1, "commit")
			<-wait.C
			assert.Equal(t, w.fetch("m"), "10-13", "once the last transaction is committed")
		})
	}
}

func TestALogOfNothingButAbortedRecordsIsPassedOver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set.Committed = true
		for i := range int32(10) {
			w.transact(7, 2*i, 2, "abort")
		}
		w.append(1)
		got := w.fetch("m", func(f *Fetch) { f.MaxBytes = 1 }, most(1000))
		assert.Equal(t, got, "2-2", "the first marker")
		assert.Equal(t, w.fetch("m"), "5-5 8-8 11-11 14-14 17-17 20-20 23-23 26-26 29-30", "the rest")
	})
}

func TestTheStartOfTheLogMovesThatOfTheWindow(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 3 {
			w.append(2)
		}
		assert.Equal(t, w.fetch("m", most(3)), "0-2")
		_, err := w.m.Get("t", 0).DeleteBefore(t.Context(), 4)
		assert.True(t, err == nil, "%v", err)
		assert.Equal(t, w.ack("n", window.Accept, 0, 2), "ok", "what anyone says of deleted records")
		assert.Equal(t, w.ack("m", window.Accept, 0, 2), "ok", "what is said of deleted records does not matter")
		assert.Equal(t, w.fetch("m"), "4-5", "the rest")
	})
}

func TestOneFetchAtATimeReadsForAShareGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.append(3)
		w.fetch("m", most(0))
		gate := make(chan struct{})
		w.logs.mu.Lock()
		w.logs.gate = gate
		w.logs.mu.Unlock()
		got := make(chan string)
		go func() {
			f := plainFetch
			f.Member, f.MaxRecords = "m", 3
			first := w.l.Acquire(t.Context(), w.in(), f)
			got <- show(&first)
		}()
		synctest.Wait()
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "n", wait
		second := w.l.Acquire(t.Context(), w.in(), f)
		assert.Equal(t, show(&second), "", "while another reads")
		close(gate)
		assert.Equal(t, <-got, "0-2")
		<-wait.C
		second = w.l.Acquire(t.Context(), w.in(), f)
		assert.Equal(t, show(&second), "3-5", "afterwards")
	})
}

func TestWhoFindsAnotherReadingAndLeavesPassesItsTurnOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m", most(0))
		gate := make(chan struct{})
		w.logs.mu.Lock()
		w.logs.gate = gate
		w.logs.mu.Unlock()
		go w.l.Acquire(t.Context(), w.in(), plainFetch)
		synctest.Wait()
		f := plainFetch
		var waits []*Wait
		for i := range 3 {
			waits = append(waits, NewWait())
			f.Member, f.Wait = fmt.Sprint(i), waits[i]
			w.l.Acquire(t.Context(), w.in(), f)
		}
		close(gate)
		synctest.Wait()
		assert.Equal(t, len(waits[1].C)+len(waits[2].C), 0, "others that are woken with the first")
		began := time.Now()
		for _, wait := range waits {
			<-wait.C
			wait.End()
		}
		assert.Equal(t, time.Since(began), 0, "waited") // Else it was a lock that ran out.
	})
}

func TestAcquiredRecordsStayInTheirFile(t *testing.T) {
	s, err := disk.Open(t.TempDir(), disk.Options{})
	assert.Must(t, err)
	defer s.Close()
	m := partition.NewManager(partition.Options{Store: s, Self: 1, Logger: slog.New(slog.DiscardHandler)})
	defer m.Close(t.Context())
	before := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1})
	edit := before.Edit()
	edit.PutTopic(metadata.Topic{Name: "t", ID: topicID, Partitions: []metadata.Partition{{Leader: 1}}})
	assert.Must(t, m.Apply(t.Context(), before, edit.Image(), edit.Changed()))
	w := &world{t: t, m: m}
	for range 5 {
		w.append(2)
	}
	got := m.Get("t", 0).Read(t.Context(), partition.Fetch{LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1 << 20})
	read, err := scan(&got, 0, math.MaxInt64, false)
	assert.Must(t, err)
	assert.EqualSlices(t, read.batches, []window.Batch{{First: 0, Last: 1}, {First: 2, Last: 3}, {First: 4, Last: 5}, {First: 6, Last: 7}, {First: 8, Last: 9}})
	part := read.cut(got.Records, 3, 6)
	defer part.Release()
	assert.True(t, part.File != nil && part.Bytes == nil, "records are in memory")
	b, err := part.Load()
	assert.Must(t, err)
	var bases []int64
	for len(b) > 0 {
		batch, rest, err := record.Next(b)
		assert.Must(t, err)
		bases, b = append(bases, batch.BaseOffset()), rest
	}
	assert.EqualSlices(t, bases, []int64{2, 4, 6}, "batches that are sent for 3 to 6")
}

func TestCutsOfWhatWasReadBeginAndEndAtBatches(t *testing.T) {
	var all []byte
	for i := range int64(4) {
		tmpl := record.PlainTemplate()
		tmpl.BaseOffset = 10 + 3*i
		b, err := record.Build(tmpl, []record.Record{{Value: []byte("a")}, {OffsetDelta: 1, Value: []byte("b")}, {OffsetDelta: 2}})
		assert.Must(t, err)
		all = append(all, b...)
	}
	one := len(all) / 4
	for first := int64(10); first < 22; first++ {
		for last := first; last < 22; last++ {
			read, err := scan(&partition.Fetched{Records: store.BytesRecords(all)}, 10, math.MaxInt64, false)
			assert.Must(t, err)
			got := read.cut(store.BytesRecords(all), first, last)
			from, to := int(first-10)/3, int(last-10)/3+1
			if string(got.Bytes) != string(all[from*one:to*one]) || got.Len != len(got.Bytes) {
				t.Errorf("%d to %d: %d bytes", first, last, got.Len)
			}
		}
	}
}

func TestWhereOffsetsHaveHolesRangesHaveRecordsOnly(t *testing.T) {
	tmpl := record.PlainTemplate()
	tmpl.BaseOffset = 1000
	b, err := record.Build(tmpl, []record.Record{{OffsetDelta: 0}, {OffsetDelta: 1}, {OffsetDelta: 500}, {OffsetDelta: 501}, {OffsetDelta: 900}})
	assert.Must(t, err)
	read, err := scan(&partition.Fetched{Records: store.BytesRecords(b)}, 1001, math.MaxInt64, true)
	assert.Must(t, err)
	assert.EqualSlices(t, read.batches, []window.Batch{{First: 1001, Last: 1001}, {First: 1500, Last: 1501}, {First: 1900, Last: 1900}})
	assert.Equal(t, read.next, 1901)
}

func TestWindowsOfAllGroupsTogetherAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(40)
		w.l.budget = 10 * (partSize + loadSize)
		for i := range 100 { // Sessions without end: the members have vanished, and have all.
			group := fmt.Sprint("g", i)
			w.members.Store(group, true)
			w.initialize(group, 1, -1)
			w.pass(evictEvery)
			w.fetchOf(group, "vanished", most(1))
			assert.MustTrue(t, w.l.memory.Load() <= w.l.budget+partSize+loadSize+runSize, "%d bytes of %d", w.l.memory.Load(), w.l.budget)
		}
		w.pass(w.set.Lock)
		w.initialize("last", 1, -1)
		w.members.Store("last", true)
		assert.Equal(t, w.fetchOf("last", "m", most(1)), "0-0", "once the locks of others ran out")
	})
}

func TestAWindowGrowsNoMoreWhenMemoryIsScarce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(40)
		w.fetch("m", most(0))
		w.l.budget = 0
		var got []string
		for i := range 10 {
			got = append(got, w.fetch(fmt.Sprint(i), most(1)))
		}
		assert.EqualSlices(t, got, []string{"0-0", "1-1", "", "", "", "", "", "", "", ""})
		w.pass(w.set.Lock)
		assert.Equal(t, w.fetch("m", most(1)), "0-0*2", "once locks ran out")
	})
}

func TestManyMembersShareALogWithoutLossOrRepetition(t *testing.T) {
	inWorld(t, func(w *world) {
		const members, records = 20, 2000
		var mu sync.Mutex
		accepted := map[int64]int{}
		var all sync.WaitGroup
		for i := range members {
			all.Go(func() {
				f := plainFetch
				f.Member, f.MaxRecords = fmt.Sprint(i), 7
				for {
					mu.Lock()
					over := len(accepted) == records
					mu.Unlock()
					if over {
						return
					}
					wait := NewWait()
					f.Wait = wait
					got := w.l.Acquire(t.Context(), w.in(), f)
					if len(got.Ranges) == 0 {
						w.pass(1e6)
					}
					wait.End()
					got.Records.Release()
					for _, r := range got.Ranges {
						kind := window.Accept
						if (r.First+int64(r.Count))%5 == 0 && r.Count < 4 {
							kind = window.Release
						}
						if err := w.l.Acknowledge(w.in(), f.Member, []window.Acknowledgement{{First: r.First, Last: r.Last, Types: []int8{kind}}}, false).Wait(); err != nil {
							t.Error(err)
						}
						mu.Lock()
						for o := r.First; kind == window.Accept && o <= r.Last; o++ {
							accepted[o]++
						}
						mu.Unlock()
					}
				}
			})
		}
		for range records / 10 {
			w.append(10)
		}
		all.Wait()
		for o := range int64(records) {
			assert.Equal(t, accepted[o], 1, "accepts of %d", o)
		}
	})
}
