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

// What may be wrong with a group, beside what its fields say. Package explain has the
// table of findings, which is made of these.

// Unread says that there is something to read, and no one reads it.
func (g *GroupLag) Unread() bool { return g.Members == 0 && g.Left && !g.ReadOutside }

// Overtaken says whether it matters that retention overtakes the group.
func (g *GroupLag) Overtaken() bool { return isOvertaken(g.OvertakenIn, g.Seconds) }

// NotCatchingUp says that the group is far behind and does not get nearer, though it has
// members.
func (g *GroupLag) NotCatchingUp() bool { return g.Pace() == PaceNotCatchingUp && g.Members > 0 }

// Rewound says that the group went back.
func (g *GroupLag) Rewound() bool { return g.Verdicts[Rewound] > 0 }

// isOvertaken says whether it matters that retention deletes what is unread: it may do so
// at any moment, or will within a day to one that is far behind. One that keeps up always
// has a few records to read, and will not be overtaken however the arithmetic goes.
func isOvertaken(in, behind float64) bool {
	return in == 0 || in < overtakenSoon.Seconds() && behind >= catchesLate.Seconds()
}

// Overtaken says whether it matters that retention overtakes the group in the partition.
func (p *PartitionLag) Overtaken() bool { return isOvertaken(p.OvertakenIn, p.Seconds) }
