package disk

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/store"
	"muster/internal/store/vfs"
)

const (
	journalDir    = "journal"
	journalSuffix = ".journal"
	// journalFirst is the size of the first two files. Each that is made because none
	// was free is twice as large as the one before, up to journalLargest.
	journalFirst   = 2 << 20
	journalLargest = 64 << 20
	// journalPiece is how much of a new file is written and synced at once. Much at once
	// would keep the disk from rounds.
	journalPiece = 256 << 10
	// journalFiles is how many there are at most, and journalVoids how many if voids
	// need room: if so many are full, there are no rounds, lest they fill the others and
	// no log can be deleted or opened again.
	journalFiles = 8
	journalVoids = 16
	// journalAfter is how many small flushes there are before a journal is made. Many
	// logs at once, journalAtOnce, do not wait for that.
	journalAfter  = 32
	journalAtOnce = 16
	// settleShare is the number of logs for which the first files are large enough: all that
	// have frames in a file are synced before it is used again. For more, larger ones are made.
	settleShare = 32
	// settleAgain is when it is tried again to settle logs, or to make a file.
	settleAgain = time.Second
	// settlers is how many logs are settled at the same time.
	settlers = 4
)

var errNoRoom = errors.New("the journal has no room")

// journal makes small appends to many logs durable with one write and one sync, where
// each log's own file would need a sync of its own. What it holds is copied from the
// segments, which have it already, but maybe only in memory; a start after a crash
// writes it to them again.
//
// A file is filled round by round. When it is full, and all logs with frames in it have
// been synced, another use of it begins, and by one write nothing of the use before can be
// found any more. Files become free, and are used, in the order in which they were filled:
// so as long as frames can be found, the void after them can be, too.
type journal struct {
	fs    vfs.FS
	root  string
	dir   string
	first int64 // size of the first files
	// inline has files made and logs settled by whoever needs room, in the order of
	// calls. Else a goroutine does.
	inline bool
	after  int // small flushes, a journal is made

	on     atomic.Bool // there are files
	failed atomic.Bool // the last attempt to make one did
	making sync.Mutex  // held while a file is made, or a use of one begins
	round  sync.Mutex  // held while a round is written and synced

	mu      sync.Mutex // guards what follows; never held during I/O
	made    int        // files
	uses    uint64     // of files
	current *journalFile
	full    []*journalFile // oldest first, waiting for their logs to be settled
	free    []*journalFile // oldest first
	small   int            // flushes before there was a journal
	wanted  bool           // another file is
	closed  bool

	wake chan struct{}
	done sync.WaitGroup
}

// journalFile is a file of the journal and what it is used for.
type journalFile struct {
	vfs.File
	number int
	size   int64
	use    uint64
	at     int64 // where the next round goes
	rounds uint32
	failed bool   // a round could not be written
	logs   []*log // that have frames in it
}

func newJournal(fsys vfs.FS, root string, first int64, inline bool) *journal {
	j := &journal{
		fs: fsys, root: root, dir: path.Join(root, journalDir), first: first, inline: inline, after: journalAfter, wake: make(chan struct{}, 1),
	}
	if inline {
		j.after = 2
	} else {
		j.done.Go(j.keep)
	}
	return j
}

// wants notes a small flush that finds no journal, and says whether it is to wait for one
// that is made for it.
func (j *journal) wants() bool {
	j.mu.Lock()
	j.small++
	enough := j.small >= j.after
	j.wanted = j.wanted || enough
	j.mu.Unlock()
	if enough && !j.inline {
		j.signal()
	}
	return enough && j.inline
}

// begin makes the first file if there is none, and says whether there is a journal.
func (j *journal) begin() bool { return j.on.Load() || j.make(1) == nil }

func (j *journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// make makes another file, if there are fewer than limit, filled with zeros: so a sync
// of a round need not change what the file system knows of the file.
func (j *journal) make(limit int) error {
	j.making.Lock()
	defer j.making.Unlock()
	n := j.count()
	if n >= limit {
		return nil
	}
	size, use := j.sizeOf(n)+roundBlock, j.nextUse()
	f, err := j.create(n, size, use)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed.Store(err != nil)
	if err != nil {
		j.small = 0 // It is tried again after as many.
		return err
	}
	j.made++
	j.on.Store(true)
	j.free = append(j.free, newUse(f, n, size, use))
	return nil
}

// nextUse returns the number of a use. making is held until the file is among the free
// ones, which have them in order.
func (j *journal) nextUse() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.uses++
	return j.uses
}

