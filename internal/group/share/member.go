package share

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

func claimOf(m *kmsg.ShareGroupHeartbeatRequest) modern.Claim {
	return modern.Claim{Member: m.MemberID, Epoch: m.MemberEpoch}
}

// groupOf returns the group that a heartbeat is for, nil if the heartbeat makes it. A group of
// another kind is none, also one of offsets alone.
func groupOf(x *kind.Step, m *kmsg.ShareGroupHeartbeatRequest) (*Group, *modern.Refusal) {
	switch g := x.Groups[m.GroupID].(type) {
	case *Group:
		return g, nil
	case nil:
		if m.MemberEpoch == modern.EpochJoin {
			return nil, nil
		}
	default:
		return nil, modern.Refused(kerr.GroupIDNotFound, "Group "+m.GroupID+" is not a share group.")
	}
	return nil, modern.Refused(kerr.GroupIDNotFound, "Share group "+m.GroupID+" not found.")
}

// leave handles a heartbeat by which a member leaves.
func leave(x *kind.Step, r *machine.Request, m *kmsg.ShareGroupHeartbeatRequest) *modern.Refusal {
	g, err := groupOf(x, m)
	if err != nil {
		return err
	}
	if err := g.Leave(x, r, claimOf(m)); err != nil {
		return err
	}
	resp := kmsg.NewPtrShareGroupHeartbeatResponse()
	resp.Version, resp.MemberID, resp.MemberEpoch = m.Version, &m.MemberID, m.MemberEpoch
	x.Reply(r.ID, resp)
	return nil
}

// metadataOf is what the member says of itself with this heartbeat. What it does not mention
// stays as it was.
func metadataOf(known *Member, r *machine.Request, m *kmsg.ShareGroupHeartbeatRequest, hosts kind.Hosts) *schema.ShareMember {
	v := &schema.ShareMember{}
	if known != nil {
		*v = *known.Metadata
	}
	v.ClientID, v.Host = r.ClientID, hosts.Of(r.Host)
	if m.RackID != nil {
		v.Rack = m.RackID
	}
	if m.SubscribedTopicNames != nil {
		v.Topics = slices.Compact(slices.Sorted(slices.Values(m.SubscribedTopicNames)))
	}
	return v
}

// sameMember says whether nothing differs that is stored.
func sameMember(v, w *schema.ShareMember) bool {
	sameRack := v.Rack == w.Rack || v.Rack != nil && w.Rack != nil && *v.Rack == *w.Rack
	return sameRack && v.ClientID == w.ClientID && v.Host == w.Host && slices.Equal(v.Topics, w.Topics)
}

// changeOf is what differs in what a member subscribes to.
func changeOf(was, now *schema.ShareMember) *journal.Change {
	c := &journal.Change{}
	c.TopicsAdded, c.TopicsAddedN = kind.Without(now.Topics, was.Topics)
	c.TopicsRemoved, c.TopicsRemovedN = kind.Without(was.Topics, now.Topics)
	return c
}

// memberBytes is what a member of a share group is counted for.
func memberBytes(id string, meta *schema.ShareMember) int64 {
	return kind.MemberBytes + int64((&schema.ShareMemberRecord{Member: id, Value: meta}).Size())
}

// checkRoom says whether there is room for what a member says of itself.
func checkRoom(x *kind.Step, m *kmsg.ShareGroupHeartbeatRequest, known *Member, meta *schema.ShareMember) *modern.Refusal {
	if !x.Fits(&schema.ShareMemberRecord{Group: m.GroupID, Member: m.MemberID, Value: meta}) {
		return modern.Refused(kerr.InvalidRequest, "What the member says of itself is too large to be stored.")
	}
	before := 0
	switch {
	case known != nil:
		before = int(memberBytes(known.ID, known.Metadata))
	case x.Groups[m.GroupID] == nil:
		before = -groupBytes // The member makes the group.
	}
	if err := x.Room(m.GroupID, int(memberBytes(m.MemberID, meta)), before); err != nil {
		return modern.Refused(err, "There is no room for what the member says of itself.")
	}
	return nil
}
