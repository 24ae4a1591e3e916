package group

import (
	"slices"

	"muster/internal/journal"
	"muster/internal/machine"
)

// How much of a long list the journal keeps.
const (
	maxTriggers = 20
	maxSlowest  = 5
	maxMoves    = 100
	maxNames    = 20  // of topics and protocols
	maxReason   = 255 // characters, as in Kafka's own clients
)

// who returns who sent a request, a member or not.
func by(r *machine.Request) *journal.Who { return &journal.Who{ClientID: r.ClientID, Host: r.Host} }

func firstCharacters(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// note writes an entry that is not the end of a rebalance.
func (x *step) note(g Group, kind journal.EntryKind, why ...journal.Trigger) {
	e := g.entry(x, kind)
	because(&e, why)
	x.out.Notes = append(x.out.Notes, &e)
}

// because gives an entry its reasons.
func because(e *journal.Entry, why []journal.Trigger) {
	e.TriggerN = len(why)
	e.Triggers = why[:min(len(why), maxTriggers)]
}

// maxWho is how many characters of a name the journal keeps. A client makes its member
// id itself, however long.
const maxWho = 128

// without lists the first of those that are not among the others, and says how
// many there are.
func without(names, others []string) (list []string, count int) {
	known := make(map[string]bool, len(others))
	for _, name := range others {
		known[name] = true
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if known[name] {
			continue
		}
		if count++; len(list) < maxNames {
			list = append(list, name)
		}
	}
	return list, count
}
