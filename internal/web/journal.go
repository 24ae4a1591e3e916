package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"muster/internal/watch/explain"
	"muster/internal/web/facts"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

// GroupJournalQuery asks for the journal of a group.
type GroupJournalQuery struct {
	Since time.Duration `query:"since" doc:"how far to look back: 30m, 24h, 7d; 24h if not given"`
	Limit int           `query:"limit" doc:"the latest so many entries, at most 1000; 100 if not given"`
	All   bool          `query:"all" doc:"also the start of rebalances whose end is there"`
}

// JournalSearch asks for the journal of all groups.
type JournalSearch struct {
	Q     string        `query:"q" doc:"a part of the group's name, in large or small letters"`
	Kind  []string      `query:"kind" doc:"only entries of these kinds: rebalance-settled, group-deleted …"`
	Cause []string      `query:"cause" doc:"only entries with one of these triggers or causes: joined, left, expired …"`
	Who   string        `query:"member" doc:"only entries that name this member id, client id, host or instance id"`
	Since time.Duration `query:"since" doc:"how far to look back: 30m, 24h, 7d; 1h if not given"`
	Limit int           `query:"limit" doc:"the latest so many entries, at most 1000; 100 if not given"`
}

// Journal is entries of the journal.
type Journal struct {
	Kept       bool           `json:"kept" doc:"whether there is a journal: it begins with the first rebalance"`
	Since      time.Time      `json:"since" doc:"how far back was searched"`
	Entries    []JournalEntry `json:"entries" csv:"rows" doc:"the oldest first"`
	Partly     bool           `json:"partly" doc:"there is more than these entries: the search found more than the limit, of which these are the latest, or ended before it had seen everything; look less far back, or at one group"`
	Incomplete []Silent       `json:"incomplete" doc:"brokers whose entries are not in the list"`
}

// JournalEntry is what happened to a group.
type JournalEntry struct {
	Time       time.Time `json:"time"`
	Group      string    `json:"group"`
	Kind       string    `json:"kind"`
	Generation int32     `json:"generation" doc:"the group epoch of a consumer group"`
	Text       string    `json:"text" doc:"who and why, in a line"`
	Entry      RawEntry  `json:"entry" doc:"what the broker wrote to the journal; topics that you may not see are (hidden)"`
}

const (
	journalEntries    = 100 // By default.
	maxJournalEntries = 1000
)

func journalLimit(limit int) (int, error) {
	if limit > maxJournalEntries {
		return 0, problem.BadRequest("limit is at most %d", maxJournalEntries)
	}
	return cmp.Or(limit, journalEntries), nil
}

// groupJournal shows what happened to a group.
func (a *api) groupJournal(c *call, q *GroupJournalQuery) (*Journal, error) {
	limit, err := journalLimit(q.Limit)
	if err != nil {
		return nil, err
	}
	since := a.ago(cmp.Or(q.Since, 24*time.Hour))
	page, silent, err := a.journalOf(c, since)
	if err != nil {
		return nil, err
	}
	if !q.All {
		page.Entries = explain.WithoutStarts(page.Entries)
	}
	if more := len(page.Entries) - limit; more > 0 {
		page.Entries, page.Partly = page.Entries[more:], true
	}
	out := shownJournal(page, since)
	out.Incomplete = silent
	return out, nil
}

// ownJournal searches what happened to groups, as far as this broker has it, and says
// who has the rest.
func (a *api) ownJournal(c *call, q *JournalSearch) (out *Journal, others []int32, err error) {
	limit, err := journalLimit(q.Limit)
	if err != nil {
		return nil, nil, err
	}
	since := a.ago(cmp.Or(q.Since, time.Hour))
	seen := a.groupsSeen(c)
	text := strings.ToLower(q.Q)
	page, err := a.reads.Journal(c.ctx(), facts.JournalQuery{Since: since, Limit: limit, Match: func(e *explain.Entry) bool {
		return (len(q.Kind) == 0 || slices.Contains(q.Kind, string(e.Kind))) &&
			strings.Contains(strings.ToLower(e.Group), text) &&
			(len(q.Cause) == 0 || hasCause(e, q.Cause)) &&
			(q.Who == "" || isAbout(e, q.Who)) &&
			(seen == nil || seen(e.Group))
	}})
	if err == nil {
		err = a.hideTopics(c, page.Entries)
	}
	if err != nil {
		return nil, nil, err
	}
	return shownJournal(page, since), page.Others, nil
}

// hideTopics takes the names of topics that the caller may not see out of entries: the right
// to a group is none to know what it reads.
func (a *api) hideTopics(c *call, entries []explain.Entry) error {
	seen, image := a.topicsSeen(c), a.reads.Image()
	for i := range entries {
		if err := entries[i].Hide(seen.has, func(name string) bool { return image.Topic(name) != nil }); err != nil {
			return err
		}
	}
	return nil
}

// hasCause says whether one of the causes is among those of an entry.
func hasCause(e *explain.Entry, causes []string) bool {
	for i := range e.Triggers {
		if slices.Contains(causes, string(e.Triggers[i].Kind)) {
			return true
		}
	}
	return e.Cause != "" && slices.Contains(causes, string(e.Cause))
}

// isAbout says whether an entry is about someone.
func isAbout(e *explain.Entry, who string) bool {
	for i := range e.Triggers {
		t := &e.Triggers[i]
		if slices.Contains([]string{t.Member, t.ClientID, t.Host, t.Instance, t.Was}, who) {
			return true
		}
		if b := t.By; b != nil && slices.Contains([]string{b.Member, b.ClientID, b.Host, b.Instance}, who) {
			return true
		}
	}
	b := e.By
	return b != nil && slices.Contains([]string{b.Member, b.ClientID, b.Host, b.Instance}, who)
}

func shownJournal(page *facts.JournalPage, since time.Time) *Journal {
	out := &Journal{Kept: page.Exists, Since: since.UTC(), Entries: []JournalEntry{}, Partly: page.Partly, Incomplete: []Silent{}}
	for i := range page.Entries {
		e := &page.Entries[i]
		out.Entries = append(out.Entries, JournalEntry{e.Time, e.Group, string(e.Kind), e.Generation, e.Line(), RawEntry(e.Raw)})
	}
	return out
}

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
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].Time.Before(entries[j].Time) })
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
	explain.SortEntries(p.Entries)
	return ctx.Err()
}
