package web

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"muster/internal/watch/explain"
	"muster/internal/web/fleet"
)

// overview shows what someone on call wants to see first, of all brokers.
func (a *api) overview(c *call, q *OverviewQuery) (*Overview, error) {
	own, err := a.ownOverview(c, q)
	others := a.others(c)
	if err != nil || len(others) == 0 {
		return own, err
	}
	answers, silent := askOthers[Overview](a, c, others, fleet.Question{URI: withQuery(Prefix+"/overview", jsonQuery(c.request))})
	own.Incomplete = silent
	for _, t := range answers {
		theirs := t.answer
		own.Groups, own.Needing = sum(own.Groups, theirs.Groups), own.Needing+theirs.Needing
		own.Worst = append(own.Worst, theirs.Worst...)
		if theirs.Health.Status != wellStatus {
			own.Unwell = append(own.Unwell, theirs.Health)
		}
		if theirs.At == nil {
			own.Incomplete = append(own.Incomplete, Silent{t.node, notLooked})
		}
		own.At = oldest(own.At, theirs.At)
	}
	own.Worst = worstOf(own.Worst, cmp.Or(q.Limit, neediest))
	return own, nil
}

// worstOf returns the first of some groups in the order of ownOverview. One that two
// brokers tell of has just moved, and is told once.
func worstOf(rows []NeedyRow, limit int) []NeedyRow {
	sort.SliceStable(rows, func(i, j int) bool {
		x, y := &rows[i], &rows[j]
		return cmp.Or(cmp.Compare(rank(x.Findings), rank(y.Findings)), -cmp.Compare(max(x.LagSeconds, 0), max(y.LagSeconds, 0)), -cmp.Compare(x.Name, y.Name)) < 0
	})
	told := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(r NeedyRow) bool {
		was := told[r.Name]
		told[r.Name] = true
		return was
	})
	return rows[:min(len(rows), limit)]
}

// rank is how bad the worst of some findings is, 0 for the worst.
func rank(findings []string) int {
	for i, kind := range explain.WatchedKinds {
		if slices.Contains(findings, kind.ID) {
			return i
		}
	}
	return len(explain.WatchedKinds)
}

// brokers lists the brokers, and how each of them is.
func (a *api) brokers(c *call, _ *None) (*BrokerList, error) {
	own := a.ownBrokers()
	others := a.others(c)
	if len(others) == 0 {
		return own, nil
	}
	answers, silent := askOthers[BrokerList](a, c, others, fleet.Question{URI: Prefix + "/brokers"})
	own.Incomplete = silent
	for _, t := range answers {
		i := slices.IndexFunc(own.Brokers, func(b BrokerRow) bool { return b.ID == t.node })
		j := slices.IndexFunc(t.answer.Brokers, func(b BrokerRow) bool { return b.ID == t.node })
		if i < 0 || j < 0 {
			own.Incomplete = append(own.Incomplete, Silent{t.node, "it is just joining or leaving"})
			continue
		}
		own.Brokers[i].Groups, own.Brokers[i].Health = t.answer.Brokers[j].Groups, t.answer.Brokers[j].Health
	}
	return own, nil
}

// hasAnother says whether another broker has a group.
func (a *api) hasAnother(group string) bool {
	node := a.coordinatorOf(group)
	return node >= 0 && node != a.reads.Node()
}

// What is said of a broker whose answer is of no use.
const (
	unreadable = "its answer cannot be read: it may be of another version"
	notLooked  = "it has not looked at its groups yet, which it does within seconds of its start"
)

// noLeader says that a part of something has no broker.
func noLeader(what string) string { return fmt.Sprintf("a part of the %s has no broker now", what) }
