package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// explainedGroup has the fields of muster groups explain --json.
type explainedGroup struct {
	Name           string               `json:"name"`
	State          string               `json:"state"` // Dead if there is no such group any more.
	ProtocolType   string               `json:"protocol_type"`
	Assignor       string               `json:"assignor"`
	Members        int                  `json:"members"`
	TotalLag       *int64               `json:"total_lag"`
	Text           string               `json:"text"`
	Journal        bool                 `json:"journal"`
	SinceSeconds   float64              `json:"since_seconds"`
	RebalanceCount int                  `json:"rebalance_count"`
	UnderWay       *explainedUnderWay   `json:"under_way"`
	Rebalances     []explainedRebalance `json:"rebalances"`
	EventCount     int                  `json:"event_count"`
	Events         []explainedEvent     `json:"events"`
	Findings       []finding            `json:"findings"`
}

// explainedEvent is something other than a rebalance.
type explainedEvent struct {
	Time  time.Time       `json:"time"`
	Kind  string          `json:"kind"`
	Text  string          `json:"text"`
	Entry json.RawMessage `json:"entry"`
}

type explainedUnderWay struct {
	Started time.Time       `json:"started"`
	Text    []string        `json:"text"`
	Entry   json.RawMessage `json:"entry"`
}

// explainedRebalance is a rebalance that has settled. The entry is what the
// broker wrote to the journal.
type explainedRebalance struct {
	Started         time.Time       `json:"started"`
	Settled         time.Time       `json:"settled"`
	Generation      int32           `json:"generation"`
	TookSeconds     float64         `json:"took_seconds"`
	JoinSeconds     float64         `json:"join_seconds"`
	SyncSeconds     float64         `json:"sync_seconds"`
	MembersBefore   int             `json:"members_before"`
	MembersAfter    int             `json:"members_after"`
	PartitionsMoved int             `json:"partitions_moved"`
	Partitions      int             `json:"partitions"`
	Text            []string        `json:"text"`
	Entry           json.RawMessage `json:"entry"`
}

// explainFlags are the flags of muster groups explain.
type explainFlags struct {
	clientFlags
	since string
	limit int
}

func groupsExplainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a group rebalanced, and what is odd about it",
		Long: `Say in plain sentences why a group rebalanced lately: who joined, left, went
silent or changed its subscription, how long the group waited and for whom, and
which partitions moved. Then what else happened to it: a process that lost its
place to another, offsets that were reset or expired. Then what is odd about the
group now, and what to change.

The past comes from the group journal, which a muster broker keeps in the topic
` + journalTopic + `. With other brokers only the second part is known.

With --json it prints one object with the fields name, state, protocol_type,
assignor, members, total_lag, text, journal (whether there is one),
since_seconds, rebalance_count, under_way (started, text, entry; null if no
rebalance is), rebalances (started, settled, generation, took_seconds,
join_seconds, sync_seconds, members_before, members_after, partitions_moved,
partitions, text, entry), event_count, events (time, kind, text, entry) and
findings (id, text, change). Each entry is what the broker wrote to the journal.`,
		Example: `  muster groups explain billing
  muster groups explain billing --since 24h --limit 10
  muster groups explain billing --json | jq -r '.findings[].id'`,
		Args:              oneGroup,
		ValidArgsFunction: completeGroups(&flags.clientFlags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return explainGroup(cmd, &flags, args[0]) },
	}
	flags.add(cmd, "print a JSON object")
	cmd.Flags().StringVar(&flags.since, "since", "1h", "how `long` to look back: 30m, 24h, 7d")
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 3, "tell of the latest `N` rebalances, and of as many other events; 0 for all")
	return cmd
}

func explainGroup(cmd *cobra.Command, flags *explainFlags, name string) error {
	since, err := parseSince(flags.since)
	if err != nil {
		return err
	}
	if flags.limit < 0 {
		return usagef("--limit cannot be negative")
	}
	e, err := flags.gather(cmd, name, since)
	if err != nil {
		return err
	}
	explained := e.explain(name, flags.limit)
	if flags.json {
		return writeJSON(cmd.OutOrStdout(), explained)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), explained.format(e))
	return err
}

