package explain

import (
	"fmt"
	"math"
	"sort"
	"time"

	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
	"muster/internal/words"
)

// Watched is what a broker knows of a group that it watches: how it gets on over time,
// which one look at it cannot tell. Whether something is worth saying is decided in
// package lag.
type Watched struct {
	lag.GroupLag
	Partitions []lag.PartitionLag
}

// partition words a partition.
func partition(p *lag.PartitionLag) string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// stoodStill finds partitions that stand still, by who reads them and who does not.
func (e *Evidence) stoodStill() []Finding {
	var stuck []lag.PartitionLag
	for _, p := range e.Watched.Partitions {
		if p.Verdict.Stuck() {
			stuck = append(stuck, p)
		}
	}
	sort.SliceStable(stuck, func(i, j int) bool { return stuck[i].Seconds > stuck[j].Seconds })
	var out []Finding
	for i := range stuck[:min(len(stuck), words.Named)] {
		p := &stuck[i]
		why, change := e.standsStill(p)
		text := fmt.Sprintf("%s stands still at offset %d, with %s to read, the first %s old: %s.", partition(p), p.Committed, records(p.Lag, p.Approximate), age(p.Seconds), why)
		if i == words.Named-1 && len(stuck) > words.Named {
			text += fmt.Sprintf(" So do %s more.", words.Plural(len(stuck)-words.Named, "partition"))
		}
		out = append(out, Finding{"stuck-partition", text, change})
	}
	return out
}

// standsStill says why a partition stands still, and what to do.
func (e *Evidence) standsStill(p *lag.PartitionLag) (why, change string) {
	owner := e.ownerOf(p)
	next := lag.Next(p.Committed, p.Bounds)
	see := seeAndSkip(e.Name, p.Topic, p.Partition, next)
	switch p.Verdict {
	case lag.NoOwner:
		return "no member has it, though members subscribe to " + p.Topic, "Restart a member, so that the group assigns its partitions anew. If it happens again, look at the assignor that the members are configured with."
	case lag.NotFetching:
		return owner + " does not fetch it", "Its consumer has paused the partition, or is busy with records that it has fetched before: look at what " + owner + " is doing, and whether it calls poll."
	case lag.Stalled:
		return owner + " commits this offset again and again", "Its consumer reads on from there and fails, or never gets to handle a record: look in its log for an error at offset " + fmt.Sprint(next) + ". " + see
	}
	return owner + " fetches it and does not commit", "Look in the log of " + owner + " for an error at offset " + fmt.Sprint(next) + ", or for a commit that is missing. " + see
}

// ownerOf words the member that has a partition.
func (e *Evidence) ownerOf(p *lag.PartitionLag) string {
	if e.Group != nil {
		for i := range e.Group.Partitions {
			if q := &e.Group.Partitions[i]; q.Topic == p.Topic && q.Partition == p.Partition && q.Owner != nil {
				return e.Group.MemberName(*q.Owner)
			}
		}
	}
	return "its owner"
}

// records words how many there are.
func records(n int64, approximate bool) string {
	text := words.Plural(int(n), "record")
	if approximate {
		return "about " + text
	}
	return text
}

// retentionOvertakes finds a group that will lose records before it reads them.
func (e *Evidence) retentionOvertakes() []Finding {
	if e.Watched == nil || !e.Watched.Overtaken() {
		return nil
	}
	var first *lag.PartitionLag
	for i := range e.Watched.Partitions {
		if p := &e.Watched.Partitions[i]; first == nil || p.OvertakenIn < first.OvertakenIn {
			first = p
		}
	}
	if first == nil || math.IsInf(first.OvertakenIn, 1) {
		return nil
	}
	when := "may be deleted at any moment"
	if in := seconds(first.OvertakenIn); in >= time.Minute {
		when = "will be deleted in about " + words.Duration(in.Round(time.Minute)) + " if it goes on like this"
	}
	return []Finding{{
		"retention-overtakes",
		fmt.Sprintf("Retention overtakes the group: records of %s that it has not read %s. The first of them is %s old, and %s to be read.", partition(first), when, age(first.Seconds), waits(first.Lag, first.Approximate)),
		fmt.Sprintf("Make the group faster, or keep the records for longer: %s (and retention.bytes, if it is set).", words.Command("topics alter", first.Topic, "--config", "retention.ms=…")),
	}}
}

