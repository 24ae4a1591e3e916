package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"

	"muster/internal/assert"
	"muster/internal/store/vfs"
)

// crashes counts what a property is after many crashes.
func crashes(t *testing.T, m *vfs.Mem, property func(*vfs.Mem) string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for seed := range uint64(seeds) {
		seen[property(m.Crash(seeded(seed)))]++
	}
	return seen
}

func wantOutcomes(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		assert.True(t, got[w] != 0, "no crash gave %q, they gave %v", w, got)
	}
	assert.Equal(t, len(got), len(want), "crashes gave %v, want only %q", got, want)
}

func names(t *testing.T, m *vfs.Mem, dir string) string {
	t.Helper()
	list, err := m.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	must(t, err)
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.Name()
	}
	return strings.Join(all, " ")
}

func TestSyncedDataSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", letters(3000, 'a'))
	write(t, f, 3000, letters(3000, 'A'))
	got := crashes(t, m, func(c *vfs.Mem) string {
		return fmt.Sprint(strings.HasPrefix(read(t, c, "f"), letters(3000, 'a')))
	})
	wantOutcomes(t, got, "true")
	assert.Equal(t, read(t, m.CrashStrict(), "f"), letters(3000, 'a'), "CrashStrict does not have exactly the synced data")
}

func TestUnsyncedAppendMayBeWholeTornHoleyOrLost(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "synced")
	tail := letters(2000, 'A')
	write(t, f, 6, tail)
	got := crashes(t, m, func(c *vfs.Mem) string {
		after := read(t, c, "f")[6:]
		zeros := strings.Repeat("\x00", len(after))
		switch {
		case after == tail:
			return "whole"
		case after == "":
			return "lost"
		case after == zeros && len(after) == len(tail):
			return "zeros"
		case strings.HasPrefix(tail, after):
			return "prefix"
		case strings.HasPrefix(tail, strings.TrimRight(after, "\x00")) && len(after) == len(tail):
			return "prefix and zeros"
		}
		for i := range after {
			if after[i] != tail[i] && after[i] != 0 {
				return "other data"
			}
		}
		return "holes"
	})
	wantOutcomes(t, got, "whole", "lost", "zeros", "prefix", "prefix and zeros", "holes")
}

func TestUnsyncedOverwriteLeavesOldOrNewInEachSector(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", strings.Repeat("o", 2048))
	write(t, f, 0, strings.Repeat("n", 2048))
	mixed := 0
	for seed := range uint64(seeds) {
		got := read(t, m.Crash(seeded(seed)), "f")
		assert.MustTrue(t, len(got) == 2048 && strings.Trim(got, "on") == "", "seed %d: neither old nor new", seed)
		if strings.Contains(got, "on") && strings.Contains(got, "no") {
			mixed++
			if i := strings.Index(got, "on") + 1; i%512 != 0 {
				t.Fatalf("seed %d: a piece begins at %d, which is no sector", seed, i)
			}
		}
	}
	assert.True(t, mixed != 0, "no crash left pieces")
}

func TestLaterUnsyncedWriteMaySurviveAnEarlierOne(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "....")
	write(t, f, 0, "A")
	write(t, f, 3, "B")
	got := crashes(t, m, func(c *vfs.Mem) string { return read(t, c, "f") })
	wantOutcomes(t, got, "....", "A...", "...B", "A..B")
}

func TestSizeMayBeLostWhereALaterOverwriteSurvives(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "o")
	for i := range int64(50) {
		write(t, f, 1+i, "x")
	}
	write(t, f, 0, "n")
	got := crashes(t, m, func(c *vfs.Mem) string { return read(t, c, "f") })
	assert.True(t, got["n"] != 0, "no crash left the overwrite alone")
}

func TestCallerMayReuseTheBufferOfAWrite(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "")
	buf := []byte("good")
	_, err := f.WriteAt(buf, 0)
	must(t, err)
	copy(buf, "evil")
	must(t, f.Datasync())
	assert.Equal(t, read(t, m.CrashStrict(), "f"), "good", "the disk")
}

