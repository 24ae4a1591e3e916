package explain

import (
	"fmt"
	"strings"

	"muster/internal/journal"
	"muster/internal/words"
)

// isEvent says whether an entry is worth a sentence of its own: rebalances are
// told at length, and quiet restarts together.
func (e *Entry) isEvent() bool {
	switch e.Kind {
	case journal.KindStarted, journal.KindSettled, journal.KindEpoch, journal.KindTarget:
		return false
	case journal.KindReplaced:
		return len(e.Triggers) > 0 && e.Triggers[0].Change != nil
	}
	return true
}

// sentence words an entry that is not about a rebalance.
func (e *Entry) sentence() string {
	var t journal.Trigger
	if len(e.Triggers) > 0 {
		t = e.Triggers[0]
	}
	switch e.Kind {
	case journal.KindReplaced:
		return fmt.Sprintf("Static member %s restarted, and came back %s. By Kafka's rule it took its old place without a rebalance, so that its partitions stayed as they were.", name(t.Who), changeWords(t.Change, e.Protocol))
	case journal.KindFenced:
		return fenced(&t)
	case journal.KindUpgraded, journal.KindDowngraded:
		return e.migrated()
	case journal.KindLoaded:
		if e.assigns() {
			return fmt.Sprintf("The group's coordinator was loaded, after a restart or from another broker: group epoch %d goes on with %s, each from where it was.", e.Generation, words.Plural(e.After, "member"))
		}
		return fmt.Sprintf("The group's coordinator was loaded, after a restart or from another broker: generation %d goes on with %s. A rebalance that was under way begins anew.", e.Generation, words.Plural(e.After, "member"))
	case journal.KindDeleted:
		return e.deleted()
	case journal.KindOffsetsExpired:
		return words.Capital(e.offsets()) + " expired (offsets.retention.minutes)."
	case journal.KindOffsetsDeleted:
		if e.By == nil {
			return words.Capital(e.offsets()) + " are gone with their topics."
		}
		return fmt.Sprintf("%s deleted %s.", words.Capital(client(*e.By)), e.offsets())
	case journal.KindSuspected:
		return e.suspected()
	case journal.KindResetStarted:
		return fmt.Sprintf("%s began to move %s while the group ran (reset %s): %s. If no entry says that it was applied, it was not.", words.Capital(e.asker()), words.Plural(e.PartitionN, "committed offset"), e.resetName(), e.resetMethod())
	case journal.KindResetDropped:
		return fmt.Sprintf("Reset %s of %s by %s was not applied: %s.", e.resetName(), words.Plural(e.PartitionN, "committed offset"), e.asker(), e.resetReason())
	case journal.KindOffsetsReset:
		if e.Reset != nil && e.Reset.Method != "" {
			return fmt.Sprintf("%s moved %s while the group ran (reset %s)%s.", words.Capital(e.asker()), e.offsets(), e.Reset.Plan, e.directions())
		}
		return fmt.Sprintf("%s, which is not a member, set %s while the group was empty%s.", words.Capital(e.asker()), e.offsets(), e.directions())
	}
	return "The journal has an entry that this version of muster has no words for (" + string(e.Kind) + ")."
}

// resetName is the name of the reset that an entry tells of.
func (e *Entry) resetName() string {
	if e.Reset == nil {
		return "unknown"
	}
	return e.Reset.Plan
}

// resetReason is why it was not applied.
func (e *Entry) resetReason() string {
	if e.Reset == nil {
		return "the journal does not say why"
	}
	return e.Reset.Reason
}

// resetMethod words how members are brought to read from elsewhere.
func (e *Entry) resetMethod() string {
	if e.Reset != nil {
		switch e.Reset.Method {
		case journal.ResetWithhold:
			return "the partitions are taken from members and given back, which takes two rebalances"
		case journal.ResetRemove:
			return "members that have the partitions are removed, and join again as new ones"
		}
	}
	return "members rejoin, and ask where to begin"
}

