// Package migration is the rule by which a classic group with members may become a
// consumer group (KIP-848), and what stands in the way if it may not. The coordinator
// decides by it, and `muster groups migrate --dry-run` tells by it; so it reads nothing
// and keeps nothing: whoever asks has read what the members say, from wherever that is.
package migration

import (
	"fmt"
	"strconv"
)

// Policy says in which directions groups that have members go over from one protocol to
// the other: group.consumer.migration.policy. Empty ones always do.
type Policy string

// The policies.
const (
	Both      Policy = "bidirectional"
	Upgrade   Policy = "upgrade"
	Downgrade Policy = "downgrade"
	Never     Policy = "disabled"
)

// PolicySetting is the name of the broker's setting, MaxSizeSetting that of the limit.
const (
	PolicySetting  = "group.consumer.migration.policy"
	MaxSizeSetting = "group.consumer.max.size"
)

// Upgrades says whether a classic group may become a consumer group.
func (p Policy) Upgrades() bool { return p == Both || p == Upgrade }

// Downgrades says whether a consumer group may become a classic group.
func (p Policy) Downgrades() bool { return p == Both || p == Downgrade }

// Disabled says that members of one protocol do not get into groups of the other.
func (p Policy) Disabled() bool { return p == Never || p == "" }

// ProtocolType is the protocol type of consumers, the only one that can go over.
const ProtocolType = "consumer"

// Group is what decides of a group without a look at its members.
type Group struct {
	ProtocolType string
	Members      int
	Policy       Policy
	MaxSize      int
}

// Member is what decides of a member, in the order of their ids.
type Member struct {
	ID                     string
	UnreadableSubscription bool
	UnreadableAssignment   bool
	UserData               bool // its assignment has some
	Assigned               []Partition
}

// Partition is a partition that a member was assigned.
type Partition struct {
	Topic  string
	Number int32
}

// Obstacle is why a classic group cannot become a consumer group while it has members.
type Obstacle struct {
	Member string // "" if it is about the group
	Other  string // the other member that it is about, "" if there is none
	Reason string // what comes after "because"
}

// OfGroup is what stands in the way of any members.
func OfGroup(g Group) (out []Obstacle) {
	if !g.Policy.Upgrades() {
		out = append(out, Obstacle{Reason: PolicySetting + " is " + string(g.Policy)})
	}
	if g.ProtocolType != ProtocolType {
		out = append(out, Obstacle{Reason: "its protocol type is " + strconv.Quote(g.ProtocolType) + ", not that of consumers"})
	}
	if g.Members > g.MaxSize {
		out = append(out, Obstacle{Reason: fmt.Sprintf("it has %d members, and %s is %d", g.Members, MaxSizeSetting, g.MaxSize)})
	}
	return out
}

// OfMembers is what stands in the way because of members. A partition has one owner in a
// consumer group.
func OfMembers(members []Member) (out []Obstacle) {
	owners := map[Partition]string{}
	for i := range members {
		if o := members[i].obstacle(owners); o.Reason != "" {
			o.Member = members[i].ID
			out = append(out, o)
		}
	}
	return out
}

// obstacle says why a member cannot be one of a consumer group, with no reason if it can.
func (m *Member) obstacle(owners map[Partition]string) (out Obstacle) {
	switch {
	case m.UnreadableSubscription:
		return Obstacle{Reason: "the subscription of member " + m.ID + " cannot be read"}
	case m.UnreadableAssignment:
		return Obstacle{Reason: "the assignment of member " + m.ID + " cannot be read"}
	case m.UserData:
		return Obstacle{Reason: "the assignment of member " + m.ID + " has data of a custom assignor, which would be lost"}
	}
	for _, p := range m.Assigned {
		if other, ok := owners[p]; ok && other != m.ID && out.Reason == "" {
			out.Other = other
			out.Reason = fmt.Sprintf("partition %d of topic %s is assigned to member %s and to member %s", p.Number, p.Topic, other, m.ID)
		}
		owners[p] = m.ID
	}
	return out
}