// waits says that so many records wait.
func waits(n int64, approximate bool) string {
	return records(n, approximate) + words.Verb(int(n), " waits", " wait")
}

// ownLag is what the group itself is behind: without the partitions that open transactions
// hold back, which openTransactions tells of.
func (e *Evidence) ownLag() *Watched {
	held := map[groupview.TopicPartition]bool{}
	if e.Group != nil {
		for i := range e.Group.Partitions {
			p := &e.Group.Partitions[i]
			if _, ok := e.heldBack(p); ok {
				held[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = true
			}
		}
	}
	if len(held) == 0 {
		return e.Watched
	}
	own := &Watched{GroupLag: e.Watched.GroupLag}
	own.Lag, own.Approximate, own.Seconds = 0, false, 0
	for _, p := range e.Watched.Partitions {
		if held[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}] {
			continue
		}
		own.Partitions = append(own.Partitions, p)
		own.Lag += p.Lag
		own.Approximate = own.Approximate || p.Approximate
		own.Seconds = max(own.Seconds, p.Seconds)
	}
	return own
}

// allStuck says whether the group stands still wherever it has something to read.
func (w *Watched) allStuck() bool {
	stuck := false
	for i := range w.Partitions {
		p := &w.Partitions[i]
		if p.Lag > 0 && !p.Verdict.Stuck() {
			return false
		}
		stuck = stuck || p.Lag > 0
	}
	return stuck
}

// notCatchingUp finds a group that is behind and does not get nearer to the end, for
// reasons of its own.
func (e *Evidence) notCatchingUp() []Finding {
	if e.Watched == nil || !e.Watched.NotCatchingUp() {
		return nil
	}
	w := e.ownLag()
	if !w.NotCatchingUp() {
		return nil
	}
	change := "Look at what its members spend their time on; let them handle records at the same time."
	switch n := len(e.Watched.Partitions); {
	case w.allStuck():
		change = "More members would not help: each partition that has lag stands still. See to those first."
	case w.Members < n:
		change = fmt.Sprintf("Run more members: there are %d for %s. Or let each handle records at the same time.", w.Members, words.Plural(n, "partition"))
	}
	return []Finding{{
		"not-catching-up",
		fmt.Sprintf("The group does not catch up: %s, the oldest for %s.%s", waits(w.Lag, w.Approximate), age(w.Seconds), w.rates()),
		change,
	}}
}

// rates words what the group read, and what came; nothing where no one counts that.
func (w *Watched) rates() string {
	if w.Sparse {
		return ""
	}
	return fmt.Sprintf(" In the last five minutes it read %s a second, and %s came.", rate(w.Rates.Consumed), rate(w.Rates.Produced))
}

// rate words records per second.
func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// offsetsRewound finds a group that went back.
func (e *Evidence) offsetsRewound() []Finding {
	if e.Watched == nil || !e.Watched.Rewound() {
		return nil
	}
	var names []string
	for i := range e.Watched.Partitions {
		if p := &e.Watched.Partitions[i]; p.Verdict == lag.Rewound {
			names = append(names, fmt.Sprintf("%s (now %d)", partition(p), p.Committed))
		}
	}
	return []Finding{{
		"offsets-rewound",
		fmt.Sprintf("The group went back in the last minutes: the committed %s of %s %s lower than before, so records are read again.", words.Verb(len(names), "offset", "offsets"), words.List(names), words.Verb(len(names), "is", "are")),
		"Nothing, if someone reset the group. Otherwise look for a consumer that seeks back or commits from several threads, or for two applications with the same group.id.",
	}}
}

// seconds makes a duration of seconds, which may be very many.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, math.MaxInt64/float64(time.Second)/2) * float64(time.Second))
}