func TestUnsyncedTruncateMayHaveHappenedOrNot(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "abcdef")
	must(t, f.Truncate(2))
	got := crashes(t, m, func(c *vfs.Mem) string { return read(t, c, "f") })
	wantOutcomes(t, got, "ab", "abcdef")
	must(t, f.Datasync())
	got = crashes(t, m, func(c *vfs.Mem) string { return read(t, c, "f") })
	wantOutcomes(t, got, "ab")
}

func TestNewFileMayVanishUntilItsFolderIsSynced(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("d"))
	must(t, m.SyncDir("/"))
	f := create(t, m, "d/f")
	write(t, f, 0, "x")
	must(t, f.Datasync())
	list := func(c *vfs.Mem) string { return names(t, c, "d") }
	wantOutcomes(t, crashes(t, m, list), "", "f")
	assert.Equal(t, names(t, m.CrashStrict(), "d"), "", "CrashStrict kept")
	must(t, m.SyncDir("d"))
	wantOutcomes(t, crashes(t, m, list), "f")
	assert.Equal(t, read(t, m.CrashStrict(), "d/f"), "x", "CrashStrict")
}

func TestSyncedEntryDoesNotMakeContentDurable(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	write(t, create(t, m, "f"), 0, "x")
	must(t, m.SyncDir("/"))
	assert.Equal(t, read(t, m.CrashStrict(), "f"), "", "CrashStrict")
}

func TestNewFolderMayVanishWithAllThatIsSyncedInIt(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("a/b"))
	createSynced(t, m, "a/b/f", "x")
	got := crashes(t, m, func(c *vfs.Mem) string { return names(t, c, "a/b") })
	wantOutcomes(t, got, "none", "f")
	must(t, m.SyncDir("a"))
	must(t, m.SyncDir("/"))
	got = crashes(t, m, func(c *vfs.Mem) string { return names(t, c, "a/b") })
	wantOutcomes(t, got, "f")
}

func TestRemovedFileMayComeBackUntilItsFolderIsSynced(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	createSynced(t, m, "f", "x")
	must(t, m.Remove("f"))
	list := func(c *vfs.Mem) string { return names(t, c, "/") }
	wantOutcomes(t, crashes(t, m, list), "", "f")
	must(t, m.SyncDir("/"))
	wantOutcomes(t, crashes(t, m, list), "")
}

func TestChangesInOneFolderSurviveInOrder(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	create(t, m, "a")
	create(t, m, "b")
	must(t, m.Remove("a"))
	create(t, m, "c")
	got := crashes(t, m, func(c *vfs.Mem) string { return names(t, c, "/") })
	wantOutcomes(t, got, "", "a", "a b", "b", "b c")
}

func TestRenameOverAFileIsAtomic(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	createSynced(t, m, "f", "old")
	createSynced(t, m, "f.tmp", "new")
	must(t, m.Rename("f.tmp", "f"))
	got := crashes(t, m, func(c *vfs.Mem) string { return names(t, c, "/") + ": " + read(t, c, "f") })
	wantOutcomes(t, got, "f f.tmp: old", "f: new")
	must(t, m.SyncDir("/"))
	got = crashes(t, m, func(c *vfs.Mem) string { return names(t, c, "/") + ": " + read(t, c, "f") })
	wantOutcomes(t, got, "f: new")
}

func TestRenameOfUnsyncedContentMayLeaveTheNewNameEmpty(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	createSynced(t, m, "f", "old")
	write(t, create(t, m, "f.tmp"), 0, "n")
	must(t, m.Rename("f.tmp", "f"))
	must(t, m.SyncDir("/"))
	got := crashes(t, m, func(c *vfs.Mem) string { return read(t, c, "f") })
	wantOutcomes(t, got, "", "\x00", "n")
}

