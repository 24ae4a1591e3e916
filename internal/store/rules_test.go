package store

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster/internal/record"
)

func TestEpochsOfALog(t *testing.T) {
	var epochs []EpochStart
	for _, at := range []EpochStart{{2, 0}, {2, 5}, {1, 7}, {4, 9}, {5, 12}} {
		epochs = AddEpoch(epochs, at.Epoch, at.Start)
	}
	want := func(got []EpochStart, want ...EpochStart) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("epochs are %v, want %v", got, want)
		}
	}
	want(epochs, EpochStart{2, 0}, EpochStart{4, 9}, EpochStart{5, 12})
	want(TrimEpochs(epochs, 8), EpochStart{2, 8}, EpochStart{4, 9}, EpochStart{5, 12})
	want(TrimEpochs(epochs, 9), EpochStart{4, 9}, EpochStart{5, 12})
	want(TrimEpochs(epochs, 20), EpochStart{5, 20})
	// Epoch 5 has no record left: the next one takes its place.
	want(AddEpoch(TrimEpochs(epochs, 20), 6, 20), EpochStart{6, 20})
	want(epochs, EpochStart{2, 0}, EpochStart{4, 9}, EpochStart{5, 12})
}

func produced(t *testing.T, id int64, epoch int16, sequence int32, offset int64) record.Batch {
	t.Helper()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence, tmpl.BaseOffset = id, epoch, sequence, offset
	b, err := record.Build(tmpl, []record.Record{{Timestamp: 50}, {OffsetDelta: 1, Timestamp: 60}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func note(t *testing.T, m ProducerMap, b record.Batch, now int64) {
	t.Helper()
	if _, err := m.Note(b, now); err != nil {
		t.Fatal(err)
	}
}

func TestProducersRememberTheirLastBatches(t *testing.T) {
	m := NewProducerMap(nil)
	for i := range 7 {
		note(t, m, produced(t, 9, 3, int32(2*i), int64(10*i)), int64(1000+i))
	}
	note(t, m, produced(t, 4, 0, 0, 70), 2000)
	note(t, m, produced(t, record.NoProducerID, -1, -1, 80), 2000)
	var last []ProducerBatch
	for i := 2; i < 7; i++ {
		last = append(last, ProducerBatch{BaseSequence: int32(2 * i), LastSequence: int32(2*i + 1), BaseOffset: int64(10 * i), LastOffset: int64(10*i + 1), Timestamp: 60})
	}
	want := []Producer{
		{ID: 4, LastTimestamp: 2000, CoordinatorEpoch: -1, TxnFirst: NoTxn, Batches: []ProducerBatch{{LastSequence: 1, BaseOffset: 70, LastOffset: 71, Timestamp: 60}}},
		{ID: 9, Epoch: 3, LastTimestamp: 1006, CoordinatorEpoch: -1, TxnFirst: NoTxn, Batches: last},
	}
	got := m.List()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("producers are\n%+v, want\n%+v", got, want)
	}
	again := NewProducerMap(got)
	note(t, again, produced(t, 9, 4, 0, 90), 3000)
	if p := again[9]; p.Epoch != 4 || len(p.Batches) != 1 {
		t.Errorf("after a new epoch the producer is %+v", p)
	}
	note(t, again, produced(t, 4, 0, 2, 92), 3000)
	if !reflect.DeepEqual(got, want) {
		t.Error("a list that was given out has changed")
	}
}

func TestATombstoneGoesItsRetentionAfterThePassThatFirstLeftItClean(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	c := func(now int64) Compaction {
		return Compaction{Now: time.UnixMilli(now), DeleteRetention: 24 * time.Hour}
	}
	keep := func(cleaned Cleaned, now, offset int64) bool {
		p := NewCompactionPass(c(now), cleaned)
		return p.Keep(&record.Keyed{Meta: record.Meta{Offset: offset, HasKey: true}, Key: []byte("k"), Tombstone: true})
	}
	var cleaned Cleaned
	if !keep(cleaned, 1000*hour, 5) {
		t.Error("a tombstone that no pass has seen is gone, old as it is")
	}
	cleaned = cleaned.After(6, c(1000*hour))
	cleaned = cleaned.After(20, c(1010*hour))
	cleaned = cleaned.After(20, c(1023*hour)) // Went no further.
	if len(cleaned) != 2 {
		t.Errorf("passes are %v", cleaned)
	}
	for _, x := range []struct {
		now, offset int64
		want        bool
	}{
		{1023 * hour, 5, true}, {1024 * hour, 5, false}, {1024 * hour, 6, true},
		{1033 * hour, 19, true}, {1034 * hour, 19, false}, {2000 * hour, 20, true},
	} {
		if got := keep(cleaned, x.now, x.offset); got != x.want {
			t.Errorf("tombstone at %d kept at hour %d: %v, want %v", x.offset, x.now/hour, got, x.want)
		}
	}
}

func TestPassesOfCompactionAreFewAndNeverMakeATombstoneGoEarlier(t *testing.T) {
	const second = 1000
	pass := Compaction{DeleteRetention: time.Hour}
	var cleaned Cleaned
	first := map[int64]int64{}
	for i := range int64(2000) {
		now := i * 15 * second
		pass.Now = time.UnixMilli(now)
		cleaned = cleaned.After(i+1, pass)
		first[i] = now
		if len(cleaned) > maxCleanedPasses*5/4 {
			t.Fatalf("%d passes are kept", len(cleaned))
		}
		for back := range min(i, 300) {
			at, ok := cleaned.seen(i - back)
			late := at - first[i-back]
			if forgotten := first[i-back] <= now-pass.DeleteRetention.Milliseconds(); !ok || late < 0 || !forgotten && late > 3600*second/maxCleanedPasses+15*second {
				t.Fatalf("offset %d was clean at %d, and is said to have been at %d", i-back, first[i-back], at)
			}
		}
	}
	again, err := ParseCleaned(cleaned.String())
	if err != nil || !reflect.DeepEqual(again, cleaned) {
		t.Errorf("%q was read as %v, %v", cleaned, again, err)
	}
	for _, cut := range []int64{0, 1, 1998, 1999, 2000, 5000} {
		short := cleaned.Before(cut)
		if again, err := ParseCleaned(short.String()); err != nil || short.NextOffset() != min(cut, 2000) || again.NextOffset() != short.NextOffset() {
			t.Errorf("cut to %d, the log is clean up to %d: %q", cut, short.NextOffset(), short)
		}
	}
}

func TestParseCleanedRefusesNonsense(t *testing.T) {
	for _, text := range []string{"1", "1@", "@1", "x@1", "5@1 5@2", "5@2 6@1", "-1@1", "0@1", "9@-1"} {
		if c, err := ParseCleaned(text); err == nil {
			t.Errorf("%q was read as %v", text, c)
		}
	}
	if c, err := ParseCleaned(""); err != nil || c != nil {
		t.Errorf("nothing was read as %v, %v", c, err)
	}
}

func TestAPassKeepsTheNewestOfEachKey(t *testing.T) {
	p := NewCompactionPass(Compaction{}, nil)
	keyed := func(offset int64, key string) *record.Keyed {
		return &record.Keyed{Meta: record.Meta{Offset: offset, HasKey: key != "-"}, Key: []byte(strings.Trim(key, "-"))}
	}
	for i, key := range []string{"a", "b", "-", "a", ""} {
		p.NoteKey(keyed(int64(i), key))
	}
	var got []bool
	for i, key := range []string{"a", "b", "-", "a", "", "unseen"} {
		got = append(got, p.Keep(keyed(int64(i), key)))
	}
	if want := []bool{false, true, false, true, true, true}; !reflect.DeepEqual(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

func TestWhenALogIsWorthCompacting(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for _, x := range []struct {
		c                    Compaction
		dirty, total, oldest int64
		want                 bool
	}{
		{Compaction{}, 1, 100, 0, true},
		{Compaction{}, 0, 100, 0, false},
		{Compaction{MinDirtyRatio: 0.5}, 49, 100, 0, false},
		{Compaction{MinDirtyRatio: 0.5}, 50, 100, 0, true},
		{Compaction{MinDirtyRatio: 0.5, MaxLag: time.Minute}, 1, 100, 939_999, true},
		{Compaction{MinDirtyRatio: 0.5, MaxLag: time.Minute}, 1, 100, 940_000, false},
		{Compaction{MinDirtyRatio: 0.5, MaxLag: time.Minute}, 1, 100, record.NoTimestamp, false},
		{Compaction{MinDirtyRatio: 0.5, MaxLag: time.Minute}, 0, 100, 0, false},
	} {
		x.c.Now = now
		if got := x.c.Worth(x.dirty, x.total, x.oldest); got != x.want {
			t.Errorf("%+v: worth %v, want %v", x, got, x.want)
		}
	}
	c := Compaction{Now: now, MinLag: time.Minute}
	if c.Young(940_000) || !c.Young(940_001) || (Compaction{Now: now}).Young(940_001) {
		t.Error("min.compaction.lag.ms is not applied")
	}
}

// source is a file.
type source struct{ *strings.Reader }

func (source) Fd() (uintptr, bool) { return 0, false }

func TestRunsAreReadOneAfterTheOtherIntoTheSameRoom(t *testing.T) {
	var buf []byte
	kept := []byte("the engine's own")
	for _, tt := range []struct {
		run  Records
		want string
	}{
		{FileRecords(source{strings.NewReader("0123456789")}, 2, 5, func() {}), "23456"},
		{BytesRecords(kept), "the engine's own"},
		{HeldRecords([]byte("abc"), func() {}), "abc"},
		{Records{}, ""},
		{FileRecords(source{strings.NewReader("0123456789")}, 0, 10, func() {}), "0123456789"},
	} {
		got, err := tt.run.LoadInto(&buf)
		tt.run.Release()
		if err != nil || string(got) != tt.want {
			t.Errorf("%q (%v), want %q", got, err, tt.want)
		}
	}
	if cap(buf) < 10 || string(kept) != "the engine's own" {
		t.Errorf("room for %d bytes, and %q", cap(buf), kept)
	}
	run := FileRecords(source{strings.NewReader("0123456789")}, 0, 10, func() {})
	if n := testing.AllocsPerRun(100, func() { _, _ = run.LoadInto(&buf) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Entries come in the order of their markers, and are handed out in that of their first
// offsets: there are clients that take one after the other, and show what was aborted if
// one comes too late.
func TestAbortedTransactionsAreFoundInTheOrderOfTheirFirstOffsets(t *testing.T) {
	var l AbortedList
	l.Add(Aborted{1, 20, 30}, Aborted{2, 10, 40}, Aborted{3, 5, 50}, Aborted{4, 45, 60})
	for _, c := range []struct {
		from, next int64
		want       []Aborted
	}{
		{0, 100, []Aborted{{3, 5, 50}, {2, 10, 40}, {1, 20, 30}, {4, 45, 60}}},
		{31, 45, []Aborted{{3, 5, 50}, {2, 10, 40}}},
		{40, 46, []Aborted{{3, 5, 50}, {2, 10, 40}, {4, 45, 60}}},
		{61, 100, nil},
		{0, 5, nil},
	} {
		if got := l.Find(c.from, c.next); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("from %d on and below %d there are %v, want %v", c.from, c.next, got, c.want)
		}
	}
}
