package main

import (
	"fmt"
	"strings"
)

// isEvent says whether an entry is worth a sentence of its own: rebalances are
// told at length, and quiet restarts together.
func (e *journalEntry) isEvent() bool {
	switch e.Kind {
	case entryStarted, entrySettled:
		return false
	case entryReplaced:
		return len(e.Triggers) > 0 && e.Triggers[0].Change != nil
	}
	return true
}

// sentence words an entry that is not about a rebalance.
func (e *journalEntry) sentence() string {
	var t journalTrigger
	if len(e.Triggers) > 0 {
		t = e.Triggers[0]
	}
	switch e.Kind {
	case entryReplaced:
		return fmt.Sprintf("Static member %s restarted, and came back %s. By Kafka's rule it took its old place without a rebalance, so that its partitions stayed as they were.", t, t.Change.words(e.Protocol))
	case entryFenced:
		return t.fenced()
	case entryLoaded:
		return fmt.Sprintf("The group's coordinator was loaded, after a restart or from another broker: generation %d goes on with %s, without a rebalance. One that was under way is void.", e.Generation, plural(e.After, "member"))
	case entryDeleted:
		return e.deleted()
	case entryOffsetsExpired:
		return capital(e.offsets()) + " expired (offsets.retention.minutes)."
	case entryOffsetsDeleted:
		if e.By == nil {
			return capital(e.offsets()) + " are gone with their topics."
		}
		return fmt.Sprintf("%s deleted %s.", capital(e.By.client()), e.offsets())
	case entryOffsetsReset:
		return fmt.Sprintf("%s, no member, set %s while the group was empty%s.", capital(e.client()), e.offsets(), e.directions())
	}
	return "The journal has an entry that this version of muster has no words for (" + e.Kind + ")."
}

// fenced words how a static member lost its place.
func (t *journalTrigger) fenced() string {
	if t.Parked {
		return fmt.Sprintf("Static member %s was fenced while it waited in %s: %s took its place.", t.member(), t.Request, t.holder())
	}
	return fmt.Sprintf("Static member %s was fenced: it still sent %s after %s had taken its place.", t.member(), t.Request, t.holder())
}

// holder words who has the place of a member that was fenced.
func (t *journalTrigger) holder() string {
	if t.By == nil {
		return "another process"
	}
	return t.By.member()
}

func (t *journalTrigger) shortFenced() string {
	return "fenced: " + t.member() + " sent " + t.Request + ", but its place has " + t.holder()
}

// member words a static member by its member id, since two have its instance id.
func (w *journalWho) member() string {
	name := shortMember(w.Member)
	if w.Host != "" {
		name += " at " + w.Host
	}
	if w.ClientID != "" {
		name += " (client " + w.ClientID + ")"
	}
	return name
}

// client words who asked for it.
func (e *journalEntry) client() string {
	if e.By == nil {
		return "somebody"
	}
	return e.By.client()
}

func (e *journalEntry) deleted() string {
	with := ""
	if e.PartitionN > 0 {
		with = ", with " + e.offsets()
	}
	switch e.Cause {
	case causeRequest:
		return fmt.Sprintf("%s deleted the group%s.", capital(e.client()), with)
	case causeExpired:
		return "The group was deleted, since it had neither members nor committed offsets any more."
	case causeTopics:
		return "The group was deleted, since its topics were and it had nothing but their offsets."
	}
	return "The group was deleted."
}

// offsets words the committed offsets that an entry is about.
func (e *journalEntry) offsets() string {
	var topics []string
	for _, t := range e.Topics {
		topics = append(topics, t.Topic)
	}
	return fmt.Sprintf("the committed offsets of %s of %s", plural(e.PartitionN, "partition"), listNames(topics, e.TopicN))
}

// directions words how many offsets went back or forward, as far as the list
// goes.
func (e *journalEntry) directions() string {
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
func (e *journalEntry) shortEvent() string {
	var out []string
	done, _ := strings.CutPrefix(e.Kind, "offsets-")
	if e.Kind == entryDeleted {
		done = "deleted"
	}
	switch {
	case e.By != nil:
		out = append(out, done+" by "+e.By.client())
	case e.Cause == causeExpired:
		out = append(out, "expired")
	case e.Cause == causeTopics:
		out = append(out, "deleted with "+verb(e.TopicN, "its topic", "their topics"))
	}
	for i, t := range e.Topics {
		if i == namedAtMost {
			out = append(out, fmt.Sprintf("%d more topics", e.TopicN-i))
			break
		}
		text := fmt.Sprintf("%s: %s", t.Topic, plural(t.Partitions, "partition"))
		if t.Back > 0 {
			text += fmt.Sprintf(", %d back", t.Back)
		}
		if t.Forward > 0 {
			text += fmt.Sprintf(", %d forward", t.Forward)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}
