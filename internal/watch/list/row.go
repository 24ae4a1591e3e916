// Package list answers the lists of groups that people look at: filtered, sorted, page
// by page, of a hundred thousand groups in milliseconds.
//
// Every ten seconds one pass hands in a summary of each group, and Build makes an Index
// of them, which never changes and may be read by many at once: the orders that people
// sort by, and which groups read a topic. A request walks one order from where the page
// before ended and asks no one else. A cursor is the sort value and the name of the
// last group, not a number, so that it is good in the next index too.
package list

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// GroupRow is a group in a list, and in the JSON of the HTTP API. A pass fills it in, but
// for Recent and PaceText, which depend on the moment in which someone asks.
type GroupRow struct {
	Name           string     `json:"name"`
	Type           string     `json:"type" doc:"classic or consumer"`
	State          string     `json:"state" doc:"in Kafka's words"`
	Members        int        `json:"members"`
	Partitions     int        `json:"partitions" doc:"with a committed offset"`
	Lag            int64      `json:"lag" doc:"in records"`
	LagUnknown     bool       `json:"lagUnknown" doc:"a part of the lag is not known, for want of a leader"`
	LagApproximate bool       `json:"lagApproximate" doc:"a part of the lag was estimated"`
	LagSeconds     float64    `json:"lagSeconds" doc:"the age of the oldest first unread record"`
	Recent         []float64  `json:"recentLagSeconds" csv:"-" doc:"the largest lagSeconds of each of the last minutes, at most 30 of them, the oldest first; -1 where nothing is known; empty while the lag has never changed"`
	CatchUpSeconds *float64   `json:"catchUpSeconds" doc:"how long it takes to catch up; 0 without lag, null if it does not or unknown"`
	Pace           string     `json:"pace" doc:"how it gets on: caught-up, catching-up, keeping-up, not-catching-up, held-back (by an open transaction), no-members, too-early (to say) or unknown"`
	PaceText       string     `json:"paceText" doc:"the same in words, as in 5m for when it will have caught up"`
	Stuck          int        `json:"stuck" doc:"partitions that stand still though the group has members"`
	Poison         int        `json:"poison" doc:"partitions with a record that may kill whoever reads it"`
	Rebalanced     *time.Time `json:"rebalanced" doc:"when the last rebalance ended"`
	Cause          string     `json:"cause" doc:"of that rebalance"`
	Findings       []string   `json:"findings" doc:"what is wrong, worst first"`
	Topics         []string   `json:"topics" doc:"that it reads or has committed, of those that you may see"`

	// Offsets are committed ones. Partitions are those of them whose topic and leader are
	// there.
	Offsets int32 `json:"-" csv:"-"`
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
func (s *GroupRow) value(by Sort) uint64 {
	switch by {
	case ByLag:
		return uint64(max(s.Lag, 0))
	case BySeconds:
		return math.Float64bits(max(s.LagSeconds, 0)) // In order as long as nothing is negative.
	case ByCatchUp:
		if s.CatchUpSeconds == nil {
			return math.MaxUint64 // Never is later than all.
		}
		return math.Float64bits(*s.CatchUpSeconds)
	case ByMembers:
		return uint64(max(s.Members, 0))
	case ByState:
		return letters(s.State)
	case ByType:
		return letters(s.Type)
	case ByStuck:
		return uint64(max(s.Stuck, 0))
	case ByRebalanced:
		if s.Rebalanced == nil {
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