// gather asks for all that there is to know about a group.
func (f *explainFlags) gather(cmd *cobra.Command, name string, since time.Duration) (*evidence, error) {
	ctx := cmd.Context()
	client, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	loader := newGroupLoader(client)
	g, err := loader.one(ctx, name)
	if err != nil {
		return nil, err
	}
	e := &evidence{group: g, journal: true, counts: loader.logs.count, now: time.Now(), since: since}
	e.entries, err = readJournal(ctx, &f.clientFlags, name, e.now.Add(-since))
	if errors.Is(err, errNoJournal) {
		e.journal, err = false, nil
	}
	if err != nil {
		return nil, err
	}
	if g == nil && len(e.entries) == 0 {
		return nil, &noGroupError{name}
	}
	if g != nil {
		if err := g.addLagSeconds(ctx, &f.clientFlags); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *evidence) explain(name string, limit int) *explainedGroup {
	out := &explainedGroup{
		Name: name, State: stateDead, Text: e.describeNow(name), Journal: e.journal, SinceSeconds: e.since.Seconds(),
		Rebalances: []explainedRebalance{}, Events: []explainedEvent{}, Findings: e.findings(),
	}
	if g := e.group; g != nil {
		out.State, out.ProtocolType, out.Assignor, out.Members, out.TotalLag = g.State, g.ProtocolType, g.Assignor, len(g.Members), g.TotalLag
	}
	if s := e.underWay(); s != nil {
		text := s.reasons()
		if last := e.lastStart(); e.group.State == statePreparing && last.WaitingN > 0 {
			text = append(text, fmt.Sprintf("At %s it waited for %s to join.", formatTime(last.Time, e.now), last.waiting()))
		}
		out.UnderWay = &explainedUnderWay{s.Time, text, s.raw}
	}
	settled := e.settled()
	out.RebalanceCount = len(settled)
	for _, s := range slices.Backward(settled) {
		if limit > 0 && len(out.Rebalances) == limit {
			break
		}
		out.Rebalances = append(out.Rebalances, explainedRebalance{
			Started: s.Started, Settled: s.Time, Generation: s.Generation,
			TookSeconds: s.took().Seconds(), JoinSeconds: s.JoinPhase.Seconds(), SyncSeconds: s.SyncPhase.Seconds(),
			MembersBefore: s.Before, MembersAfter: s.After, PartitionsMoved: s.MoveN, Partitions: s.PartitionN,
			Text: s.sentences(), Entry: s.raw,
		})
	}
	for i := range slices.Backward(e.entries) {
		s := &e.entries[i]
		if !s.isEvent() {
			continue
		}
		if out.EventCount++; limit == 0 || len(out.Events) < limit {
			out.Events = append(out.Events, explainedEvent{s.Time, s.Kind, s.sentence(), s.raw})
		}
	}
	return out
}

// describeNow words what the group is at this moment.
func (e *evidence) describeNow(name string) string {
	g := e.group
	if g == nil {
		return fmt.Sprintf("Group %s does not exist any more.", name)
	}
	members := plural(len(g.Members), "member")
	lag := fmt.Sprintf(" Its total lag is %s.", orDash(g.TotalLag, formatInt))
	switch {
	case g.State == statePreparing:
		return fmt.Sprintf("Group %s is %s: it waits for its %s to join.%s", name, g.State, members, lag)
	case g.State == stateCompleting:
		return fmt.Sprintf("Group %s is %s: its %s wait for the leader to assign partitions.%s", name, g.State, members, lag)
	case len(g.Members) == 0:
		return fmt.Sprintf("Group %s is %s: it has no members.%s", name, g.State, lag)
	case g.tells():
		return fmt.Sprintf("Group %s is %s: %s by the %s assignor.%s", name, g.State, plural(len(g.owners()), "partition")+verb(len(g.owners()), " is", " are")+" assigned to "+members, g.Assignor, lag)
	}
	return fmt.Sprintf("Group %s is %s with %s.%s", name, g.State, members, lag)
}

// format words it all for people.
func (x *explainedGroup) format(e *evidence) string {
	var out strings.Builder
	writeWrapped(&out, "", x.Text)
	if u := x.UnderWay; u != nil {
		fmt.Fprintf(&out, "\nA rebalance is under way since %s (%s):\n", formatTime(u.Started, e.now), ago(u.Started, e.now))
		for _, line := range u.Text {
			writeWrapped(&out, "  ", line)
		}
	}
	x.formatRebalances(&out, e)
	x.formatEvents(&out, e)
	fmt.Fprintln(&out)
	if len(x.Findings) == 0 {
		fmt.Fprintln(&out, "Nothing looks odd now.")
		return out.String()
	}
	fmt.Fprintln(&out, "What is odd:")
	for i, f := range x.Findings {
		writeWrapped(&out, fmt.Sprintf("%3d. ", i+1), f.Text)
		writeWrapped(&out, "     ", "What to do: "+f.Change)
	}
	return out.String()
}

func (x *explainedGroup) formatRebalances(out *strings.Builder, e *evidence) {
	since := formatDuration(e.since)
	fmt.Fprintln(out)
	switch {
	case !e.journal:
		writeWrapped(out, "", capital(errNoJournal.Error())+".")
	case x.RebalanceCount == 0:
		fmt.Fprintf(out, "The journal has no rebalance of the last %s; --since looks further back.\n", since)
	case x.RebalanceCount > len(x.Rebalances):
		fmt.Fprintf(out, "It rebalanced %d times in the last %s. The latest %d:\n", x.RebalanceCount, since, len(x.Rebalances))
	default:
		fmt.Fprintf(out, "It rebalanced %s in the last %s:\n", times(x.RebalanceCount), since)
	}
	for _, r := range x.Rebalances {
		fmt.Fprintf(out, "\n%s, %s (generation %d)\n", formatTime(r.Started, e.now), ago(r.Started, e.now), r.Generation)
		for _, line := range r.Text {
			writeWrapped(out, "  ", line)
		}
	}
	if quiet := e.quietRestarts(); quiet != "" {
		out.WriteByte('\n')
		writeWrapped(out, "", quiet)
	}
}

// formatEvents words what else happened, the latest first.
func (x *explainedGroup) formatEvents(out *strings.Builder, e *evidence) {
	if len(x.Events) == 0 {
		return
	}
	title := "What else happened"
	if x.EventCount > len(x.Events) {
		title += fmt.Sprintf(" (%d of %d)", len(x.Events), x.EventCount)
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	for _, event := range x.Events {
		writeWrapped(out, "  "+formatTime(event.Time, e.now)+"  ", event.Text)
	}
}

// quietRestarts words the restarts of static members that caused no rebalance.
func (e *evidence) quietRestarts() string {
	var why []journalTrigger
	for i := range e.entries {
		if e.entries[i].Kind == entryReplaced {
			why = append(why, e.entries[i].Triggers...)
		}
	}
	if len(why) == 0 {
		return ""
	}
	return fmt.Sprintf("Static members restarted %s without a rebalance: %s.", times(len(why)), counted(why))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