func TestRenameBetweenFoldersIsAtomic(t *testing.T) {
	t.Parallel()
	for _, synced := range []string{"", "a", "b"} {
		m := vfs.NewMem()
		must(t, m.MkdirAll("a"))
		must(t, m.MkdirAll("b"))
		must(t, m.SyncDir("/"))
		createSynced(t, m, "a/f", "x")
		create(t, m, "a/before")
		must(t, m.Rename("a/f", "b/g"))
		create(t, m, "b/after")
		must(t, m.Rename("b/after", "a/after"))
		list := func(c *vfs.Mem) string { return names(t, c, "a") + ", " + names(t, c, "b") }
		if synced == "" {
			wantOutcomes(t, crashes(t, m, list), "f, ", "before f, ", "before, g", "before, after g", "after before, g")
			continue
		}
		must(t, m.SyncDir(synced))
		wantOutcomes(t, crashes(t, m, list), "after before, g")
	}
}

func TestCrashRepeatsForASeed(t *testing.T) {
	t.Parallel()
	run := func() map[string]string {
		m := vfs.NewMem()
		for i := range 10 {
			dir := fmt.Sprint("d", i)
			must(t, m.MkdirAll(dir))
			for j := range 10 {
				write(t, create(t, m, fmt.Sprint(dir, "/", j)), 0, letters(1000, 'a'))
			}
		}
		return dump(t, m.Crash(seeded(7)), "/")
	}
	if first := run(); len(first) == 0 || !maps.Equal(first, run()) {
		t.Error("the same operations and seed gave two results")
	}
}

func TestCrashLeavesTheOriginalAndForgetsLocks(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "x")
	_, err := m.Lock("lock")
	must(t, err)
	for _, c := range []*vfs.Mem{m.Crash(seeded(1)), m.CrashStrict(), m.CrashKeepAll()} {
		_, err := c.Lock("lock")
		must(t, err)
		g, err := c.Open("f")
		must(t, err)
		write(t, g, 0, "changed")
		assert.Equal(t, contents(t, f), "x", "the original")
		assert.Equal(t, read(t, c.CrashStrict(), "f"), "x", "what a crash left is not durable")
	}
}

func TestKilledProcessLosesNothingButSyncsNothing(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	createSynced(t, m, "f", "synced")
	must(t, m.MkdirAll("d"))
	must(t, m.Rename("f", "d/g"))
	g, err := m.Open("d/g")
	must(t, err)
	write(t, g, 6, " and not")
	killed := m.CrashKeepAll()
	want := dump(t, m, "/")
	assert.EqualMaps(t, dump(t, killed, "/"), want, "after a kill")
	assert.EqualMaps(t, dump(t, killed.CrashStrict(), "/"), map[string]string{"f": "synced"}, "after a kill and a power cut")
	must(t, killed.SyncDir("/"))
	assert.Equal(t, read(t, killed.CrashStrict(), "d/g"), "synced", "after a kill, a sync of the folder and a power cut")
	g, err = killed.Open("d/g")
	must(t, err)
	must(t, g.Datasync())
	assert.Equal(t, read(t, killed.CrashStrict(), "d/g"), "synced and not", "after a kill, a sync of both and a power cut")
}

func TestCrashWhileOthersWrite(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	var wg sync.WaitGroup
	for i := range 4 {
		f := createSynced(t, m, fmt.Sprint(i), "synced")
		wg.Go(func() {
			for j := range int64(200) {
				if _, err := f.WriteAt([]byte("more"), 6+4*j); err != nil {
					t.Error(err)
				}
				if _, err := f.ReadAt(make([]byte, 4), 6+4*j); err != nil {
					t.Error(err)
				}
				assert.NoError(t, f.Datasync())
			}
		})
	}
	for seed := range uint64(50) {
		for name, content := range dump(t, m.Crash(seeded(seed)), "/") {
			assert.True(t, strings.HasPrefix(content, "synced"), "%s has %q", name, content)
		}
	}
	wg.Wait()
}
