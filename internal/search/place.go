package search

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Place is where in a partition a search begins or ends.
type Place struct {
	Kind   PlaceKind
	Offset int64
	Time   time.Time
}

// PlaceKind says what a place is given by.
type PlaceKind int8

// The kinds of places.
const (
	Beginning PlaceKind = iota
	End
	AtOffset
	AtTime
)

// ParsePlace reads a place: beginning, end, offset:4711, time:2026-11-17T01:30:00Z or
// time:-1h, which is an hour ago. Empty is byDefault.
func ParsePlace(text string, byDefault PlaceKind, now time.Time) (Place, error) {
	kind, value, _ := strings.Cut(text, ":")
	switch kind {
	case "":
		return Place{Kind: byDefault}, nil
	case "beginning":
		return Place{Kind: Beginning}, nil
	case "end":
		return Place{Kind: End}, nil
	case "offset":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return Place{}, fmt.Errorf("an offset is a number, not %q", value)
		}
		return Place{Kind: AtOffset, Offset: n}, nil
	case "time":
		return timePlace(value, now)
	}
	return Place{}, fmt.Errorf("a place is beginning, end, offset:4711 or time:2026-11-17T01:30:00Z or time:-1h, not %q", text)
}

func timePlace(value string, now time.Time) (Place, error) {
	if ago, ok := strings.CutPrefix(value, "-"); ok {
		d, err := time.ParseDuration(ago)
		if days, isDays := strings.CutSuffix(ago, "d"); isDays {
			var n uint64
			n, err = strconv.ParseUint(days, 10, 14)
			d = time.Duration(n) * 24 * time.Hour
		}
		if err != nil || d < 0 {
			return Place{}, fmt.Errorf("how long ago is as 30m, 24h or 7d, not %q", ago)
		}
		return Place{Kind: AtTime, Time: now.Add(-d)}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return Place{}, fmt.Errorf("a time is as 2026-11-17T01:30:00Z, or as -1h for an hour ago, not %q", value)
	}
	return Place{Kind: AtTime, Time: t}, nil
}

// MaxPartitions is how many partitions one search goes through: a cursor names all of
// them, and has to fit into an address.
const MaxPartitions = 128

// ParsePartitions reads numbers of partitions, as 0,3,7-9. There are count of them;
// none named is all.
func ParsePartitions(list []string, count int) ([]int32, error) {
	if len(list) == 0 {
		if count > MaxPartitions {
			return nil, fmt.Errorf("the topic has %d partitions, and a search goes through %d at most: name some, as partition=0-%d", count, MaxPartitions, MaxPartitions-1)
		}
		list = []string{fmt.Sprintf("0-%d", count-1)}
	}
	var out []int32
	for _, part := range list {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		if errors.Join(err, err2) != nil || to < from {
			return nil, fmt.Errorf("partitions are named as 0,3,7-9, not as %q", part)
		}
		if to >= uint64(count) {
			return nil, fmt.Errorf("the topic has %d partitions, and so no partition %d", count, to)
		}
		if to-from >= MaxPartitions {
			return nil, fmt.Errorf("a search goes through %d partitions at most", MaxPartitions)
		}
		for n := from; n <= to; n++ {
			out = append(out, int32(n))
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > MaxPartitions {
		return nil, fmt.Errorf("a search goes through %d partitions at most", MaxPartitions)
	}
	return out, nil
}
