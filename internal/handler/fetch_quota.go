package handler

import (
	"context"
	"time"

	"muster/internal/partition"
)

// runWithin reads as run does, but no more than the client may have. If it may have
// nothing of what there is, it gets nothing, and has to wait: an answer to Fetch over
// the quota is empty.
func (f *fetchRead) runWithin(ctx context.Context, s *share) (wait time.Duration) {
	if s == nil {
		f.run(ctx)
		return 0
	}
	if f.maxBytes, wait = s.room(f.maxBytes); wait > 0 {
		return wait // Whatever there is, it may not have it.
	}
	f.minBytes = min(f.minBytes, f.maxBytes) // It would wait for more than it may have.
	f.run(ctx)
	if wait = s.ask(f.bytes(s)); wait > 0 {
		f.drop()
	}
	return wait
}

// bytes returns how many bytes of records were read, if someone counts them.
func (f *fetchRead) bytes(s *share) (n int) {
	if s == nil {
		return 0
	}
	for i := range f.parts {
		n += f.parts[i].result.Records.Len
	}
	return n
}

// drop gives up what was read.
func (f *fetchRead) drop() {
	for i := range f.parts {
		f.parts[i].result.Records.Release()
		f.parts[i].result = partition.Fetched{}
	}
	if f.inMemory > 0 {
		f.h.records.give(f.inMemory)
		f.inMemory = 0
	}
}

// withdraw is for an answer without what was asked for, and returns the session that
// it names. A session that the request has begun is no more: its client takes the
// empty answer for none, and begins another.
func (t *fetchTurn) withdraw() (id int32) {
	if t.incremental {
		return t.id
	}
	if t.session != nil {
		t.owner.end(t.session)
	}
	return 0
}
