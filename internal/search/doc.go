// Package search looks for records in the partitions of a topic, as the console does:
// from some place on, in the order of time, through filters on key, headers and value,
// up to a limit, and in pieces, so that a search over everything can be left and gone
// on with.
//
//	filters: text conditions, JSON path, jq ─┐
//	Log (a partition, handed in) ── Search ──┴─> found records, progress, a cursor
//
// It does no I/O of its own and knows nothing of brokers. Everything that it reads was
// written by strangers: filters, cursors and records. So every expression is bounded in
// length, every evaluation in time and memory, and each parser has a fuzz test.
package search
