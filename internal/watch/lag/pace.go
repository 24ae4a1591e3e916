package lag

// Pace is how a group gets on, in one word. All who tell of a group go by it, so that none
// says something else than another.
type Pace uint8

// Paces.
const (
	PaceUnknown       Pace = iota // Its lag, or what it reads, cannot be counted.
	PaceCaughtUp                  // Nothing is to be read.
	PaceCatchingUp                // It will have read everything after CatchUpTime.
	PaceKeepingUp                 // It reads about as much as is produced, and is close to the end.
	PaceNotCatchingUp             // It is far from the end, and does not get nearer.
	PaceHeldBack                  // An open transaction keeps it from reading what is old.
	PaceNoMembers                 // No one reads.
	PaceTooEarly                  // It was not watched for long enough, or is not far enough behind, to say more.
)

var paceNames = [...]string{"unknown", "caught-up", "catching-up", "keeping-up", "not-catching-up", "held-back", "no-members", "too-early"}

func (p Pace) String() string { return paceNames[p] }

// Pace decides how the group gets on.
func (g *GroupLag) Pace() Pace {
	late := g.Seconds >= catchesLate.Seconds()
	switch {
	case g.CatchUp == CaughtUp:
		return PaceCaughtUp
	case g.Unread():
		return PaceNoMembers
	case g.CatchUp == Catching:
		return PaceCatchingUp
	case g.CatchUp == Unknown && (g.Unknown || g.Approximate):
		return PaceUnknown
	case g.CatchUp == Unknown:
		return PaceTooEarly
	case g.Held:
		return PaceHeldBack
	case late:
		return PaceNotCatchingUp
	case g.Rates.Consumed > 0 && g.Rates.Consumed*catchFactor >= g.Rates.Produced:
		return PaceKeepingUp
	}
	return PaceTooEarly
}
