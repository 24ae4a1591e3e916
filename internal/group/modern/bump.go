package modern

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// Change is what a heartbeat changes of its member.
type Change struct {
	Topics   bool // what it wants
	Bumps    bool // so that the group has another epoch
	Replaced bool // it has the place of another since
}

// Bump gives the group another epoch if a member wants something else, or if the topics are
// not what they were. They are looked at when there is another image of the cluster than the
// last time.
func (g *Group[P, M]) Bump(x *kind.Step, ch Change) {
	if ch.Bumps = ch.Bumps || g.renewAfterLoad(x); ch.Bumps || g.Seen != x.Image || x.Image == nil {
		hash := g.CheckTopics(x)
		if hash != g.Hash && len(x.Why) == 0 { // It was looked at by another broker last.
			AddTriggers(x, journal.Trigger{Kind: journal.TriggerTopics})
		}
		if ch.Bumps || hash != g.Hash {
			g.raiseEpoch(x, hash)
		}
		g.Seen = x.Image
	}
	g.keepTriggers(x)
	if !g.HasEpoch { // The group is there, though no one wants anything of it yet.
		g.writeEpoch(x, &Epoch{Epoch: g.Epoch})
	}
	if ch.Replaced {
		emitReplacement(x)
	}
}

// writeEpoch stores the group's epoch. The record comes before those of what is the
// reason for it: if only the beginning of a step's records is stored, there is an
// epoch too many, and not a change that no one makes a target for.
func (g *Group[P, M]) writeEpoch(x *kind.Step, v *Epoch) {
	r := g.own.EpochRecord(v)
	x.Records = slices.Insert(x.Records, x.From, machine.Record(r))
	x.ApplyRecord(r)
}

// raiseEpoch gives the group another epoch.
func (g *Group[P, M]) raiseEpoch(x *kind.Step, hash int64) {
	g.writeEpoch(x, &Epoch{Epoch: g.Next(x.Epoch), Hash: hash})
	g.own.EpochRaised(x)
	g.noteEpoch(x)
}

// FindTopics finds the topics that members want to read.
func (g *Group[P, M]) FindTopics(image *metadata.Image) *Topics {
	return FindTopics(image, g.own.TopicNames())
}

// CheckTopics looks at the topics, and returns their hash. What has happened to them since
// the last look is a reason for another epoch.
func (g *Group[P, M]) CheckTopics(x *kind.Step) int64 {
	next := g.FindTopics(x.Image)
	if x.Image == nil {
		return next.Hash()
	}
	if last := g.Account.topics; last != nil {
		if changed := last.Changes(next); len(changed) > 0 {
			AddTriggers(x, journal.Trigger{Kind: journal.TriggerTopics, Topics: &journal.TopicChanges{List: changed[:min(len(changed), kind.MaxNames)], N: len(changed)}})
			g.Account.TopicsBefore = last
		}
	}
	g.Account.topics = next
	return next.Hash()
}

// renewAfterLoad says whether a group must have another epoch since it was loaded before there was
// a target for the one that it has.
func (g *Group[P, M]) renewAfterLoad(x *kind.Step) bool {
	if !g.MustRenew() {
		return false
	}
	if len(x.Why) == 0 {
		AddTriggers(x, journal.Trigger{Kind: journal.TriggerResumed})
	}
	return true
}
