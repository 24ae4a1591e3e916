package kind

import (
	"slices"

	"muster/internal/journal"
	"muster/internal/machine"
)

// How much of a long list the journal keeps.
const (
	MaxTriggers = 20
	MaxSlowest  = 5
	MaxMoves    = 100
	MaxNames    = 20  // of topics and protocols
	MaxReason   = 255 // characters, as in Kafka's own clients
)

// who returns who sent a request, a member or not.
func By(r *machine.Request) *journal.Who { return &journal.Who{ClientID: r.ClientID, Host: r.Host} }

func Truncate(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// Note writes an entry that is not the end of a rebalance.
func (x *Step) Note(g Group, kind journal.EntryKind, why ...journal.Trigger) {
	e := g.Entry(x, kind)
	SetTriggers(&e, why)
	x.Out.Notes = append(x.Out.Notes, &e)
}

// SetTriggers gives an entry its reasons.
func SetTriggers(e *journal.Entry, why []journal.Trigger) {
	e.TriggerN = len(why)
	e.Triggers = why[:min(len(why), MaxTriggers)]
}

// MaxWho is how many characters of a name the journal keeps. A client makes its member
// id itself, however long.
const MaxWho = 128

// Without lists the first of those that are not among the others, and says how
// many there are.
func Without(names, others []string) (list []string, count int) {
	known := make(map[string]bool, len(others))
	for _, name := range others {
		known[name] = true
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if known[name] {
			continue
		}
		if count++; len(list) < MaxNames {
			list = append(list, name)
		}
	}
	return list, count
}
