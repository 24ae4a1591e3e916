package lag

import "time"

const (
	// catchesLate is how far behind a group must be before it matters that it does
	// not catch up, or that retention would delete what it reads next: one that keeps up
	// always has a few records to read.
	catchesLate = 5 * time.Minute
	// overtakenSoon is when it matters that retention will overtake a group.
	overtakenSoon = 24 * time.Hour
)

// Findings returns the ids of what is wrong with a group, worst first. Those that
// package explain knows too have its ids.
func (g *GroupLag) Findings() []string {
	var out []string
	for _, f := range [...]struct {
		id    string
		found bool
	}{
		{"poison-suspect", g.Poison > 0},
		{"members-keep-dying", g.Dying},
		{"stuck-partition", g.Stuck > 0},
		{"lag-without-members", g.Members == 0 && g.Left && !g.ReadOutside},
		{"retention-overtakes", isOvertaken(g.OvertakenIn, g.Seconds)},
		{"not-catching-up", g.Pace() == PaceNotCatchingUp && g.Members > 0},
		{"offsets-rewound", g.Verdicts[Rewound] > 0},
	} {
		if f.found {
			out = append(out, f.id)
		}
	}
	return out
}
