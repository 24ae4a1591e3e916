package web

import (
	"cmp"
	"time"

	"muster/internal/watch/explain"
	"muster/internal/watch/list"
	"muster/internal/web/problem"
)

// OverviewQuery asks how it all is.
type OverviewQuery struct {
	Limit int `query:"limit" doc:"how many groups that need attention, at most 1000; 20 if not given"`
}

// Overview is how the broker and its groups are.
type Overview struct {
	At         *time.Time `json:"at" doc:"when the groups were looked at; null before the first look"`
	Health     Health     `json:"health"`
	Groups     *int       `json:"groups" doc:"how many there are; null if you may not see all"`
	Topics     int        `json:"topics" doc:"how many there are, internal ones left out, of those that you may see"`
	Needing    int        `json:"needing" doc:"how many groups need attention"`
	Worst      []NeedyRow `json:"worst" csv:"rows" doc:"groups that need attention, worst first"`
	Unwell     []Health   `json:"unwell" doc:"other brokers that are not well"`
	Incomplete []Silent   `json:"incomplete" doc:"brokers whose groups are not in the list"`
}

// NeedyRow is a group that needs attention.
type NeedyRow struct {
	Name       string   `json:"name"`
	State      string   `json:"state"`
	Lag        int64    `json:"lag"`
	LagSeconds float64  `json:"lagSeconds"`
	Findings   []string `json:"findings" doc:"what is wrong, worst first"`
	Text       string   `json:"text" doc:"the worst of it, in a sentence"`
}

const neediest = 20

// ownOverview tells of this broker's groups.
func (a *api) ownOverview(c *call, q *OverviewQuery) (*Overview, error) {
	limit := cmp.Or(q.Limit, neediest)
	if limit > list.MaxLimit {
		return nil, problem.BadRequest("limit is at most %d", list.MaxLimit)
	}
	s := a.reads.Snapshot()
	out := &Overview{At: known(s.At), Health: a.health().judged(), Worst: []NeedyRow{}, Unwell: []Health{}, Incomplete: a.unasked(c, "groups")}
	ask := list.Query{Found: true, Sort: list.BySeconds, Reverse: true, Limit: limit, Sees: a.groupsSeen(c)}
	all, err := s.Groups.Find(&ask)
	if err != nil {
		return nil, err
	}
	if out.Needing = all.Matched; all.Total >= 0 {
		out.Groups = &all.Total
	}
	told := map[string]bool{}
	tell := func(groups []*list.GroupRow) {
		for _, g := range groups {
			if !told[g.Name] && len(out.Worst) < limit {
				told[g.Name] = true
				out.Worst = append(out.Worst, NeedyRow{g.Name, g.State, g.Lag, g.LagSeconds, some(g.Findings), explain.Sentence(g)})
			}
		}
	}
	for _, kind := range explain.WatchedKinds {
		ask.Findings = []string{kind.ID}
		page, err := s.Groups.Find(&ask)
		if err != nil {
			return nil, err
		}
		tell(page.Groups)
	}
	tell(all.Groups)
	seen := a.topicsSeen(c)
	for i := range s.Topics {
		if !s.Topics[i].Internal && seen.has(s.Topics[i].Name) {
			out.Topics++
		}
	}
	return out, nil
}
