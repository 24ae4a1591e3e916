package leader

import (
	"cmp"
	"errors"
	"slices"

	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/share/window"
	"muster/internal/store"
)

// scanned is what was read of a log, as windows want to know it.
type scanned struct {
	next    int64 // where reading ended
	batches []window.Batch
	aborted []window.Batch
	places  []batchPlace
}

// batchPlace is where a batch is in what was read.
type batchPlace struct {
	last int64
	end  int // of its bytes
}

// errLimit ends a scan.
var errLimit = errors.New("the window has no room for more")

// scan looks at the headers of batches that begin before a limit. Where the offsets of a log have holes, it looks at
// each record: such logs have their batches in memory.
func scan(f *partition.Fetched, from, limit int64, sparse bool) (*scanned, error) {
	out := &scanned{next: from}
	aborted := abortedBy(f.Aborted)
	err := f.Records.Headers(func(at int, b record.Batch) error {
		first, last := max(b.BaseOffset(), from), b.LastOffset()
		if first >= limit {
			out.next = max(out.next, first)
			return errLimit
		}
		out.places = append(out.places, batchPlace{last, at + b.Size()})
		out.next = max(out.next, last+1)
		switch {
		case last < first:
			return nil
		case sparse:
			return out.records(&f.Records, at, b.Size(), from)
		}
		out.batches = append(out.batches, window.Batch{First: first, Last: last})
		if b.Transactional() && !b.Control() && aborted.has(b) {
			out.aborted = append(out.aborted, window.Batch{First: first, Last: last})
		}
		return nil
	})
	if err == errLimit { //nolint:errorlint // It is this one's own.
		err = nil
	}
	return out, err
}

// records adds the offsets that a batch has records at.
func (s *scanned) records(r *store.Records, at, size int, from int64) error {
	b := make([]byte, min(size, r.Len-at))
	if r.Bytes != nil {
		b = r.Bytes[at : at+len(b)]
	} else if _, err := r.File.ReadAt(b, r.Pos+int64(at)); err != nil {
		return err
	}
	began := len(s.batches)
	return record.Batch(b).Scan(func(m record.Meta) error {
		offset := m.Offset
		if offset < from {
			return nil
		}
		if n := len(s.batches); n > began && s.batches[n-1].Last+1 == offset {
			s.batches[n-1].Last = offset
			return nil
		}
		s.batches = append(s.batches, window.Batch{First: offset, Last: offset})
		return nil
	})
}

// cut returns the batches that hold the offsets from first to last. Nothing is copied.
func (s *scanned) cut(r store.Records, first, last int64) store.Records {
	begin := 0
	for _, p := range s.places {
		if p.last < first {
			begin = p.end
			continue
		}
		if p.last >= last {
			r.Len = min(p.end, r.Len)
			break
		}
	}
	if r.Bytes != nil {
		r.Bytes = r.Bytes[begin:r.Len]
	}
	r.Pos += int64(begin)
	r.Len -= begin
	return r
}

// abortedTxns are aborted transactions by their producers, in the order of the log.
type abortedTxns map[int64][]store.Aborted

func abortedBy(list []store.Aborted) abortedTxns {
	if len(list) == 0 {
		return nil
	}
	out := abortedTxns{}
	for _, a := range list {
		out[a.ProducerID] = append(out[a.ProducerID], a)
	}
	return out
}

// has says whether a batch is of one of them. Those of a producer do not overlap.
func (t abortedTxns) has(b record.Batch) bool {
	of := t[b.ProducerID()]
	i, _ := slices.BinarySearchFunc(of, b.BaseOffset(), func(a store.Aborted, at int64) int { return cmp.Compare(a.LastOffset, at) })
	return i < len(of) && of[i].FirstOffset <= b.BaseOffset()
}
