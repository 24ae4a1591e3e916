package groupview

import (
	"math"
	"testing"
)

func TestAResetStaysWithinTheLog(t *testing.T) {
	log, seven := &Bounds{Start: 5, End: 100}, int64(7)
	for _, c := range []struct {
		name      string
		target    ResetTarget
		committed *int64
		log       *Bounds
		at        int64
		to        int64 // -1 for none
		clamped   bool
		note      string
	}{
		{"beginning", ResetTarget{Kind: ResetBeginning}, nil, log, 100, 5, false, ""},
		{"end", ResetTarget{Kind: ResetEnd}, &seven, log, 100, 100, false, ""},
		{"offset", ResetTarget{ResetOffset, 42}, &seven, log, 100, 42, false, ""},
		{"offset at the end", ResetTarget{ResetOffset, 100}, &seven, log, 100, 100, false, ""},
		{"offset before", ResetTarget{ResetOffset, 4}, &seven, log, 100, 5, true, "4 is before the log start"},
		{"offset beyond", ResetTarget{ResetOffset, 101}, &seven, log, 100, 100, true, "101 is beyond the end"},
		{"time", ResetTarget{ResetTime, 1}, &seven, log, 60, 60, false, ""},
		{"time after all", ResetTarget{ResetTime, 1}, &seven, log, 100, 100, false, "no record is that young"},
		{"shift", ResetTarget{ResetShift, 3}, &seven, log, 100, 10, false, ""},
		{"shift back", ResetTarget{ResetShift, -1}, &seven, log, 100, 6, false, ""},
		{"shift too far back", ResetTarget{ResetShift, -8}, &seven, log, 100, 5, true, "-1 is before the log start"},
		{"shift beyond all numbers", ResetTarget{ResetShift, math.MaxInt64}, &seven, log, 100, 100, true, "9223372036854775807 is beyond the end"},
		{"shift below all numbers", ResetTarget{ResetShift, math.MinInt64}, &seven, log, 100, 5, true, "-9223372036854775801 is before the log start"},
		{"shift of nothing", ResetTarget{ResetShift, 3}, nil, log, 100, -1, false, "left alone: nothing is committed that could be shifted"},
		{"no log", ResetTarget{Kind: ResetEnd}, &seven, nil, 0, -1, false, "left alone: the partition does not exist or has no leader"},
	} {
		got := c.target.Step(c.committed, c.log, c.at)
		to := int64(-1)
		if got.To != nil {
			to = *got.To
		}
		if to != c.to || got.Clamped != c.clamped || got.Note != c.note {
			t.Errorf("%s: to %d, %+v", c.name, to, got)
		}
	}
	if got := shifted(-5, math.MinInt64); got != math.MinInt64 {
		t.Errorf("it goes round to %d", got)
	}
}
