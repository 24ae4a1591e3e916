package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/store/vfs"
)

// buildRound makes a round of frames.
func buildRound(h roundHead, frames ...frame) []byte {
	var r roundBuilder
	r.reset()
	for _, f := range frames {
		copy(r.add(f.kind, f.name, f.base, f.pos, len(f.data)), f.data)
	}
	size := len(r.buf)
	return r.finish(h)[:size]
}

// resum makes the checksum of a round right again.
func resum(b []byte) []byte {
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[roundSummedFrom:], crcTable))
	return b
}

func TestRoundsAreReadAsWritten(t *testing.T) {
	want := []frame{
		{kind: dataFrame, name: "orders-0", base: 42, pos: 4711, data: []byte("some bytes")},
		{kind: voidFrame, name: "clicks-7"},
		{kind: dataFrame, name: strings.Repeat("t", 249) + "-2147483647", base: 1 << 40, pos: 1<<31 - 1, data: bytes.Repeat([]byte{7}, 70000)},
	}
	b := buildRound(roundHead{use: 9, number: 3}, want...)
	h, size, err := decodeRoundHead(b)
	assert.MustTrue(t, err == nil && h == (roundHead{use: 9, number: 3}) && size == int64(len(b)), "%+v, %d bytes, %v", h, size, err)
	got, err := decodeRound(b)
	must(t, err)
	same := func(a, b frame) bool {
		return a.kind == b.kind && a.name == b.name && a.base == b.base && a.pos == b.pos && bytes.Equal(a.data, b.data)
	}
	assert.True(t, slices.EqualFunc(got, want, same), "got %d frames that are others than those written", len(got))
	for _, f := range got {
		assert.True(t, bytes.Equal(b[f.at:][:len(f.data)], f.data), "%s: the data are not at %d", f.name, f.at)
	}
}

func TestARoundFillsWholeBlocks(t *testing.T) {
	for _, size := range []int{0, 1, roundBlock - roundHeadSize - frameHeadSize - 1, roundBlock - roundHeadSize - frameHeadSize, 3 * roundBlock} {
		var r roundBuilder
		for range 2 { // The second time in what the first has left.
			r.reset()
			for i := range r.add(dataFrame, "t", 0, 0, size) {
				r.buf[len(r.buf)-1-i] = 0xff
			}
			used := len(r.buf)
			b := r.finish(roundHead{})
			if len(b)%roundBlock != 0 || len(b)-used >= roundBlock || slices.ContainsFunc(b[used:], func(x byte) bool { return x != 0 }) {
				t.Errorf("%d bytes become %d, of %d that are used", size, len(b), used)
			}
		}
	}
}

func TestNoBitOfARoundCanChange(t *testing.T) {
	b := buildRound(roundHead{use: 1}, frame{kind: dataFrame, name: "orders-0", data: []byte("some bytes")})
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, err := decodeRound(b); err == nil {
				t.Errorf("bit %d of byte %d is not noticed", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestRoundsThatLieAreRefused(t *testing.T) {
	f := frame{kind: dataFrame, name: "orders-0", data: []byte("some bytes")}
	at := roundHeadSize
	for name, change := range map[string]func([]byte) []byte{
		"more frames than there are":  func(b []byte) []byte { b[15]++; return b },
		"fewer frames than there are": func(b []byte) []byte { b[15]--; return b },
		"very many frames":            func(b []byte) []byte { b[12] = 0xff; return b },
		"a longer name":               func(b []byte) []byte { b[at+1] = 0xff; return b },
		"more data":                   func(b []byte) []byte { b[at+3] = 0xff; return b },
		"a negative base":             func(b []byte) []byte { b[at+7] = 0x80; return b },
		"a position beyond 2 GB":      func(b []byte) []byte { b[at+18] = 1; return b },
		"less than its size":          func(b []byte) []byte { return b[:len(b)-1] },
	} {
		if _, err := decodeRound(resum(change(buildRound(roundHead{}, f)))); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func FuzzRound(f *testing.F) {
	f.Add(buildRound(roundHead{use: 3, number: 1}, frame{kind: dataFrame, name: "orders-0", base: 1, pos: 2, data: []byte("x")}, frame{kind: voidFrame, name: "a-1"}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= roundHeadSize {
			binary.BigEndian.PutUint32(b, roundMagic)
			binary.BigEndian.PutUint32(b[8:], uint32(len(b)))
			resum(b)
		}
		frames, err := decodeRound(b)
		if err != nil {
			return
		}
		h, _, _ := decodeRoundHead(b)
		if again := buildRound(h, frames...); !bytes.Equal(again, b) {
			t.Errorf("%x is read as what is written as %x", b, again)
		}
	})
}

// A use of a file ends where the numbers of its rounds do: what follows was written before
// the file was cut short, or never counted.
func TestRoundsAfterAGapAreNotRead(t *testing.T) {
	fs := vfs.NewMem()
	f, err := fs.Create("0.journal")
	must(t, err)
	at := int64(0)
	for _, number := range []uint32{0, 1, 3, 4} {
		var r roundBuilder
		r.reset()
		r.add(voidFrame, fmt.Sprint("log-", number), 0, 0, 0)
		b := r.finish(roundHead{use: 5, number: number})
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		at += int64(len(b))
	}
	var got []string
	err = eachRound(&journalFile{File: f, size: at, use: 5}, func(_ int64, frames []frame) { got = append(got, frames[0].name) })
	assert.True(t, err == nil && slices.Equal(got, []string{"log-0", "log-1"}), "read %v (%v)", got, err)
}
