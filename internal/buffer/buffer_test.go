package buffer

import "testing"

func TestBuffersHaveRoomForWhatIsAskedFor(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 10, 1<<10 + 1, 1 << 20, 1<<20 + 1, 1 << 21, 1<<21 + 1} {
		b, kept := Get(n)
		if len(b) != n || kept != nil && (len(*kept) < n || len(*kept)&(len(*kept)-1) != 0) || (kept == nil) != (n > 1<<20) {
			t.Errorf("%d bytes are %d, kept: %t", n, len(b), kept != nil)
		}
		Put(kept)
		if e := Empty(n); len(e) != 0 || cap(e) < n {
			t.Errorf("an empty buffer for %d bytes has %d and room for %d", n, len(e), cap(e))
		}
	}
	if c := Copy([]byte("abc")); string(c) != "abc" {
		t.Errorf("a copy is %q", c)
	}
}

// What is given back in part is whole for who gets it next, and bytes from elsewhere are
// never handed out.
func TestFreedBuffersAreWhole(t *testing.T) {
	for range 100 {
		Free(append(Empty(3000), "x"...))
		Free(make([]byte, 0, 3000))
		Free(nil)
		if b, kept := Get(4000); len(b) != 4000 || len(*kept) != 4096 {
			t.Fatalf("%d bytes in a buffer of %d", len(b), len(*kept))
		}
	}
}

// What is larger than Most is rare, and left to the garbage collector, also if its size is a
// power of two.
func TestBuffersLargerThanMostAreNotKept(t *testing.T) {
	Free(make([]byte, 2*Most))
	Put(nil)
	if e := Empty(Most); cap(e) != Most {
		t.Errorf("a buffer of %d bytes has room for %d", Most, cap(e))
	}
}