// fenced words how a static member lost its place.
func fenced(t *journal.Trigger) string {
	if t.Kind == journal.TriggerUnreleased {
		return fmt.Sprintf("%s came with the group.instance.id %s, and was refused: %s has it and has not left.", member(t.Who), t.Instance, holder(t))
	}
	if t.Parked {
		return fmt.Sprintf("Static member %s was fenced while it waited in %s: %s took its place.", member(t.Who), t.Request, holder(t))
	}
	return fmt.Sprintf("Static member %s was fenced: it still sent %s after %s had taken its place.", member(t.Who), t.Request, holder(t))
}

// holder words who has the place of a member that was fenced.
func holder(t *journal.Trigger) string {
	if t.By == nil {
		return "another process"
	}
	return member(*t.By)
}

func fencedLine(t *journal.Trigger) string {
	if t.Kind == journal.TriggerUnreleased {
		return "refused: " + member(t.Who) + " came with the instance id " + t.Instance + ", which " + holder(t) + " has and has not left"
	}
	return "fenced: " + member(t.Who) + " sent " + t.Request + ", but " + holder(t) + " has its place"
}

// asker words who asked for it.
func (e *Entry) asker() string {
	if e.By == nil {
		return "someone"
	}
	return client(*e.By)
}

func (e *Entry) deleted() string {
	with := ""
	if e.PartitionN > 0 {
		with = ", with " + e.offsets()
	}
	switch e.Cause {
	case journal.CauseRequest:
		return fmt.Sprintf("%s deleted the group%s.", words.Capital(e.asker()), with)
	case journal.CauseExpired:
		return "The group was deleted, since it had neither members nor committed offsets any more."
	case journal.CauseTopics:
		return "The group was deleted, because its topics were deleted and it had nothing but their offsets."
	}
	return "The group was deleted."
}

// offsets words the committed offsets that an entry is about.
func (e *Entry) offsets() string {
	var topics []string
	for _, t := range e.Topics {
		topics = append(topics, t.Topic)
	}
	return fmt.Sprintf("the committed offsets of %s of %s", words.Plural(e.PartitionN, "partition"), words.ListSome(topics, e.TopicN))
}

// directions words how many offsets went back or forward, as far as the list
// goes.
func (e *Entry) directions() string {
	back, forward := 0, 0
	for _, t := range e.Topics {
		back += t.Back
		forward += t.Forward
	}
	var out []string
	if back > 0 {
		out = append(out, fmt.Sprintf("%d back, so that records are read again", back))
	}
	if forward > 0 {
		out = append(out, fmt.Sprintf("%d forward, so that records are skipped", forward))
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}

// shortEvent words an entry without triggers in a line of a table.
func (e *Entry) shortEvent() string {
	var out []string
	done, _ := strings.CutPrefix(string(e.Kind), "offsets-")
	switch e.Kind {
	case journal.KindDeleted:
		done = "deleted"
	case journal.KindResetStarted:
		done = "reset " + e.resetName() + " begun"
	case journal.KindResetDropped:
		done = "reset " + e.resetName() + " not applied: " + e.resetReason() + "; asked for"
	case journal.KindOffsetsReset:
		if e.Reset != nil {
			done = "reset " + e.Reset.Plan
		}
	}
	switch {
	case e.By != nil:
		out = append(out, done+" by "+client(*e.By))
	case e.Cause == journal.CauseExpired:
		out = append(out, "expired")
	case e.Cause == journal.CauseTopics:
		out = append(out, "deleted with "+words.Verb(e.TopicN, "its topic", "their topics"))
	}
	for i, t := range e.Topics {
		if i == words.Named {
			out = append(out, fmt.Sprintf("%d more topics", e.TopicN-i))
			break
		}
		text := fmt.Sprintf("%s: %s", t.Topic, words.Plural(t.Partitions, "partition"))
		if t.Back > 0 {
			text += fmt.Sprintf(", %d back", t.Back)
		}
		if t.Forward > 0 {
			text += fmt.Sprintf(", %d forward", t.Forward)
		}
		out = append(out, text)
	}
	if e.Kind == journal.KindSuspected {
		out = append(out, e.suspected())
	}
	return strings.Join(out, "; ")
}
