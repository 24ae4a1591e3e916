package kind

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// ResetPatience is after how long a reset of a group that has members is given up, if it has
// not taken effect. A rebalance may take as long as max.poll.interval.ms, five minutes by
// default, and a reset may take two.
const ResetPatience = 10 * time.Minute

// LiveReset is a reset of a group that has members, from when it is asked for until it takes
// effect or is given up. Members go on from where they are, and overwrite what is committed:
// so they are first brought to a point at which they will ask for committed offsets anew, and
// the offsets are stored in the batch that makes it so. What they have read before they can
// commit no more.
//
// It is soft state. A coordinator that dies in the middle leaves a rebalance behind, and
// offsets that did not move.
type LiveReset struct {
	ID     machine.RequestID // that is answered in the end
	Ask    journal.ResetAsk
	By     journal.Who
	Method journal.ResetMethod
	Moves  []ResetMove
	Resp   *kmsg.OffsetCommitResponse // without topics

	Protocol string // by which members assigned when it began
	Held     bool   // when members joined last, some had partitions that are to be withheld
	Withheld bool   // the assignment that is stored lacks them
	Seq      uint64 // of its timer

	parts map[subscription.TopicPartition]bool
	// Check says whether an offset can be stored now, and makes room for it.
	Check func(x *Step, r *schema.OffsetRecord) *kerr.Error
	// Tell tells the journal that it has taken effect.
	Tell func(x *Step, g Group)
}

// ResetMove is an offset to be moved.
type ResetMove struct {
	Record  *schema.OffsetRecord
	TopicID [16]byte // as the request names it
	Err     *kerr.Error
	before  int64
}

// Resettable is a group whose offsets can be moved while it has members.
type Resettable interface {
	// BeginReset begins that, or says why not.
	BeginReset(x *Step, r *LiveReset) (refused string)
}

// Has says whether a partition is one of those that are moved.
func (r *LiveReset) Has(tp subscription.TopicPartition) bool {
	if r.parts == nil {
		r.parts = make(map[subscription.TopicPartition]bool, len(r.Moves))
		for i := range r.Moves {
			r.parts[subscription.TopicPartition{Topic: r.Moves[i].Record.Topic, Partition: r.Moves[i].Record.Partition}] = true
		}
	}
	return r.parts[tp]
}

// Records returns the offsets as they are to be stored now. Those of topics that are gone
// since are left out.
func (r *LiveReset) Records(x *Step, b *Base) (out []machine.Record) {
	for i := range r.Moves {
		m := &r.Moves[i]
		if m.Err = r.Check(x, m.Record); m.Err != nil {
			continue
		}
		m.before = -1
		if o, ok := b.Offsets[m.Record.Topic].Get(m.Record.Partition); ok {
			m.before = o.Offset
		}
		m.Record.Value.CommitTimestamp = x.Now.UnixMilli()
		out = append(out, m.Record)
	}
	return out
}

// ResetKey is that of the timer of a group's reset.
func ResetKey(group string) machine.TimerKey { return machine.TimerKey{Kind: TimerReset, ID: group} }

// Started tells the journal that it begins.
func (r *LiveReset) Started(x *Step, g Group) {
	r.Seq = x.Arm(ResetKey(g.Common().ID), x.Now.Add(ResetPatience))
	e := g.Entry(x, journal.KindResetStarted)
	e.By, e.PartitionN = &r.By, len(r.Moves)
	e.Reset = &journal.Reset{Plan: r.Ask.Plan, Method: r.Method}
	x.Out.Notes = append(x.Out.Notes, &e)
}

// Moved lists what was moved, when it takes effect.
func (r *LiveReset) Moved() []journal.Moved {
	out := make([]journal.Moved, 0, len(r.Moves))
	for i := range r.Moves {
		if m := &r.Moves[i]; m.Err == nil {
			out = append(out, journal.Moved{Topic: m.Record.Topic, Partition: m.Record.Partition, Before: m.before, After: m.Record.Value.Offset})
		}
	}
	return out
}

// Applied tells whoever waits, and the journal, that offsets were moved.
func (r *LiveReset) Applied(x *Step, g Group) {
	r.Tell(x, g)
	r.reply(x, g, nil)
}

// Dropped tells whoever waits, and the journal, that nothing was moved.
func (r *LiveReset) Dropped(x *Step, g Group, why string) {
	e := g.Entry(x, journal.KindResetDropped)
	e.By, e.PartitionN = &r.By, len(r.Moves)
	e.Reset = &journal.Reset{Plan: r.Ask.Plan, Method: r.Method, Reason: why}
	x.Out.Notes = append(x.Out.Notes, &e)
	journal.ResetReason(why).Set(&r.Resp.UnknownTags)
	r.reply(x, g, kerr.OperationNotAttempted)
}

// Refuse answers without that anything has begun. Offsets that cannot be stored have errors
// of their own.
func (r *LiveReset) Refuse(x *Step, why string) {
	journal.ResetReason(why).Set(&r.Resp.UnknownTags)
	r.reply(x, nil, kerr.InvalidRequest)
}

func (r *LiveReset) reply(x *Step, g Group, err *kerr.Error) {
	if g != nil {
		x.Cancel(ResetKey(g.Common().ID))
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		last := len(r.Resp.Topics) - 1
		if last < 0 || r.Resp.Topics[last].Topic != m.Record.Topic || r.Resp.Topics[last].TopicID != m.TopicID {
			t := kmsg.NewOffsetCommitResponseTopic()
			t.Topic, t.TopicID = m.Record.Topic, m.TopicID
			r.Resp.Topics = append(r.Resp.Topics, t)
			last++
		}
		p := kmsg.NewOffsetCommitResponseTopicPartition()
		p.Partition = m.Record.Partition
		switch {
		case m.Err != nil:
			p.ErrorCode = m.Err.Code
		case err != nil:
			p.ErrorCode = err.Code
		}
		r.Resp.Topics[last].Partitions = append(r.Resp.Topics[last].Partitions, p)
	}
	x.Reply(r.ID, r.Resp)
}
