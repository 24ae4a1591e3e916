package groupview

import (
	"fmt"
	"math"
)

// ResetKind says how a reset finds the new committed offset.
type ResetKind int

// The kinds of resets.
const (
	ResetBeginning ResetKind = iota
	ResetEnd
	ResetOffset
	ResetTime
	ResetShift
)

// ResetTarget says where the committed offsets of a group are to go.
type ResetTarget struct {
	Kind ResetKind
	N    int64 // The offset, the number of offsets, or the time in milliseconds.
}

// ResetStep is what becomes of a committed offset.
type ResetStep struct {
	To      *int64 // nil if it is left alone
	Clamped bool   // What was asked for lies outside of the log.
	Note    string // What is special.
}

// Step works out the new offset of a partition, which lies within its log. The bounds are
// nil if they are not known, and at is where records of the time begin.
func (t ResetTarget) Step(committed *int64, log *Bounds, at int64) ResetStep {
	if log == nil {
		return ResetStep{Note: "left alone: the partition does not exist or has no leader"}
	}
	want, note := log.Start, ""
	switch t.Kind {
	case ResetBeginning:
	case ResetEnd:
		want = log.End
	case ResetOffset:
		want = t.N
	case ResetTime:
		if want = at; want == log.End {
			note = "no record is that young"
		}
	case ResetShift:
		if committed == nil {
			return ResetStep{Note: "left alone: nothing is committed that could be shifted"}
		}
		want = shifted(*committed, t.N)
	}
	to := min(max(want, log.Start), log.End)
	switch {
	case want < log.Start:
		note = fmt.Sprintf("%d is before the log start", want)
	case want > log.End:
		note = fmt.Sprintf("%d is beyond the end", want)
	}
	return ResetStep{To: &to, Clamped: to != want, Note: note}
}

// shifted adds without going round.
func shifted(offset, by int64) int64 {
	switch {
	case by > 0 && offset > math.MaxInt64-by:
		return math.MaxInt64
	case by < 0 && offset < math.MinInt64-by:
		return math.MinInt64
	}
	return offset + by
}
