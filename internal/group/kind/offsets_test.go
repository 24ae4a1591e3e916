package kind

import (
	"testing"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
)

// Of several transactions that commit a partition, the one whose record comes last counts, in
// whichever order they end: that is the record which compaction keeps. One that aborts counts
// for nothing.
func TestTheLastRecordOfTransactionsCounts(t *testing.T) {
	const committed, aborted = true, false
	type end struct {
		producer int64
		commit   bool
	}
	for what, c := range map[string]struct {
		ends []end
		want int64
	}{
		"in the order of their records": {[]end{{1, committed}, {2, committed}}, 20},
		"the last one first":            {[]end{{2, committed}, {1, committed}}, 20},
		"the last one aborts":           {[]end{{2, aborted}, {1, committed}}, 10},
		"the first one aborts":          {[]end{{1, aborted}, {2, committed}}, 20},
		"both abort":                    {[]end{{2, aborted}, {1, aborted}}, 5},
	} {
		b, tp := &Base{ID: "g"}, subscription.TopicPartition{Topic: "t"}
		b.ApplyOffset(&schema.OffsetRecord{Group: "g", Topic: "t", Value: &schema.Offset{Offset: 5}})
		b.Unstable = map[subscription.TopicPartition][]Unstable{tp: {{Producer: 1, Value: schema.Offset{Offset: 10}}, {Producer: 2, Value: schema.Offset{Offset: 20}}}}
		for _, e := range c.ends {
			b.End(e.producer, tp, e.commit)
		}
		if got, _ := b.Offsets["t"].Get(0); got.Offset != c.want || b.Unstable != nil {
			t.Errorf("%s: the offset is %d, want %d; %v are left", what, got.Offset, c.want, b.Unstable)
		}
	}
}
