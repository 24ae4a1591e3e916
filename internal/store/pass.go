package store

import (
	"sort"

	"muster/internal/record"
)

// CompactionPass is the rule of compaction in one pass over a log. It is shown
// the keys of all records that have not been compacted yet, with Note, and then
// says of each record from the start of the log on whether it stays.
//
// Records of aborted transactions are no records to it: they supersede nothing,
// and go. A marker stays for as long as a batch of its transaction was there when
// the pass began, and delete.retention.ms after it became part of the clean log,
// as a tombstone does. Aborted records go in the pass that makes them part of
// the clean log, so that nothing is left of a transaction by then that a reader
// would have to be told about; that is why its entry may go before its marker.
type CompactionPass struct {
	latest  map[string]int64 // the newest offset of every key
	maxKeys int
	bytes   int     // of those keys
	cleaned Cleaned // by earlier passes
	// dropBefore is the moment at or before which a tombstone must have become
	// clean to go now.
	dropBefore int64

	aborted map[int64][]Aborted // of each producer, in the order of offsets
	live    map[int64]lastBatch
	open    map[int64]bool  // the producers that have a batch since their last marker
	markers map[int64]int64 // the last marker of each producer that was noted
}

// lastBatch is what is left of a producer last.
type lastBatch struct {
	epoch int16
	// offset is the last one of its last batch, -1 if a marker came after that with
	// a new epoch.
	offset int64
}

// NewCompactionPass begins a pass over a log that has been cleaned so far.
func NewCompactionPass(c Compaction, cleaned Cleaned) *CompactionPass {
	maxKeys := c.MaxKeys
	if maxKeys <= 0 {
		maxKeys = maxPassKeys
	}
	return &CompactionPass{
		latest: map[string]int64{}, maxKeys: maxKeys, cleaned: cleaned,
		dropBefore: c.Now.Add(-c.DeleteRetention).UnixMilli(),
		aborted:    map[int64][]Aborted{}, live: map[int64]lastBatch{}, open: map[int64]bool{}, markers: map[int64]int64{},
	}
}

// Skip tells which transactions were aborted, before anything is noted.
func (p *CompactionPass) Skip(aborted []Aborted) {
	for _, a := range aborted {
		p.aborted[a.ProducerID] = append(p.aborted[a.ProducerID], a)
	}
	for _, list := range p.aborted {
		sortAborted(list)
	}
}

// Protect tells which producers are known, before anything is filtered. The last
// batch of each stays, if only its header, or the last marker: whoever must learn
// about producers from the log alone finds their sequences and epochs there.
func (p *CompactionPass) Protect(producers ...Producer) {
	for _, x := range producers {
		last := lastBatch{epoch: x.Epoch, offset: -1}
		if n := len(x.Batches); n > 0 {
			last.offset = x.Batches[n-1].LastOffset
		}
		p.live[x.ID] = last
	}
}

// Expired says whether the entry of an aborted transaction must go before the log
// is rewritten, since its marker may. None of its records is left.
func (p *CompactionPass) Expired(a Aborted) bool { return p.expired(a.LastOffset) }

// expired says whether what keeps delete.retention.ms has been in the clean log for
// that long.
func (p *CompactionPass) expired(offset int64) bool {
	at, seen := p.cleaned.seen(offset)
	return seen && at <= p.dropBefore
}

// Full says that no more batches may be noted.
func (p *CompactionPass) Full() bool {
	return len(p.latest) >= p.maxKeys || p.bytes >= maxPassBytes
}

// NoteKey takes in the key of a record. Records come in the order of offsets.
func (p *CompactionPass) NoteKey(k *record.Keyed) {
	if !k.HasKey {
		return
	}
	if _, known := p.latest[string(k.Key)]; !known {
		p.bytes += len(k.Key)
	}
	p.latest[string(k.Key)] = k.Offset
}

// Note takes in the keys of a batch. Markers and aborted records supersede
// nothing.
func (p *CompactionPass) Note(b record.Batch) error {
	switch {
	case b.Control():
		_, marker, err := b.Marker()
		if marker {
			p.markers[b.ProducerID()] = b.LastOffset()
		}
		return err
	case p.isAborted(b):
		return nil
	}
	return b.ScanKeys(func(k *record.Keyed) error {
		p.NoteKey(k)
		return nil
	})
}

// Aborted says whether a batch belongs to an aborted transaction.
func (p *CompactionPass) Aborted(b record.Batch) bool { return p.isAborted(b) }

// isAborted says whether a batch belongs to an aborted transaction.
func (p *CompactionPass) isAborted(b record.Batch) bool {
	if !b.Transactional() || b.Control() {
		return false
	}
	list := p.aborted[b.ProducerID()]
	i := sort.Search(len(list), func(i int) bool { return list[i].LastOffset > b.LastOffset() })
	return i < len(list) && list[i].FirstOffset <= b.BaseOffset()
}

// Keep decides about one record. Records without key cannot be superseded and
// have no place in a compacted log.
func (p *CompactionPass) Keep(k *record.Keyed) bool {
	if !k.HasKey {
		return false
	}
	if newest, ok := p.latest[string(k.Key)]; ok && newest > k.Offset {
		return false
	}
	return !k.Tombstone || !p.expired(k.Offset)
}

// Filter returns what remains of the batch, nil if nothing does. Batches come in
// the order of offsets, from the start of the log on.
func (p *CompactionPass) Filter(b record.Batch) (kept record.Batch, err error) {
	if b.Control() {
		return p.filterControl(b)
	}
	if b.Transactional() {
		p.open[b.ProducerID()] = true
	}
	if !p.isAborted(b) {
		if kept, err = b.Filter(p.Keep); err != nil {
			return nil, err
		}
	}
	switch last, known := p.live[b.ProducerID()]; {
	case kept != nil || !known || last.offset != b.LastOffset():
		return kept, nil
	case b.Count() == 0:
		return b, nil
	}
	return b.Emptied(), nil
}

// Stays is Filter for an engine that keeps records apart from their batches: left says whether
// records of the batch remain.
func (p *CompactionPass) Stays(b record.Batch, left bool) (bool, error) {
	if b.Control() {
		kept, err := p.filterControl(b)
		return kept != nil, err
	}
	if b.Transactional() {
		p.open[b.ProducerID()] = true
	}
	last, known := p.live[b.ProducerID()]
	return left || known && last.offset == b.LastOffset(), nil
}

// filterControl keeps a control batch or not. One that ends no transaction, as far
// as we know, is not ours to judge.
func (p *CompactionPass) filterControl(b record.Batch) (record.Batch, error) {
	_, marker, err := b.Marker()
	if err != nil || !marker {
		return b, err
	}
	left := p.open[b.ProducerID()]
	delete(p.open, b.ProducerID())
	if left || !p.expired(b.LastOffset()) || p.tells(b) {
		return b, nil
	}
	return nil, nil
}

// tells says whether a marker may be all that tells of its producer. One that was
// noted after it tells more, and stays: it is not part of the clean log yet.
func (p *CompactionPass) tells(b record.Batch) bool {
	last, known := p.live[b.ProducerID()]
	return known && last.offset < 0 && last.epoch == b.ProducerEpoch() && p.markers[b.ProducerID()] <= b.LastOffset()
}
