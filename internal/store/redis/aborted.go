package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster/internal/store"
)

// The aborted transactions of a log are members of a sorted set, written in the
// transaction that appends the marker, and all in memory too:
//
//	<producer id>:<first offset>:<offset of the marker>
//
// with the offset of the marker as the score.

// Aborted implements store.Log.
func (l *log) Aborted(_ context.Context, from, next int64) ([]store.Aborted, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, store.ErrClosed
	}
	return l.aborted.Find(from, next), nil
}

// NoteAborted implements store.Log. Redis knows them from the append.
func (l *log) NoteAborted(context.Context, []store.Aborted) error { return nil }

func formatAborted(a store.Aborted) string {
	return decimal(a.ProducerID) + ":" + decimal(a.FirstOffset) + ":" + decimal(a.LastOffset)
}

// parseAborted reads what formatAborted wrote.
func parseAborted(text string) (a store.Aborted, err error) {
	n, ok := numbers(strings.ReplaceAll(text, ":", " "), 3)
	if !ok {
		return a, fmt.Errorf("%w: aborted transaction %q", store.ErrCorrupt, text)
	}
	return store.Aborted{ProducerID: n[0], FirstOffset: n[1], LastOffset: n[2]}, nil
}

// abortedArgs are the scores and members that a transaction adds.
func abortedArgs(tx *transaction) []string {
	args := make([]string, 0, 2*len(tx.aborted))
	for _, a := range tx.aborted {
		args = append(args, decimal(a.LastOffset), formatAborted(a))
	}
	return args
}

// loadAborted takes in the members of the sorted set. A trim that no one completed may
// have left some below the log start offset. Those at the end or above are of an
// earlier life of the log, whose other keys someone deleted by hand: a marker is in the
// log together with its transaction. They must go before the log grows past them.
func (l *log) loadAborted(ctx context.Context, members []string) error {
	list := make([]store.Aborted, 0, len(members))
	for _, m := range members {
		a, err := parseAborted(m)
		if err != nil {
			return err
		}
		if a.LastOffset >= l.start && a.LastOffset < l.tail.next {
			list = append(list, a)
		}
	}
	l.aborted.Add(list...)
	if len(list) == len(members) {
		return nil
	}
	return l.changeAborted(ctx, trimAbortedScript, "("+decimal(l.start), decimal(l.tail.next))
}

// trimAborted forgets the transactions whose markers are below the log start
// offset.
func (l *log) trimAborted(ctx context.Context) error {
	l.mu.Lock()
	start := l.start
	some := len(l.aborted.Below(start)) > 0
	l.aborted.Trim(start)
	l.mu.Unlock()
	if !some {
		return nil
	}
	return l.changeAborted(ctx, trimAbortedScript, "("+decimal(start), "+inf")
}

// expireAborted forgets the transactions whose markers compaction may remove.
func (l *log) expireAborted(ctx context.Context, pass *store.CompactionPass) error {
	l.mu.Lock()
	gone := l.aborted.Remove(pass.Expired)
	l.mu.Unlock()
	for part := range slices.Chunk(gone, scanEntries) {
		var members []string
		for _, a := range part {
			members = append(members, formatAborted(a))
		}
		if err := l.changeAborted(ctx, removeAbortedScript, members...); err != nil {
			return err
		}
	}
	return nil
}

// changeAborted runs a script on the sorted set that only the owner of the log may
// run.
func (l *log) changeAborted(ctx context.Context, script string, args ...string) error {
	_, err := l.ownKeys(ctx, "forget aborted transactions of", script, []string{l.keys.stream, l.keys.meta, l.keys.aborted}, args)
	return err
}
