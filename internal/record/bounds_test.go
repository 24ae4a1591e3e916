package record

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"muster/internal/assert"
)

// A small batch that unpacks to very much is refused as soon as that is known.
func TestNoMoreIsUnpackedThanABatchMayHold(t *testing.T) {
	src := bytes.NewReader(make([]byte, 1<<20))
	if _, err := readBounded(src, 1000); !errors.Is(err, ErrTooLarge) || src.Len() < 1<<19 {
		t.Errorf("%v, and %d bytes are left", err, src.Len())
	}
	if b, err := readBounded(bytes.NewReader(make([]byte, 1000)), 1000); err != nil || len(b) != 1000 {
		t.Errorf("what just fits: %d bytes, %v", len(b), err)
	}
	for name, read := range map[string]func(*scanner){
		"skipped": func(s *scanner) { s.skip(10) },
		"copied":  func(s *scanner) { s.copy(io.Discard, 10) },
	} {
		for n, want := range map[int64]error{MaxDecompressed - 10: nil, MaxDecompressed - 9: ErrTooLarge} {
			s := &scanner{r: bufio.NewReader(bytes.NewReader(make([]byte, 20))), n: n}
			if read(s); !errors.Is(s.err, want) {
				t.Errorf("10 bytes after %d are %s: %v", n, name, s.err)
			}
		}
	}
}

// Packed batches take their turns to be unpacked, so that who sends them leaves some of the
// processor to others.
func TestPackedBatchesTakeTurnsToBeUnpacked(t *testing.T) {
	for _, c := range []Codec{None, Gzip, Snappy, LZ4, ZSTD} {
		template := PlainTemplate()
		template.Codec = c
		b, err := Build(template, []Record{{Value: []byte("v")}})
		must(t, err)
		err = b.Scan(func(Meta) error {
			assert.Equal(t, len(scanning) > 0, c != None, "%s: it has a turn", c)
			return nil
		})
		assert.True(t, err == nil && len(scanning) == 0, "%s: %v; %d turns are taken", c, err, len(scanning))
	}
}

// One that is packed anew waits for its turn, too.
func TestABatchThatIsRepackedWaitsForItsTurn(t *testing.T) {
	old := scanning
	defer func() { scanning = old }()
	synctest.Test(t, func(t *testing.T) {
		scanning = make(chan struct{}, 1)
		b, err := Build(PlainTemplate(), []Record{{Value: []byte("v")}})
		must(t, err)
		scanning <- struct{}{}
		done := make(chan error, 1)
		go func() {
			_, err := b.Repack(Packing{Codec: Gzip}, 1000)
			done <- err
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("it has not waited")
		default:
			<-scanning
			assert.NoError(t, (<-done))
		}
	})
}