// newUse is a file whose use has begun by a first round without frames.
func newUse(f vfs.File, number int, size int64, use uint64) *journalFile {
	return &journalFile{File: f, number: number, size: size, use: use, at: roundBlock, rounds: 1}
}

// firstRound begins a use. It is one block, which a disk writes at once or not: a first
// round of several could be torn so that an earlier use is found that lacks its end.
func firstRound(use uint64) []byte {
	var r roundBuilder
	r.reset()
	return r.finish(roundHead{use: use})
}

// renew begins another use of the oldest full file, which no log needs.
func (j *journal) renew(f *journalFile) error {
	j.making.Lock()
	defer j.making.Unlock()
	use := j.nextUse()
	if _, err := f.WriteAt(firstRound(use), 0); err != nil {
		return err
	}
	if err := f.Datasync(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.full = j.full[1:]
	j.free = append(j.free, newUse(f.File, f.number, f.size, use))
	return nil
}

func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.made
}

// sizeOf returns how much a file takes after the first round, by its number.
func (j *journal) sizeOf(n int) int64 {
	size := j.first
	for i := 1; i < n && size < journalLargest; i++ {
		size *= 2
	}
	return size
}

func journalPath(dir string, n int) string {
	return path.Join(dir, fmt.Sprintf("%d%s", n, journalSuffix))
}

func (j *journal) create(n int, size int64, use uint64) (vfs.File, error) {
	if n == 0 {
		if err := j.fs.MkdirAll(j.dir); err != nil {
			return nil, err
		}
		if err := j.fs.SyncDir(j.root); err != nil {
			return nil, err
		}
	}
	name := journalPath(j.dir, n)
	f, err := createFile(j.fs, name)
	if err != nil {
		return nil, err
	}
	piece := make([]byte, min(size, journalPiece))
	first := copy(piece, firstRound(use))
	for pos := int64(0); pos < size && err == nil; pos += int64(len(piece)) {
		_, err = f.WriteAt(piece[:min(int64(len(piece)), size-pos)], pos)
		if err == nil && j.ended() {
			err = store.ErrClosed // A large file takes a while.
		}
		if err == nil {
			err = f.Datasync()
		}
		clear(piece[:first])
	}
	if err == nil {
		err = j.fs.SyncDir(j.dir)
	}
	if err != nil {
		closeQuietly(f)
		_ = j.fs.Remove(name) // A full disk has other uses for the room.
		return nil, err
	}
	return f, nil
}

// most is how large a round may be.
func (j *journal) most() int { return int(j.first / 2) }

// write makes a round durable. logs are those that have frames in it.
func (j *journal) write(r *roundBuilder, logs []*log) error {
	j.round.Lock()
	defer j.round.Unlock()
	f, err := j.place(wholeBlocks(int64(len(r.buf))), false)
	if err != nil {
		return err
	}
	for _, l := range logs {
		if l.journaled != f.use {
			l.journaled = f.use
			f.logs = append(f.logs, l)
		}
	}
	return j.writeTo(f, r)
}

// writeTo writes a round and syncs it. A file in which that failed takes no more. round
// is held.
func (j *journal) writeTo(f *journalFile, r *roundBuilder) error {
	b := r.finish(roundHead{use: f.use, number: f.rounds})
	_, err := f.WriteAt(b, f.at)
	if err == nil {
		err = f.Datasync()
	}
	f.at += int64(len(b))
	f.rounds++
	f.failed = err != nil
	return err
}

// void writes, durably, that what the journal holds of a log is not to be used any more.
// The log has no rounds meanwhile.
func (j *journal) void(l *log) error {
	j.round.Lock()
	defer j.round.Unlock()
	if !j.holds(l) {
		return nil
	}
	var r roundBuilder
	r.reset()
	r.add(voidFrame, l.name, 0, 0, 0)
	f, err := j.place(roundBlock, true)
	if errors.Is(err, errNoRoom) {
		// It may be this log that keeps files from becoming free.
		if err := j.make(journalVoids); err != nil {
			return err
		}
		f, err = j.place(roundBlock, true)
	}
	if err != nil {
		return err
	}
	return j.writeTo(f, &r)
}

