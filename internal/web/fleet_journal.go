package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"muster/internal/watch/explain"
	"muster/internal/web/facts"
	"muster/internal/web/fleet"
)

// journal searches what happened to all groups: each broker that has a part of the journal
// searches that.
func (a *api) journal(c *call, q *JournalSearch) (*Journal, error) {
	own, nodes, err := a.ownJournal(c, q)
	if err != nil || c.note != nil {
		return own, err
	}
	targets, silent := a.journalTargets(nodes)
	answers, more := askOthers[Journal](a, c, targets, fleet.Question{URI: withQuery(Prefix+"/journal", jsonQuery(c.request))})
	silent = append(silent, more...)
	own.Incomplete = silent
	for _, t := range answers {
		own.Entries = append(own.Entries, t.answer.Entries...)
		own.Partly = own.Partly || t.answer.Partly
	}
	limit, err := journalLimit(q.Limit)
	entries, cut := latestOf(own.Entries, limit)
	own.Entries, own.Partly = entries, own.Partly || cut
	return own, err
}

// latestOf puts entries into order of time, keeps the latest, and says whether there were more.
func latestOf(entries []JournalEntry, limit int) (latest []JournalEntry, more bool) {
	slices.SortStableFunc(entries, func(x, y JournalEntry) int { return x.Time.Compare(y.Time) })
	return entries[max(len(entries)-limit, 0):], len(entries) > limit
}

// journalTargets returns the brokers among some that can be asked for their part of the
// journal, and says of the rest why not.
func (a *api) journalTargets(nodes []int32) (targets []fleet.Target, silent []Silent) {
	silent = []Silent{}
	for _, node := range nodes {
		if node < 0 {
			silent = append(silent, Silent{node, noLeader("journal")})
			continue
		}
		if a.fleet != nil {
			if t, known := a.target(node); known {
				targets = append(targets, t)
				continue
			}
		}
		silent = append(silent, Silent{node, fmt.Sprintf("it has a part of the journal; ask broker %d", node)})
	}
	return targets, silent
}

// journalOf returns the journal of the group that a request is about, as the caller may see
// it.
func (a *api) journalOf(c *call, since time.Time) (*facts.JournalPage, []Silent, error) {
	page, silent, err := a.wholeJournal(c, since)
	if err == nil {
		err = a.hideTopics(c, page.Entries)
	}
	return page, silent, err
}

// wholeJournal asks another broker than the group's for the journal if that has it, also if
// the request was passed on to this one.
func (a *api) wholeJournal(c *call, since time.Time) (*facts.JournalPage, []Silent, error) {
	group := c.param("group")
	page, err := a.reads.Journal(c.ctx(), facts.JournalQuery{Group: group, Since: since, Limit: maxJournalEntries})
	if err != nil || c.passed() >= fleet.MaxDepth {
		return page, []Silent{}, err
	}
	targets, silent := a.journalTargets(page.Others)
	if len(targets) == 0 {
		return page, silent, nil
	}
	q := url.Values{"all": {"true"}, "limit": {fmt.Sprint(maxJournalEntries)}, "since": {fmt.Sprintf("%ds", int(max(a.now().Sub(since), time.Second).Seconds()))}}
	answers, more := askOthers[Journal](a, c, targets, fleet.Question{URI: fmt.Sprintf("%s/groups/%s/journal?%s", Prefix, url.PathEscape(group), q.Encode())})
	silent = append(silent, more...)
	for _, t := range answers {
		if err := addJournal(c.ctx(), page, t.answer); err != nil {
			silent = append(silent, Silent{t.node, err.Error()})
		}
	}
	return page, silent, nil
}

// addJournal adds what another broker found.
func addJournal(ctx context.Context, p *facts.JournalPage, theirs *Journal) error {
	p.Exists, p.Partly = p.Exists || theirs.Kept, p.Partly || theirs.Partly
	for i := range theirs.Entries {
		e, err := explain.ReadEntry(theirs.Entries[i].Entry)
		if err != nil {
			return errors.New(unreadable)
		}
		p.Entries = append(p.Entries, e)
	}
	slices.SortStableFunc(p.Entries, func(x, y explain.Entry) int { return x.Time.Compare(y.Time) })
	return ctx.Err()
}
