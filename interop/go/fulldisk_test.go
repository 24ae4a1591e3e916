package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sys/unix"

	"muster/internal/assert"
)

const (
	smallDisk   = 16 << 20
	ballastSize = 6 << 20
	fullRecord  = 64 << 10
	fullTopic   = "filling"
)

// TestFullDisk fills a real file system until Produce answers
// KAFKA_STORAGE_ERROR. Fetch must go on, and when there is room again, so must
// Produce, with every acknowledged record in place.
func TestFullDisk(t *testing.T) {
	onlyOn(t, "disk")
	if !mayMount(t) {
		testInNamespace(t)
		return
	}
	tests := []struct {
		name     string
		makeRoom func(*fullDisk)
	}{
		{"room by removing another file", (*fullDisk).removeBallast},
		{"room by DeleteRecords", (*fullDisk).deleteRecords},
		{"room found at restart", func(d *fullDisk) { d.removeBallast(); d.restart() }},
		{"room after a restart on the full disk", func(d *fullDisk) { d.restart(); d.check("restarted"); d.removeBallast() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newFullDisk(t)
			d.fill()
			d.check("on the full disk")
			tt.makeRoom(d)
			d.check("with room again")
			d.produceAgain(20)
			d.check("after more records")
			d.restart()
			d.check("after a restart")
			d.produceAgain(5)
			d.check("after more records after a restart")
		})
	}
}

// mayMount finds out whether this process may mount file systems.
func mayMount(t *testing.T) bool {
	dir := t.TempDir()
	if err := mountSmall(dir); err != nil {
		return false
	}
	must(t, unix.Unmount(dir, 0))
	return true
}

func mountSmall(dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDisk))
}

const inNamespace = "MUSTER_INTEROP_IN_NAMESPACE"

// testInNamespace runs this test again in namespaces of its own, where
// everybody may mount file systems, if the system allows such namespaces.
func testInNamespace(t *testing.T) {
	assert.MustEqual(t, os.Getenv(inNamespace), "", "file systems cannot be mounted in a namespace of our own either")
	if out, err := exec.Command("unshare", "-Urm", "true").CombinedOutput(); err != nil {
		t.Skipf("we may not mount a small file system, nor have a namespace where we may: %v %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=yes")
	out, err := cmd.CombinedOutput()
	t.Logf("in a namespace:\n%s", out)
	assert.NoError(t, err)
}

// fullDisk is a broker on a small disk, and what it acknowledged.
type fullDisk struct {
	t     *testing.T
	mount string
	b     *process
	w     *wire
	sent  int
	// acked are the records that must be there; refused are the values that were
	// answered with an error, and so may be there or not.
	acked   []storedRecord
	refused map[string]bool
}

func newFullDisk(t *testing.T) *fullDisk {
	t.Helper()
	d := &fullDisk{t: t, mount: t.TempDir(), refused: map[string]bool{}}
	must(t, mountSmall(d.mount))
	t.Cleanup(func() {
		assert.NoError(t, unix.Unmount(d.mount, unix.MNT_DETACH))
	})
	must(t, os.WriteFile(d.ballast(), make([]byte, ballastSize), 0o600))
	d.start()
	createTopic(t, d.b.addr(), fullTopic, 1)
	return d
}

func (d *fullDisk) start() {
	d.t.Helper()
	// Small segments let DeleteRecords free some space.
	d.b = serve(d.t, filepath.Join(d.mount, "data"), "--set", "log.segment.bytes=1048576")
	d.w = dial(d.t, d.b.addr())
}

func (d *fullDisk) restart() {
	d.t.Helper()
	d.b.kill()
	d.start()
}

// ballast is the file that takes away room.
func (d *fullDisk) ballast() string { return filepath.Join(d.mount, "ballast") }

func (d *fullDisk) removeBallast() {
	d.t.Helper()
	must(d.t, os.Remove(d.ballast()))
}

// fill produces until the broker says that the disk is full, and then some, so
// that it says so more than once.
func (d *fullDisk) fill() {
	d.t.Helper()
	for full := 0; full < 3; {
		switch code := d.produce(); {
		case errors.Is(kerr.ErrorForCode(code), kerr.KafkaStorageError):
			full++
		case code != 0:
			d.t.Fatalf("produce: %v, want KAFKA_STORAGE_ERROR when the disk is full", kerr.ErrorForCode(code))
		}
		assert.MustTrue(d.t, d.sent*fullRecord <= 2*smallDisk, "the disk does not get full")
	}
	assert.MustTrue(d.t, len(d.acked)*fullRecord >= (smallDisk-ballastSize)/2, "only %d batches fit on the disk", len(d.acked))
}

// produce writes one more batch and notes the outcome.
func (d *fullDisk) produce() int16 {
	d.t.Helper()
	value := fmt.Sprintf("%06d %s", d.sent, strings.Repeat("x", fullRecord))
	d.sent++
	p := produce(d.w, fullTopic, 0, batch{values: []string{value}})
	if p.ErrorCode == 0 {
		d.acked = append(d.acked, storedRecord{offset: p.BaseOffset, value: value})
	} else {
		d.refused[value] = true
	}
	return p.ErrorCode
}

// produceAgain produces n batches. The broker may need a moment to notice that
// there is room.
func (d *fullDisk) produceAgain(n int) {
	d.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for n > 0 {
		if code := d.produce(); code == 0 {
			n--
		} else if time.Now().After(deadline) {
			d.t.Fatalf("produce still fails although there is room: %v", kerr.ErrorForCode(code))
		}
	}
}

// deleteRecords deletes the older half of the records.
func (d *fullDisk) deleteRecords() {
	d.t.Helper()
	keep := d.acked[len(d.acked)/2:]
	done := deleteRecords(d.w, fullTopic, keep[0].offset)
	wantCode(d.t, "DeleteRecords on a full disk", done.ErrorCode, nil)
	d.acked = slices.Clone(keep)
}

// check fetches everything and compares.
func (d *fullDisk) check(when string) {
	d.t.Helper()
	var got []storedRecord
	seen := map[string]bool{}
	for _, r := range readFrom(d.w, fullTopic, 0, d.acked[0].offset) {
		assert.MustFalse(d.t, seen[r.value], "%s: record %.6s is there twice", when, r.value)
		seen[r.value] = true
		if !d.refused[r.value] {
			got = append(got, storedRecord{offset: r.offset, value: r.value})
		}
	}
	assert.MustEqualSlices(d.t, got, d.acked, "%s: the %d records that were acknowledged and the %d that are there differ", when, len(d.acked), len(got))
}
