package lag

import "testing"

func TestPaceIsOneVerdict(t *testing.T) {
	rates := func(consumed, produced float64) Rates {
		return Rates{Known: true, Consumed: consumed, Produced: produced}
	}
	reads := func(g GroupLag) GroupLag { g.Members, g.Left, g.Lag = 1, true, 10; return g }
	for name, c := range map[string]struct {
		of   GroupLag
		want Pace
	}{
		"nothing is unread":               {GroupLag{Members: 1, CatchUp: CaughtUp}, PaceCaughtUp},
		"no one reads, nothing is unread": {GroupLag{CatchUp: CaughtUp}, PaceCaughtUp},
		"no one reads":                    {GroupLag{Left: true, CatchUp: NotCatching, Seconds: 1e6}, PaceNoMembers},
		"no one reads, for a moment":      {GroupLag{Left: true, CatchUp: Unknown}, PaceNoMembers},
		"one who is no member reads":      {GroupLag{Left: true, ReadOutside: true, CatchUp: Catching}, PaceCatchingUp},
		"it catches up":                   {reads(GroupLag{CatchUp: Catching, Seconds: 1e6}), PaceCatchingUp},
		"it was just seen":                {reads(GroupLag{CatchUp: Unknown}), PaceTooEarly},
		"a leader is away":                {reads(GroupLag{CatchUp: Unknown, Total: Total{Unknown: true}}), PaceUnknown},
		"it cannot be counted":            {reads(GroupLag{CatchUp: Unknown, Total: Total{Approximate: true}}), PaceUnknown},
		"as fast as producers":            {reads(GroupLag{CatchUp: NotCatching, Seconds: 2, Rates: rates(10, 10)}), PaceKeepingUp},
		"nearly":                          {reads(GroupLag{CatchUp: NotCatching, Seconds: 299, Rates: rates(96, 100)}), PaceKeepingUp},
		"not as fast, for a while":        {reads(GroupLag{CatchUp: NotCatching, Seconds: 299, Rates: rates(95, 100)}), PaceTooEarly},
		"it stands still, for a while":    {reads(GroupLag{CatchUp: NotCatching, Seconds: 299, Rates: rates(0, 0)}), PaceTooEarly},
		"as fast, and far behind":         {reads(GroupLag{CatchUp: NotCatching, Seconds: 300, Rates: rates(10, 10)}), PaceNotCatchingUp},
		"a transaction holds it back":     {reads(GroupLag{CatchUp: NotCatching, Seconds: 399, Held: true}), PaceHeldBack},
	} {
		if got := c.of.Pace(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// One that keeps up has a few records to read, and by arithmetic is overtaken some day.
func TestRetentionOvertakesOnlyWhoIsFarBehind(t *testing.T) {
	for name, c := range map[string]struct {
		of   PartitionLag
		want bool
	}{
		"in years":                {PartitionLag{Lag: 2, Seconds: 2, OvertakenIn: 3808 * 24 * 3600}, false},
		"in years, far behind":    {PartitionLag{Lag: 2, Seconds: 1e6, OvertakenIn: 3808 * 24 * 3600}, false},
		"soon, and close behind":  {PartitionLag{Lag: 2, Seconds: 299, OvertakenIn: 3600}, false},
		"soon, and far behind":    {PartitionLag{Lag: 2, Seconds: 300, OvertakenIn: 24*3600 - 1}, true},
		"in a day":                {PartitionLag{Lag: 2, Seconds: 300, OvertakenIn: 24 * 3600}, false},
		"at any moment, and near": {PartitionLag{Lag: 2, Seconds: 1}, true},
	} {
		if got := c.of.Overtaken(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
