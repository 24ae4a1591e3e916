package disk

import (
	"bytes"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// A round takes small batches from memory, and reads what is more than that from the
// segment. Whichever it was, it is there after a crash.
func TestARoundNeedNotReadWhatIsSmall(t *testing.T) {
	opts := smallJournal
	opts.journalSize, opts.journaledMost = 64*roundBlock, 4*tailMost
	for _, c := range []struct {
		name    string
		between []string // appended, and then made durable together
		reads   bool
	}{
		{"one batch", []string{"a"}, false},
		{"some batches", []string{"a", "b", "c"}, false},
		{"too large a batch", []string{strings.Repeat("x", tailMost)}, true},
		{"too much in all", []string{strings.Repeat("x", tailMost*2/3), strings.Repeat("y", tailMost*2/3)}, true},
		{"a small one after a large one", []string{strings.Repeat("x", tailMost), "a"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBedWith(t, store.LogConfig{}, opts)
			b.warm()
			b.store("first") // Whose log has been in the journal since.
			b.store("second")
			reads := b.counting(vfs.OpRead, logSuffix)
			for _, v := range c.between {
				b.must(b.append(v))
			}
			b.must(flush(b.log))
			if (reads() > 0) != c.reads {
				t.Errorf("%d reads", reads())
			}
			if n := len(b.log.(*handle).tail.bytes); n > 0 {
				t.Errorf("%d bytes are kept of what is durable", n)
			}
			b.must(b.append("more"))
			b.must(b.log.(*handle).syncNow())
			if n := len(b.log.(*handle).tail.bytes); n > 0 {
				t.Errorf("%d bytes are kept of what was synced", n)
			}
			b.store("last")
			b.fail(nil)
			b.crash((*vfs.Mem).CrashStrict)
			b.wantValues(append(append([]string{"first", "second"}, c.between...), "more", "last")...)
		})
	}
}

// What comes while a round is written is for the next one.
func TestWhatComesDuringARoundIsInTheNext(t *testing.T) {
	opts := smallJournal
	opts.journalSize = 64 * roundBlock
	b := newBedWith(t, store.LogConfig{}, opts)
	b.warm()
	b.store("first", "second")
	b.must(b.append("third"))
	during := false
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync && strings.HasSuffix(op.Name, journalSuffix) && !during {
			during = true
			b.must(b.append("fourth"))
		}
		return nil
	})
	b.must(flush(b.log))
	reads := b.counting(vfs.OpRead, logSuffix)
	b.must(flush(b.log))
	if !during || reads() > 0 {
		t.Errorf("a batch came: %t; %d reads", during, reads())
	}
	b.fail(nil)
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("first", "second", "third", "fourth")
}

func TestATailKeepsLittleMemory(t *testing.T) {
	seg := &segment{}
	var l tail
	l.add(seg, 0, make([]byte, 100))
	assert.True(t, l.bytes == nil, "a log that was never in the journal is remembered")
	l.on = true
	at := int64(0)
	for _, n := range []int{100, tailMost, 2000, 2000, 2000, 50} {
		l.add(seg, at, bytes.Repeat([]byte{1}, n))
		if at += int64(n); len(l.bytes) > tailMost || l.part(seg, 0, at) != nil && at > tailMost {
			t.Errorf("%d bytes are kept", len(l.bytes))
		}
	}
	l.forget(at)
	if cap(l.bytes) > tailKept {
		t.Errorf("a buffer of %d bytes is kept", cap(l.bytes))
	}
	l.add(seg, at, make([]byte, 10))
	assert.True(t, l.part(seg, at, at+10) != nil && l.part(&segment{}, at, at+10) == nil, "a part is known by its segment")
	l.forget(at + 5)
	l.add(seg, at+10, make([]byte, 10))
	assert.True(t, l.part(seg, at+5, at+20) != nil, "it was forgotten before all of it was durable")
	if l.forget(at + 20); len(l.bytes) > 0 {
		t.Errorf("%d bytes are kept, though all are durable", len(l.bytes))
	}
}

// A log that is opened again may go on somewhere else.
func TestATailKnowsWhatItMissed(t *testing.T) {
	seg, other := &segment{}, &segment{}
	for _, c := range []struct {
		name string
		seg  *segment
		at   int64
	}{{"further on", seg, 150}, {"further back", seg, 50}, {"in another segment", other, 100}} {
		l := tail{on: true}
		l.add(seg, 0, bytes.Repeat([]byte{1}, 100))
		l.add(c.seg, c.at, bytes.Repeat([]byte{2}, 100))
		assert.True(t, l.part(c.seg, 0, c.at+100) == nil, "%s: more is known than there was", c.name)
		if got := l.part(c.seg, c.at, c.at+100); !bytes.Equal(got, bytes.Repeat([]byte{2}, 100)) {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
