// Package list answers the lists of groups that people look at: filtered, sorted, page
// by page, of a hundred thousand groups in milliseconds.
//
// Every ten seconds one pass hands in a summary of each group, and Build makes an Index
// of them, which never changes and may be read by many at once: the orders that people
// sort by, and which groups read a topic. A request walks one order from where the page
// before ended and asks nobody else. A cursor is the sort value and the name of the
// last group, not a number, so that it is good in the next index too.
package list

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Summary is what lists show of a group.
type Summary struct {
	Name           string
	Type           string // classic, consumer, share
	State          string
	Members        int
	Partitions     int
	Lag            int64
	LagUnknown     bool // A part of the lag is not known.
	LagApproximate bool
	Poison         int32         // Partitions with a record that may kill who reads it.
	Offsets        int32         // Committed ones. Partitions are those of them whose topic and leader are there.
	Seconds        float64       // Lag in seconds.
	CatchUp        time.Duration // How long it takes to catch up: 0 if there is no lag, negative if it does not or nobody knows.
	Pace           string        // How it gets on, as lag.Pace has it.
	Stuck          int           // Partitions.
	Rebalanced     time.Time     // When the last rebalance ended; zero if there was none.
	Cause          string        // Of that rebalance.
	Findings       []string      // Ids, worst first.
	Topics         []string      // That it reads or has committed.
}

// Sort is what a list is sorted by. Groups with the same value are in order of name.
type Sort uint8

// What lists can be sorted by.
const (
	ByName Sort = iota
	ByLag
	BySeconds
	ByCatchUp
	ByMembers
	ByState
	ByType
	ByStuck
	ByRebalanced
	ByFindings // How many there are.
	sorts
)

var sortNames = [sorts]string{"name", "lag", "lagSeconds", "catchUp", "members", "state", "type", "stuck", "rebalanced", "findings"}

func (s Sort) String() string { return sortNames[s] }

// ParseSort reads the name of an order, with a minus for the reverse.
func ParseSort(name string) (s Sort, reverse, ok bool) {
	if name != "" && name[0] == '-' {
		name, reverse = name[1:], true
	}
	i := slices.Index(sortNames[:], name)
	return Sort(max(i, 0)), reverse, i >= 0
}

// value is what a group is sorted by, as a number whose order is the order of the list.
func (s *Summary) value(by Sort) uint64 {
	switch by {
	case ByLag:
		return uint64(max(s.Lag, 0))
	case BySeconds:
		return math.Float64bits(max(s.Seconds, 0)) // In order as long as nothing is negative.
	case ByCatchUp:
		if s.CatchUp < 0 {
			return math.MaxUint64 // Never is later than all.
		}
		return uint64(s.CatchUp)
	case ByMembers:
		return uint64(max(s.Members, 0))
	case ByState:
		return letters(s.State)
	case ByType:
		return letters(s.Type)
	case ByStuck:
		return uint64(max(s.Stuck, 0))
	case ByRebalanced:
		if s.Rebalanced.IsZero() {
			return 0
		}
		return uint64(max(s.Rebalanced.UnixMilli(), 0))
	case ByFindings:
		return uint64(len(s.Findings))
	}
	return 0 // The name is all.
}

// letters is the first eight of a word, which tell all states and types apart.
func letters(word string) uint64 {
	var b [8]byte
	copy(b[:], word)
	return binary.BigEndian.Uint64(b[:])
}
