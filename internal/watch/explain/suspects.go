package explain

import (
	"fmt"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
	"muster/internal/words"
)

// suspect is a partition with a record that may kill who reads it.
type suspect struct {
	name            string
	topic           string
	partition       int32
	committed, next int64
	deaths          int
}

// suspects returns what the broker suspects, or where no one watches what the journal says, of
// partitions in which no one has got on since.
func (e *Evidence) suspects() (out []suspect) {
	if e.Watched != nil {
		for i := range e.Watched.Partitions {
			if p := &e.Watched.Partitions[i]; p.Deaths > 0 {
				out = append(out, suspect{partition(p), p.Topic, p.Partition, p.Committed, lag.Next(p.Committed, p.Bounds), p.Deaths})
			}
		}
		return out
	}
	if e.Group == nil {
		return nil
	}
	last := map[groupview.TopicPartition]*journal.Suspect{}
	for i := range e.Entries {
		for j := range e.Entries[i].Suspects {
			s := &e.Entries[i].Suspects[j]
			last[groupview.TopicPartition{Topic: s.Topic, Partition: s.Partition}] = s
		}
	}
	for i := range e.Group.Partitions {
		p := &e.Group.Partitions[i]
		s := last[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}]
		if s != nil && p.Committed != nil && *p.Committed == s.Committed && p.LogStart != nil && p.Lag != nil && *p.Lag > 0 {
			out = append(out, suspect{p.Name(), p.Topic, p.Partition, s.Committed, p.Next(), s.Deaths})
		}
	}
	return out
}

// poisonSuspects finds records that may kill who reads them.
func (e *Evidence) poisonSuspects() []Finding {
	if e.Watched != nil && e.Watched.Dying {
		return nil // See keepDying.
	}
	all := e.suspects()
	var out []Finding
	for i, s := range all[:min(len(all), words.Named)] {
		text := fmt.Sprintf("%s may have a record that kills whoever reads it: %s died one after the other with offset %d committed there, and no one has got past it.", s.name, words.Plural(s.deaths, "member"), s.committed)
		if more := len(all) - words.Named; i == words.Named-1 && more > 0 {
			text += fmt.Sprintf(" So may %s.", words.Plural(more, "more partition"))
		}
		out = append(out, Finding{
			"poison-suspect", text,
			"Look in the log of a member that died for what it did last. It is this record or one soon after it, since clients handle several before they commit. " + seeAndSkip(e.Name, s.topic, s.partition, s.next),
		})
	}
	return out
}

// keepDying says that members die wherever they read.
func (e *Evidence) keepDying() []Finding {
	if e.Watched == nil || !e.Watched.Dying {
		return nil
	}
	var names []string
	for _, s := range e.suspects() {
		names = append(names, s.name)
	}
	return []Finding{{
		"members-keep-dying",
		fmt.Sprintf("Members die one after the other in %s, and the group gets on nowhere. That is what they run, or where, rather than a record.", words.List(names)),
		"Look in the log of a member that died. If it began with a deploy, go back to what ran before: the committed offsets have not moved.",
	}}
}

// suspected words that records are suspected.
func (e *Entry) suspected() string {
	var names []string
	for i := range e.Suspects {
		s := &e.Suspects[i]
		names = append(names, fmt.Sprintf("%s-%d at offset %d (%s)", s.Topic, s.Partition, s.Committed, words.Plural(s.Deaths, "member")))
	}
	return fmt.Sprintf("Members died one after the other with the same offset committed, in %s: a record from there on may kill whoever reads it.", words.ListSome(names, e.SuspectN))
}
