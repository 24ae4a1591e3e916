package watch

import (
	"sync"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/lag"
)

// news is what happened to groups between passes. It is told under the locks of shards,
// and no one waits.
type news struct {
	mu         sync.Mutex
	deleted    map[string]bool
	rebalanced map[string]rebalanced
	died       map[string][]lag.Death
	dead       int // How many there are of these.
}

// rebalanced is when the last rebalance of a group ended, and why it was.
type rebalanced struct {
	at    time.Time
	cause string
}

// Observe takes in what happened to groups. It is called under a lock, and does not wait.
// Where members were that died is for the watch alone: it is taken out of the entries.
func (w *Watch) Observe(entries []journal.Entry) {
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case journal.KindDeleted:
			w.deleted(e.Group)
		case journal.KindSettled:
			cause := ""
			if len(e.Triggers) > 0 {
				cause = string(e.Triggers[0].Kind)
			}
			w.rebalanced(e.Group, e.Time, cause)
		}
		for j := range e.Triggers {
			t := &e.Triggers[j]
			if len(t.At) == 0 {
				continue
			}
			deaths := make([]lag.Death, len(t.At))
			for k, p := range t.At {
				deaths[k] = lag.Death{Who: lag.Who(t.Member), Topic: p.Topic, Partition: p.Partition, Committed: p.Committed}
			}
			w.died(e.Group, deaths)
			t.At = nil
		}
	}
}

// deleted says that a group is gone: another of its name has no part in its past.
func (w *Watch) deleted(group string) {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	if w.news.deleted == nil {
		w.news.deleted = map[string]bool{}
	}
	w.news.deleted[group] = true
	delete(w.news.rebalanced, group)
	w.news.dead -= len(w.news.died[group])
	delete(w.news.died, group)
}

// rebalanced says that a rebalance of a group has ended.
func (w *Watch) rebalanced(group string, at time.Time, cause string) {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	if w.news.rebalanced == nil {
		w.news.rebalanced = map[string]rebalanced{}
	}
	w.news.rebalanced[group] = rebalanced{at.UTC(), cause}
}

// take returns what happened since the last time.
func (n *news) take() (deleted map[string]bool, settled map[string]rebalanced, died map[string][]lag.Death) {
	n.mu.Lock()
	defer n.mu.Unlock()
	deleted, settled, died = n.deleted, n.rebalanced, n.died
	n.deleted, n.rebalanced, n.died, n.dead = nil, nil, nil, 0
	return deleted, settled, died
}

// maxDeaths is how many deaths in partitions are remembered until the next pass. More are no
// record's doing.
const maxDeaths = 20_000

// died says that a member of a group is gone, and where it was.
func (w *Watch) died(group string, deaths []lag.Death) {
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

// tell tells of records that have become suspect in a pass: members died one after the
// other at the same committed offset.
func (w *Watch) tell(suspected []lag.Suspicion) {
	snapshot := w.Snapshot()
	for i := range suspected {
		s := &suspected[i]
		g, ok := snapshot.Groups.Get(s.Group)
		if !ok || w.opts.Suspected == nil {
			continue
		}
		e := journal.Entry{Time: snapshot.At, Group: s.Group, Kind: journal.KindSuspected, State: g.State, Before: g.Members, After: g.Members, SuspectN: s.N}
		if journal.Assigns(g.Type) {
			e.Type = g.Type
		}
		for _, p := range s.Partitions {
			e.Suspects = append(e.Suspects, journal.Suspect(p))
		}
		w.opts.Suspected(e)
	}
}
