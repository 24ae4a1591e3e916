package streams

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// What the shard asks of a streams group.

func (g *Group) Kind() schema.Kind { return schema.Streams }

func (g *Group) ProtocolName() string { return string(schema.Streams) }

func (g *Group) Weight() int64 { return g.bytes + g.tasks*taskWeight }

func (g *Group) InUse() (func(topic string) bool, *kerr.Error) { return g.reads(), nil }

func (g *Group) Expires() (subscribed func(topic string) bool, since int64, ok bool) {
	return g.reads(), -1, true
}

// reads says which topics the application reads, as long as it has members.
func (g *Group) reads() func(topic string) bool {
	sources := map[string]bool{}
	if g.Topology != nil && g.Present > 0 {
		for i := range g.Topology.Subtopologies {
			s := &g.Topology.Subtopologies[i]
			for _, name := range s.Sources {
				sources[name] = true
			}
			for j := range s.Repartitions {
				sources[s.Repartitions[j].Name] = true
			}
		}
	}
	return func(topic string) bool { return sources[topic] }
}

func (g *Group) Look(out *kind.Look) {
	for _, m := range g.Members {
		if m.Metadata == nil {
			continue
		}
		l := out.Another()
		l.ID, l.ClientID, l.Host = m.ID, m.Metadata.ClientID, kind.PlainHost(m.Metadata.Host)
		r := g.look(g.Seen)
		if r == nil {
			continue
		}
		for _, h := range m.Current.AssignedParts() {
			if h.Part.Role == Active {
				eachPartition(r, g.Seen, h.Part.TaskID, func(t *metadata.Topic, n int32) {
					l.Parts = append(l.Parts, kind.PartLook{Topic: t.ID, Partition: n})
				})
			}
		}
	}
}

// What groups in which the coordinator assigns ask of a streams group.

func (g *Group) NewMember(id string) *Member { return &Member{Member: modern.Member[Task]{ID: id}} }

func (g *Group) Config(x *kind.Step) *kind.KindConfig { return &x.Cfg.Streams }

func (g *Group) Session(x *kind.Step, _ *Member) time.Duration { return g.Config(x).Of(g.ID).Session }

// A streams group without members becomes a classic one when someone of that protocol joins.
// Otherwise they have no place in it.

// JoinClassic implements classic.Host.
func (g *Group) JoinClassic(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) bool {
	switch {
	case !g.IsEmpty() || m.MemberID == "" && (m.ProtocolType == "" || len(m.Protocols) == 0):
		classic.JoinError(x, r, m, m.MemberID, kerr.InconsistentGroupProtocol)
	case m.MemberID != "":
		classic.JoinError(x, r, m, m.MemberID, kerr.UnknownMemberID)
	default:
		g.DeleteRecords(x)
		return false
	}
	return true
}

// SyncClassic implements classic.Host.
func (g *Group) SyncClassic(x *kind.Step, r *machine.Request, m *kmsg.SyncGroupRequest) {
	classic.ReplySyncError(x, r.ID, m.Version, kerr.UnknownMemberID)
}

// HeartbeatClassic implements classic.Host.
func (g *Group) HeartbeatClassic(*kind.Step, *kmsg.HeartbeatRequest) *kerr.Error {
	return kerr.UnknownMemberID
}

// LeaveClassic implements classic.Host. Any member may be named there, as in consumer groups.
func (g *Group) LeaveClassic(x *kind.Step, r *machine.Request, m *kmsg.LeaveGroupRequestMember) *kerr.Error {
	mem := g.Member(m.MemberID)
	if m.InstanceID != nil {
		mem = g.Instances[*m.InstanceID]
	}
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case m.InstanceID != nil && m.MemberID != "" && m.MemberID != mem.ID:
		return kerr.FencedInstanceID
	}
	g.AddLeaveTrigger(x, r, mem)
	g.Fence(x, mem)
	return nil
}

// Offsets are committed by member epoch, or by that since which a task is assigned (KIP-1251).

// txnCommitEpoch is the version of TxnOffsetCommit whose clients know the newer errors.
const txnCommitEpoch = 6

// commitEpoch is the version of OffsetCommit from which clients know of epochs.
const commitEpoch = 9

func (g *Group) CheckCommit(x *kind.Step, _ *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && g.Present == 0 {
		return nil
	}
	mem := g.Member(m.MemberID)
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case m.Version < commitEpoch:
		return kerr.UnsupportedVersion
	}
	return mem.checkEpoch(m.Generation, func() bool {
		return !slices.ContainsFunc(m.Topics, func(t kmsg.OffsetCommitRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
				return !g.had(x, mem, t.Topic, p.Partition, m.Generation)
			})
		})
	})
}

func (g *Group) CheckTxnCommit(x *kind.Step, _ *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && (g.Present == 0 || m.MemberID == "" && m.InstanceID == nil) {
		return nil
	}
	mem := g.Member(m.MemberID)
	if mem == nil {
		return kerr.UnknownMemberID
	}
	err := mem.checkEpoch(m.Generation, func() bool {
		return !slices.ContainsFunc(m.Topics, func(t kmsg.TxnOffsetCommitRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.TxnOffsetCommitRequestTopicPartition) bool {
				return !g.had(x, mem, t.Topic, p.Partition, m.Generation)
			})
		})
	})
	if err != nil && m.Version < txnCommitEpoch {
		return kerr.IllegalGeneration
	}
	return err
}

// CheckFetch says whether someone who says that it is a member may ask for offsets.
func (g *Group) CheckFetch(req *kmsg.OffsetFetchRequestGroup) *kerr.Error {
	if req.MemberID == nil && req.MemberEpoch < 0 {
		return nil
	}
	var mem *Member
	if req.MemberID != nil {
		mem = g.Member(*req.MemberID)
	}
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case mem.Now().Epoch != req.MemberEpoch:
		return kerr.StaleMemberEpoch
	}
	return nil
}

// checkEpoch compares the epoch that a commit names with the member's.
func (m *Member) checkEpoch(epoch int32, had func() bool) *kerr.Error {
	if now := m.Now(); epoch == now.Epoch || epoch < now.Epoch && epoch >= 0 && had() {
		return nil
	}
	return kerr.StaleMemberEpoch
}

// had says whether a member has had the task active since an epoch, or longer, of which a
// partition is.
func (g *Group) had(x *kind.Step, m *Member, topic string, n, epoch int32) bool {
	r := g.look(x.Image)
	if r == nil {
		return false
	}
	for i := range r.Subtopologies {
		s := &r.Subtopologies[i]
		if _, reads := slices.BinarySearch(s.Sources, topic); reads && m.Had(Task{Active, TaskID{s.ID, n}}, epoch) {
			return true
		}
	}
	return false
}