// holds says whether a start could find frames of a log, be they settled or not. round
// is held.
func (j *journal) holds(l *log) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if l.journaled == 0 {
		return false
	}
	if len(j.full) > 0 {
		return j.full[0].use <= l.journaled
	}
	return j.current != nil && j.current.use <= l.journaled
}

// place returns the file that takes a round of a size, or a void. round is held.
func (j *journal) place(size int64, void bool) (*journalFile, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.full) >= journalFiles && !void {
		return nil, errNoRoom
	}
	if f := j.current; f != nil && !f.failed && f.at+size <= f.size {
		return f, nil
	}
	j.retire()
	if len(j.free) == 0 || j.free[0].at+size > j.free[0].size {
		j.wanted = true
		j.signal()
		return nil, errNoRoom
	}
	f := j.free[0]
	j.free = j.free[1:]
	j.current = f
	return f, nil
}

// prepare does inline what the goroutine does otherwise, before a round.
func (j *journal) prepare() {
	j.round.Lock()
	if f := j.current; f != nil && (f.failed || f.at+int64(j.most()) > f.size) {
		j.mu.Lock()
		j.retire()
		j.mu.Unlock()
	}
	j.round.Unlock()
	j.tidy()
}

// retire ends the use of the current file. round and mu are held.
func (j *journal) retire() {
	if f := j.current; f != nil {
		j.full = append(j.full, f)
		j.wanted = j.wanted || int64(len(f.logs))*j.first/settleShare > j.sizeOf(j.made-1)
		j.current = nil
		j.signal()
	}
}

// keep makes files that are wanted, and settles logs so that files become free.
func (j *journal) keep() {
	for range j.wake {
		for !j.tidy() {
			// Something failed. It is tried again, however long that takes.
			select {
			case <-j.wake:
			case <-time.After(settleAgain):
			}
			if j.ended() {
				return
			}
		}
		if j.ended() {
			return
		}
	}
}

func (j *journal) ended() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// tidy does what there is to do, and says whether it could.
func (j *journal) tidy() bool {
	for {
		settled := j.settleFull() // First: that takes less time than to make a large file.
		j.mu.Lock()
		wanted, made := j.wanted, j.made
		j.wanted = false
		j.mu.Unlock()
		if !wanted {
			return settled
		}
		// The second file comes with the first, so that one can be settled while the
		// other is filled.
		limit := min(max(made+1, 2), journalFiles)
		for j.count() < limit {
			if j.make(limit) != nil {
				return false
			}
		}
		if !settled {
			return false
		}
	}
}

// settleFull settles the logs that have frames in full files, and says whether it could.
func (j *journal) settleFull() bool {
	for {
		j.mu.Lock()
		if len(j.full) == 0 || j.closed {
			j.mu.Unlock()
			return true
		}
		f := j.full[0]
		j.mu.Unlock()
		if f.logs = j.settle(f.logs); len(f.logs) > 0 {
			return false
		}
		if j.renew(f) != nil {
			return false
		}
	}
}

// settle makes logs durable by themselves, and returns those for which that failed.
func (j *journal) settle(logs []*log) (left []*log) {
	workers := settlers
	if j.inline {
		workers = 1
	}
	var mu sync.Mutex
	eachOf(logs, workers, func(l *log) {
		if j.ended() || l.settle() != nil {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, l)
		}
	})
	return left
}

// eachOf calls fn for all of a list, some at a time.
func eachOf[T any](list []T, workers int, fn func(T)) {
	next := make(chan T)
	var done sync.WaitGroup
	for range min(workers, len(list)) {
		done.Go(func() {
			for x := range next {
				fn(x)
			}
		})
	}
	for _, x := range list {
		next <- x
	}
	close(next)
	done.Wait()
}

// close ends the background work. Rounds may come until the files are closed.
func (j *journal) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.signal()
	j.done.Wait()
}

// closeFiles closes the files, when no one writes rounds any more.
func (j *journal) closeFiles() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retire()
	for _, f := range append(j.full, j.free...) {
		closeQuietly(f.File)
	}
	j.full, j.free = nil, nil
}
