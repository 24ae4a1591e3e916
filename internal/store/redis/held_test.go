package redis

import "testing"

// Clients that leave what they asked for unread do not fill the memory, and those that read
// go on meanwhile.
func TestReadsGetLessTheMoreIsUnread(t *testing.T) {
	var h heldBytes
	if got := h.take(1000); got != 1000 {
		t.Errorf("a small read gets %d bytes of 1000", got)
	}
	h.add(-1000)
	last := maxHeld
	for range 200 {
		got := h.take(1 << 30)
		if got > last || got < minRead {
			t.Fatalf("a read gets %d bytes, after one that got %d", got, last)
		}
		last = got
	}
	if held := h.Load(); held > maxHeld+200*minRead || last != minRead {
		t.Errorf("%d bytes are held, and the last read got %d", held, last)
	}
}
