package redis

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// adoptEntries is how many entries of others are adopted at a time at most, and adoptFew how many
// before it is known how large they are: about adoptBytes are read at a time.
const (
	adoptEntries = 500
	adoptFew     = 64
	adoptBytes   = 8 << 20
)

// Transactional implements store.Refresher: the index has the markers.
func (indexLog) Transactional() bool { return true }

// Refresh implements store.Refresher: it adopts what others have added. Appends of the leader
// that are under way are not in what it returns: whoever began one is to hear of it first.
func (l indexLog) Refresh(ctx context.Context) (int64, error) {
	if err := l.mayRead(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	top := l.tail.top
	l.mu.Unlock()
	b := l.store.client.B()
	results := l.store.doMulti(ctx, l.aboveCommand(top, 1), b.Exists().Key(l.keys.meta).Build())
	found, err := results[0].ToArray()
	if err != nil {
		return 0, attempt("look at "+l.keys.stream, err)
	}
	if len(found) > 0 {
		l.claim()
		defer l.release()
		err := l.adoptAll(ctx, entryID{})
		return l.noteEnd(), err
	}
	if there, err := results[1].AsInt64(); err != nil || there == 0 { // Else it was deleted.
		return 0, errors.Join(attempt("look at "+l.keys.stream, err), store.ErrClosed)
	}
	if l.sending.TryLock() {
		defer l.release()
		return l.noteEnd(), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told, nil
}

// noteEnd returns where the log ends. No append is under way, so that all are told of theirs.
func (l indexLog) noteEnd() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = l.tail.next
	return l.told
}

// topID is the last id that the index covers.
func (l indexLog) topID() entryID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.top
}

// timestampOf reads the timestamp of an entry.
func timestampOf(id entryID, fields []rueidis.RedisMessage, adopted bool) int64 {
	words := make(entry, len(fields))
	for i := range fields {
		words[i], _ = fields[i].ToString()
	}
	if adopted {
		return decodeAdopted(id, words).Timestamp
	}
	return decodeRecord(id, words).Timestamp
}

// above returns entries of the data above an id.
func (l indexLog) above(ctx context.Context, id entryID, count int64) ([]rueidis.RedisMessage, error) {
	found, err := l.store.do(ctx, l.aboveCommand(id, count)).ToArray()
	return found, attempt("look at "+l.keys.stream, err)
}

func (l indexLog) aboveCommand(id entryID, count int64) rueidis.Completed {
	first, last := "("+id.String(), "+"
	if id == (entryID{math.MaxUint64, math.MaxUint64}) { // There is none above it, which Redis refuses to look for.
		first, last = "+", "-"
	}
	return l.store.client.B().Xrange().Key(l.keys.stream).Start(first).End(last).Count(count).Build()
}

// adoptAll adopts the entries of others, at least to an id. Nothing may be under way.
func (l indexLog) adoptAll(ctx context.Context, to entryID) error {
	for count := int64(adoptFew); ; {
		l.mu.Lock()
		top := l.tail.top
		l.mu.Unlock()
		found, err := l.above(ctx, top, count)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return l.rise(to)
		}
		more, bytes, err := l.adoptSome(ctx, top, found)
		if err != nil || !more && int64(len(found)) < count {
			return err
		}
		count = min(adoptBytes/(bytes/int64(len(found)))+1, adoptEntries)
	}
}

// rise notes that an id above the top has been used, by an entry that is gone.
func (l indexLog) rise(to entryID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = to
	return nil
}

// adoptSome adopts entries that follow the last which the index covers, and says whether there
// are more than these, and how large they are.
func (l indexLog) adoptSome(ctx context.Context, top entryID, found []rueidis.RedisMessage) (more bool, bytes int64, err error) {
	e := &indexEntry{}
	b := indexBatch{flags: flagAdopted, leaderEpoch: l.epoch, maxTimestamp: record.NoTimestamp, producerID: record.NoProducerID}
	var last entryID
	var largest int64
	for i := range found {
		id, fields, err := entryParts(&found[i])
		if err != nil {
			return false, 0, err
		}
		words := make(entry, len(fields))
		for k := range fields {
			words[k], _ = fields[k].ToString()
		}
		r := decodeAdopted(id, words)
		if b.count == 0 {
			b.baseTimestamp, b.maxTimestamp = r.Timestamp, r.Timestamp
		}
		size, _ := words.size()
		largest = max(largest, size)
		b.count, b.bytes, b.maxTimestamp = b.count+1, b.bytes+size, max(b.maxTimestamp, r.Timestamp)
		if n := len(e.runs); n > 0 && last.after() == id && last.ms == id.ms {
			e.runs[n-1].count++
		} else {
			e.runs = append(e.runs, idRun{id, 1})
		}
		last = id
	}
	e.batches = []indexBatch{b}
	l.mu.Lock()
	epochs := store.AddEpoch(l.tail.epochs, l.epoch, l.tail.next)
	l.mu.Unlock()
	r, err := l.change(ctx, "adopt entries of", adoptScript, []string{l.keys.index},
		top.String(), last.String(), decimal(b.count), decimal(b.maxTimestamp), decimal(b.bytes), e.runs[0].first.String(), rueidis.BinaryString(e.body()), formatEpochs(epochs), decimal(largest))
	if err != nil {
		return false, 0, err
	}
	if len(r) != 2 {
		return false, 0, fmt.Errorf("%w: adopt entries of %s: %s", store.ErrStorage, l.keys.stream, r[0].text())
	}
	truth := indexTruth{next: r[0].int()}
	if truth.top, truth.indexState, err = parseIndexState(r[1].text()); err != nil {
		return false, 0, err
	}
	l.learn(truth, largest)
	return truth.top != last, b.bytes, nil
}

// learn takes in where the log ends after entries of others were adopted, and how large the largest is.
func (l indexLog) learn(truth indexTruth, largest int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail.epochs = store.AddEpoch(l.tail.epochs, l.epoch, l.tail.next)
	l.tail.count += truth.added - l.tail.added
	l.tail.largest = max(l.tail.largest, largest)
	l.tail.apply(truth)
	l.unsaved++
}

// decodeAdopted is decodeRecord for entries of others. Scripts look at their timestamps too,
// and count only so far.
func decodeAdopted(id entryID, e entry) record.Record {
	r := decodeRecord(id, e)
	if r.Timestamp > maxAdoptedTimestamp || r.Timestamp < -maxAdoptedTimestamp {
		r.Timestamp = int64(min(id.ms, maxAdoptedTimestamp))
	}
	return r
}

const maxAdoptedTimestamp = 1 << 52
