package share

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// ProtocolType is what ListGroups tells of share groups.
const ProtocolType = "share"

// What the shard asks of a share group.

func (g *Group) Kind() schema.Kind { return schema.Share }

func (g *Group) ProtocolName() string { return ProtocolType }

// groupBytes is about what a group takes besides its members and topics. It is counted, because
// groups stay until someone deletes them.
const groupBytes = 1 << 10

func (g *Group) Weight() int64 { return groupBytes + g.bytes + g.topics.bytes }

// StateName returns Kafka's name of the group's state: there are only these two.
func (g *Group) StateName() string {
	if g.IsEmpty() {
		return modern.StateEmpty
	}
	return modern.StateStable
}

// CheckCommit refuses offsets: how far a share group is, its share partitions say.
func (g *Group) CheckCommit(*kind.Step, *machine.Request, *kmsg.OffsetCommitRequest) *kerr.Error {
	return kerr.GroupIDNotFound
}

// txnCommitEpoch is the version of TxnOffsetCommit from which clients know the error.
const txnCommitEpoch = 6

func (g *Group) CheckTxnCommit(_ *kind.Step, _ *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	if m.Version < txnCommitEpoch {
		return kerr.IllegalGeneration
	}
	return kerr.GroupIDNotFound
}

// CheckFetch refuses nothing: there are no offsets.
func (g *Group) CheckFetch(*kmsg.OffsetFetchRequestGroup) *kerr.Error { return nil }

func (g *Group) InUse() (func(topic string) bool, *kerr.Error) { return nil, kerr.GroupIDNotFound }

func (g *Group) Expires() (subscribed func(topic string) bool, since int64, ok bool) {
	return nil, 0, false
}

func (g *Group) Look(out *kind.Look) {
	for _, mem := range g.Members {
		if mem.Metadata == nil {
			continue
		}
		l := out.Another()
		l.ID, l.ClientID, l.Host, l.Topics = mem.ID, mem.Metadata.ClientID, kind.PlainHost(mem.Metadata.Host), mem.Metadata.Topics
		for _, p := range mem.Current.AssignedParts() {
			l.Parts = append(l.Parts, kind.PartLook{Topic: p.Part.Topic, Partition: p.Part.Number})
		}
	}
}

// What groups in which the coordinator assigns ask of a share group: see also assign.go and
// stored.go.

func (g *Group) NewMember(id string) *Member {
	return &Member{Member: modern.Member[partition]{ID: id}}
}

func (g *Group) Config(x *kind.Step) *kind.KindConfig { return &x.Cfg.Share }

func (g *Group) Session(x *kind.Step, _ *Member) time.Duration { return x.Cfg.Share.Of(g.ID).Session }

func (g *Group) TopicNames() []string { return slices.Sorted(maps.Keys(g.names)) }

// Count counts a member with its subscription in or out.
func (g *Group) Count(mem *Member, n int) {
	g.bytes += int64(n) * memberBytes(mem.ID, mem.Metadata)
	for _, name := range mem.Metadata.Topics {
		if g.names[name] += n; g.names[name] == 0 {
			delete(g.names, name)
		}
	}
	g.looked = looked{}
}

// Toward is what a member comes to: several may have a partition, so each is free.
func (g *Group) Toward(x *kind.Step, mem *Member) modern.Target[partition] {
	wants := func(p partition) bool {
		if x.Image == nil {
			return false
		}
		t := x.Image.TopicByID(p.Topic)
		if t == nil {
			return false
		}
		_, named := slices.BinarySearch(mem.Metadata.Topics, t.Name)
		return named
	}
	return modern.Target[partition]{
		Wanted: func() []partition {
			return slices.DeleteFunc(slices.Clone(mem.Target), func(p partition) bool { return !wants(p) })
		},
		Wants:  wants,
		IsFree: func(partition) bool { return true },
	}
}

// Refresh has the share coordinator initialize what is missing.
func (g *Group) Refresh(x *kind.Step) { g.initialize(x) }
