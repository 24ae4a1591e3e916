package lag

import "time"

// Verdict is what is wrong with a group in a partition.
type Verdict uint8

// Verdicts. NoOwner, NotFetching and NotCommitting are stuck partitions by who reads
// them; Stopped, Stalled and Rewound are Burrow's rules.
const (
	Fine          Verdict = iota
	NoOwner               // The group has members, and none has the partition.
	NotFetching           // Its owner does not fetch it.
	NotCommitting         // Its owner fetches it and does not commit.
	Stopped               // No one commits any more.
	Stalled               // The same offset is committed again and again.
	Rewound               // The group went back.
)

var verdictNames = [...]string{"", "no-owner", "not-fetching", "not-committing", "stopped", "stalled", "rewound"}

func (v Verdict) String() string { return verdictNames[v] }

// Stuck says whether the partition stands still in a group that has members.
func (v Verdict) Stuck() bool {
	return v == NoOwner || v == NotFetching || v == NotCommitting || v == Stalled
}

const (
	// stuckAfter and stuckFactor say when a partition is stuck: it had lag all the
	// time, and the committed offset stayed for five minutes and five times as long
	// as it usually does.
	stuckAfter  = 5 * minute
	stuckFactor = 5
	// rewoundFor is for how long it is told that a group went back.
	rewoundFor = 5 * minute
	// fetchesWithin is when an owner must have fetched to count as fetching. A fetch
	// waits for half a second by default; a client whose buffer is full does not fetch.
	fetchesWithin = time.Minute
	// learnedMost is how much of one wait is learned: after a partition was stuck
	// for an hour, another hour should not seem usual.
	learnedMost = 2 * stuckAfter
)

// progress remembers how a group gets on in a partition. Times are 0 for never.
type progress struct {
	changed tick // When the committed offset did. At first sight we take it for changed.
	lagging tick // Since when there is lag.
	rewound tick // When it went back.
	usual   tick // How long a committed offset usually stays while there is lag.
}

// movement is what became of a committed offset.
type movement uint8

const (
	stayed movement = iota
	appeared
	advanced
	wentBack
)

// observe notes what was seen.
func (p *progress) observe(now tick, m movement, lags bool) {
	switch m {
	case appeared:
		*p = progress{changed: now}
	case advanced, wentBack:
		if p.lagging != 0 {
			p.learn(now - max(p.changed, p.lagging))
		}
		p.changed = now
		if m == wentBack {
			p.rewound = now
		}
	case stayed:
	}
	switch {
	case !lags:
		p.lagging = 0
	case p.lagging == 0:
		p.lagging = now
	}
}

// learn takes a wait into the average, of which it is a quarter.
func (p *progress) learn(waited tick) {
	waited = min(waited, max(learnedMost, 2*p.usual))
	if p.usual == 0 {
		p.usual = waited
		return
	}
	p.usual = (3*p.usual + waited) / 4
}

// patience is how long a committed offset may stay.
func (p *progress) patience() tick { return max(stuckAfter, stuckFactor*p.usual) }

// reading is what is known of who reads a partition.
type reading struct {
	now       tick
	members   bool          // The group has some.
	held      bool          // An open transaction keeps readers from going on: it is not they who stand still.
	owner     Owner         // Who has it.
	fetched   time.Duration // How long ago its owner fetched. Negative: never.
	committed time.Duration // How long ago someone committed, the same offset or another. Negative: not known.
}

// judge says what is wrong.
func (p *progress) judge(r reading) Verdict {
	if p.rewound != 0 && r.now-p.rewound < rewoundFor {
		return Rewound
	}
	if p.lagging == 0 || r.held || r.now-max(p.changed, p.lagging) < p.patience() {
		return Fine
	}
	commits := r.committed >= 0 && r.committed < time.Duration(p.patience())*tenth
	switch {
	case !r.members, r.owner == OwnerUnknown && !commits:
		return Stopped
	case r.owner == OwnerUnknown:
		return Stalled
	case r.owner == OwnerNone:
		return NoOwner
	case r.fetched < 0 || r.fetched >= fetchesWithin:
		return NotFetching
	case commits:
		return Stalled
	}
	return NotCommitting
}
