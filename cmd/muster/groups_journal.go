package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	journalform "muster/internal/journal"
)

// journalTopic is where a muster broker writes what happens to groups, and why:
// JSON, keyed by group, all of a group's entries in one partition.
const journalTopic = "__group_journal"

// The kinds of journal entries.
const (
	entryStarted  = "rebalance-started"
	entrySettled  = "rebalance-settled"
	entryReplaced = "static-member-replaced"
	entryFenced   = "static-member-fenced"
	entryLoaded   = "group-loaded"
	entryDeleted  = "group-deleted"

	entryOffsetsExpired = "offsets-expired"
	entryOffsetsDeleted = "offsets-deleted"
	entryOffsetsReset   = "offsets-reset"
)

// Why offsets or a group are gone.
const (
	causeRequest = "request"
	causeExpired = "expired"
	causeTopics  = "topics-deleted"
)

// The reasons for a rebalance.
const (
	whyJoined   = "joined"
	whyChanged  = "changed"
	whyLeader   = "leader"
	whyLeft     = "left"
	whyRemoved  = "removed"
	whyExpired  = "expired"
	whyNewGone  = "expired-new" // Expired, in its first JoinGroup.
	whyNoSync   = "no-sync"
	whyReplaced = "replaced"
	whyMaxSize  = "max-size"
	whyFenced   = "fenced"
)

// journalWho is a member.
type journalWho struct {
	Member   string `json:"member"`
	ClientID string `json:"clientId"`
	Host     string `json:"host"`
	Instance string `json:"instanceId"`
}

// journalTrigger is a reason for a rebalance.
type journalTrigger struct {
	Kind string `json:"kind"`
	journalWho
	Reason string        `json:"reason"` // In the client's words.
	Was    string        `json:"was"`    // The id that a restarted static member had.
	Silent time.Duration `json:"silentNs"`
	New    bool          `json:"new"` // It expired in its first JoinGroup.
	By     *journalWho   `json:"by"`  // Who removed the member, or has its place.

	Change  *journalChange `json:"change"`
	Request string         `json:"request"` // That was refused.
	Parked  bool           `json:"parked"`  // It was, already, when another took the place.
}

// journalChange is what of a member is another than before. The lists may be
// shorter than the counts beside them.
type journalChange struct {
	TopicsAdded     []string `json:"topicsAdded"`
	TopicsAddedN    int      `json:"topicsAddedCount"`
	TopicsRemoved   []string `json:"topicsRemoved"`
	TopicsRemovedN  int      `json:"topicsRemovedCount"`
	Protocols       []string `json:"protocols"`
	ProtocolsBefore []string `json:"protocolsBefore"`
	Owned           bool     `json:"owned"`     // It owns other partitions.
	Other           bool     `json:"other"`     // What only its assignor understands.
	Forgotten       bool     `json:"forgotten"` // The coordinator had loaded it, and did not know all.
}

// topicCount is how many committed offsets of a topic an entry is about.
type topicCount struct {
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	Back       int    `json:"back"`
	Forward    int    `json:"forward"`
}

// journalAbsent is somebody who is waited for, or was in vain.
type journalAbsent struct {
	journalWho
	Pending bool `json:"pending"` // Was given a member id, and has not joined with it.
	Kept    bool `json:"kept"`    // Is static, and stays a member for now.
}

// journalLate is a member and how long it let the others wait.
type journalLate struct {
	journalWho
	Waited time.Duration `json:"waitedNs"`
}

// journalMove is a partition that changed hands.
type journalMove struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// journalEntry is what the journal says of one event. The lists may be shorter
// than the counts beside them.
type journalEntry struct {
	Time       time.Time        `json:"time"`
	Group      string           `json:"group"`
	Kind       string           `json:"kind"`
	State      string           `json:"state"`
	Generation int32            `json:"generation"`
	Protocol   string           `json:"protocol"`
	Triggers   []journalTrigger `json:"triggers"`
	TriggerN   int              `json:"triggerCount"`
	Started    time.Time        `json:"started"`
	JoinPhase  time.Duration    `json:"joinNs"`
	SyncPhase  time.Duration    `json:"syncNs"`
	Slowest    []journalLate    `json:"slowest"`
	Missed     []journalAbsent  `json:"missed"`
	MissedN    int              `json:"missedCount"`
	Waiting    []journalAbsent  `json:"waiting"`
	WaitingN   int              `json:"waitingCount"`
	Leader     *journalWho      `json:"leader"`
	Before     int              `json:"membersBefore"`
	After      int              `json:"membersAfter"`
	Moves      []journalMove    `json:"moves"`
	MoveN      int              `json:"moveCount"`
	PartitionN int              `json:"partitionCount"`
	Cause      string           `json:"cause"`
	By         *journalWho      `json:"by"`
	Topics     []topicCount     `json:"topics"`
	TopicN     int              `json:"topicCount"`

	raw json.RawMessage // As the broker wrote it.
}

