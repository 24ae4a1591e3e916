package watch

import (
	"time"

	"muster/internal/watch/lag"
)

// maxDeaths is how many deaths in partitions are remembered until the next pass. More are no
// record's doing.
const maxDeaths = 20_000

// Died says that a member of a group is gone, and where it was.
func (w *Watch) Died(group string, deaths []lag.Death) {
	n := &w.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead+len(deaths) > maxDeaths {
		return
	}
	if n.died == nil {
		n.died = map[string][]lag.Death{}
	}
	n.dead += len(deaths)
	n.died[group] = append(n.died[group], deaths...)
}

// Suspicion is that members of a group died one after the other at the same committed offset.
type Suspicion struct {
	lag.Suspicion
	At          time.Time
	Type, State string
	Members     int
}

// tell tells of records that have become suspect in a pass.
func (w *Watch) tell(suspected []lag.Suspicion) {
	s := w.Snapshot()
	for i := range suspected {
		if g, ok := s.Groups.Get(suspected[i].Group); ok && w.opts.Suspected != nil {
			w.opts.Suspected(Suspicion{suspected[i], s.At, g.Type, g.State, g.Members})
		}
	}
}