// took is how long a rebalance lasted, once it has settled.
func (e *journalEntry) took() time.Duration { return e.Time.Sub(e.Started) }

// errNoJournal says that a broker keeps no journal. A muster broker creates the
// topic when there is something to write.
var errNoJournal = errors.New("the broker has no group journal (topic " + journalTopic + "), so nothing is known about past rebalances; a muster broker writes it from the first rebalance on")

// journal reads the entries of one group.
type journal struct {
	client *kgo.Client
	group  string
	part   int32
	next   int64 // The offset to read next.
	end    int64 // The end as it was when the journal was opened.
}

// openJournal finds the part of the journal from a time on.
func openJournal(ctx context.Context, flags *clientFlags, group string, since time.Time) (*journal, error) {
	client, err := flags.connect(ctx, consumerOptions(kgo.ReadUncommitted())...)
	if err != nil {
		return nil, err
	}
	j := &journal{client: client, group: group}
	if err := j.find(ctx, since); err != nil {
		client.Close()
		return nil, err
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{journalTopic: {j.part: kgo.NewOffset().At(j.next)}})
	return j, nil
}

func (j *journal) find(ctx context.Context, since time.Time) error {
	logs := newTopicLogs(j.client)
	if err := logs.load(ctx, []string{journalTopic}); err != nil {
		return err
	}
	if len(logs.bounds) == 0 {
		return errNoJournal
	}
	j.part = journalform.PartitionFor(j.group, int32(len(logs.bounds)))
	tp := topicPartition{journalTopic, j.part}
	b, ok := logs.bounds[tp]
	if !ok {
		return fmt.Errorf("partition %d of %s has no leader now", j.part, journalTopic)
	}
	j.end = b.end
	set := kadm.TopicsSet{}
	set.Add(journalTopic, j.part)
	from, err := listOffsets(ctx, j.client, set, max(since.UnixMilli(), 0))
	if err != nil {
		return err
	}
	if at, ok := from[tp]; ok {
		j.next = max(at, b.start)
	} else {
		j.next = b.end // Nothing is that young.
	}
	return nil
}

func (j *journal) close() { j.client.Close() }

// read returns the group's entries up to the end that the journal had when it
// was opened.
func (j *journal) read(ctx context.Context) ([]journalEntry, error) {
	var out []journalEntry
	for j.next < j.end {
		soon, cancel := context.WithTimeout(ctx, requestTimeout)
		some, err := j.poll(soon)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && soon.Err() != nil:
			return nil, fmt.Errorf("the group journal cannot be read: no answer within %s", requestTimeout)
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// poll waits for further entries. Those of other groups are skipped, so that
// there may be none.
func (j *journal) poll(ctx context.Context) ([]journalEntry, error) {
	fetches := j.client.PollFetches(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		return nil, fmt.Errorf("the group journal cannot be read: %w", plain(e.Err))
	}
	var out []journalEntry
	for records := fetches.RecordIter(); !records.Done(); {
		r := records.Next()
		j.next = r.Offset + 1
		if string(r.Key) != j.group {
			continue
		}
		e := journalEntry{raw: r.Value}
		if json.Unmarshal(r.Value, &e) == nil { // What we do not understand is of a later version.
			out = append(out, e)
		}
	}
	return out, nil
}

// readJournal returns what the journal says of a group since a time.
func readJournal(ctx context.Context, flags *clientFlags, group string, since time.Time) ([]journalEntry, error) {
	j, err := openJournal(ctx, flags, group, since)
	if err != nil {
		return nil, err
	}
	defer j.close()
	return j.read(ctx)
}

// parseSince parses how long to look back: a duration, also in days.
func parseSince(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usagef("--since takes how long to look back, as 30m, 24h or 7d, not %q", text)
	}
	return d, nil
}
