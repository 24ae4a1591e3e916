// Package classic is groups of the classic protocol: members join and sync in generations,
// and one of them assigns. A group without members that has only offsets is one as well.
//
// Hard state is what GroupMetadata records say, and those of ours about a rebalance that is
// not over. Requests to groups of another kind that have classic members go to their Host.
package classic

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// State is a classic group's state.
type State int8

// The states. A group that does not exist is Dead.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

// String returns Kafka's name of the state.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// Group is a group of the classic protocol, or one that only has offsets.
type Group struct {
	kind.Base

	// Hard state: what the records say.
	Hard        *schema.Group     // nil for a simple group, which only has offsets
	rebalancing *schema.Rebalance // nil unless it is on its way to another generation than that of hard
	departed    map[string]int32  // members that hard has and that are gone, with its generation; nil if there are none

	// Soft state. After a load it follows from the hard state. There are many
	// groups, so what is small stands together.
	State            State
	Previous         State // the state before this one
	newMember        bool  // someone joined since the initial delay was last armed
	changed          bool  // the step under way sees to what is to be written
	FirstAfterLoad   bool  // it was loaded, and has formed no generation since
	loads            int8  // how often it was loaded in the middle of this rebalance before
	priorLoads       int16 // how many lives before this one have leapt in this rebalance
	LoadedGeneration int32 // the generation that was loaded, 0 if none with members was
	Generation       int32
	Joined           int32 // members parked in JoinGroup
	Unsynced         int32 // members of this generation that have not synced
	bytes            int64 // that members and pending ones hold
	Since            int64 // when it came to this state, in milliseconds
	ProtocolType     string
	Protocol         string // selected; empty if none is
	Leader           string
	Members          memberList
	Pending          map[string]*Pending // told their id, not yet joined; nil if no one is
	Supported        kind.Tally          // how many members support each protocol
	JoinSeq          uint64              // of the join timer, 0 if none
	SyncSeq          uint64              // of the sync timer, 0 if none
	Rebalance        *Rebalance          // what the journal will say of the one under way
	Refusal          *NoUpgrade          // why it could not become a consumer group, nil if that was not tried
	Live             *kind.LiveReset     // that is under way, nil if none is
}

// Pending is someone who was told a member id and has not joined with it yet
// (KIP-394).
type Pending struct {
	Seq      uint64
	clientID string
	host     string
}

// Member is a member of a classic group.
type Member struct {
	ID        string
	Instance  *string
	ClientID  string
	Host      string // as Kafka writes it
	Rebalance time.Duration
	Session   time.Duration
	Protocols []Protocol
	Assigned  []byte
	stored    *string // the id that hard has it under, nil if it has not

	Join        machine.RequestID // parked JoinGroup, 0 if none
	Sync        machine.RequestID // parked SyncGroup, 0 if none
	JoinVersion int16
	SyncVersion int16
	IsNew       bool  // has not been in a completed join phase
	Unsynced    bool  // has not synced in this generation
	loaded      bool  // is as the record has it, since it has not joined again
	JoinedAt    int64 // when it joined in this rebalance, in milliseconds
	Silent      int64 // since when it counts as silent, in milliseconds; 0 if it was not loaded, or is heard of since

	Deadline time.Time // to be heard of
	TimerAt  time.Time // when the session timer fires, at the deadline or before
	TimerSeq uint64
	fixed    int // bytes that it is counted for besides its protocols

	fenced     *kind.Fencing // nil if no one was
	prev, Next *Member
}

// Protocol is an assignor that a member supports, with its metadata.
type Protocol struct {
	Name     string
	Metadata []byte
}

func New(b kind.Base) *Group { return &Group{Base: b, Previous: Empty} }

func (g *Group) changeState(s State, now time.Time) {
	g.Previous, g.State, g.Since = g.State, s, now.UnixMilli()
}

// Add adds a member. The first one leads, and decides the protocol type.
func (g *Group) Add(m *Member, protocolType string) {
	if g.Members.Len() == 0 {
		g.ProtocolType = protocolType
	}
	if g.Leader == "" {
		g.Leader = m.ID
	}
	g.Members.Add(m)
	m.fixed = m.fixedBytes()
	g.bytes += int64(m.fixed)
	g.support(m.Protocols, 1)
}

// support counts protocols that a member supports in or out.
func (g *Group) support(protocols []Protocol, n int) {
	for _, p := range protocols {
		g.Supported.Add(p.Name, n)
	}
	g.bytes += int64(n * protocolBytes(protocols))
}

// remove removes a member; the next one leads if it did.
func (g *Group) remove(m *Member) {
	g.Members.remove(m)
	g.bytes -= int64(m.fixed)
	g.support(m.Protocols, -1)
	g.noteSynced(m)
	if m.Join != 0 {
		g.Joined--
	}
	if g.Leader == m.ID {
		g.Leader = ""
		if g.Members.First != nil {
			g.Leader = g.Members.First.ID
		}
	}
}

// noteSynced notes that a member need not sync any more.
func (g *Group) noteSynced(m *Member) {
	if m.Unsynced {
		m.Unsynced = false
		g.Unsynced--
	}
}

// removePending notes that someone is not pending any more.
func (g *Group) removePending(id string) {
	if g.Pending[id] != nil {
		g.bytes -= pendingBytes(id)
	}
	if delete(g.Pending, id); len(g.Pending) == 0 {
		g.Pending = nil
	}
}

// supports says whether someone with these protocols can be a member: the type
// must be the group's, and one protocol must be supported by everybody.
func (g *Group) supports(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if g.State == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	return protocolType == g.ProtocolType && slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool {
		return g.Supported.Of(p.Name) == g.Members.Len()
	})
}

// Vote selects the protocol: each member votes for the first of its own that
// all support. Among equals, the one that was voted for first wins.
func (g *Group) Vote() string {
	votes := map[string]int{}
	var order []string
	for m := g.Members.First; m != nil; m = m.Next {
		for _, p := range m.Protocols {
			if g.Supported.Of(p.Name) == g.Members.Len() {
				if votes[p.Name]++; votes[p.Name] == 1 {
					order = append(order, p.Name)
				}
				break
			}
		}
	}
	best := ""
	for _, name := range order {
		if best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// rebalanceTimeout is the longest of the members'.
func (g *Group) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for m := g.Members.First; m != nil; m = m.Next {
		longest = max(longest, m.Rebalance)
	}
	return longest
}

func (m *Member) Metadata(protocol string) []byte {
	for _, p := range m.Protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// matches says whether a member joins with what it joined with before: the same
// protocols in the same order with the same metadata.
func (m *Member) matches(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(m.Protocols, protocols, func(a Protocol, b kmsg.JoinGroupRequestProtocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// Distinct leaves out protocols that are named again: a member supports each of
// its protocols once.
func Distinct(in []kmsg.JoinGroupRequestProtocol) []kmsg.JoinGroupRequestProtocol {
	seen := make(map[string]bool, len(in))
	return slices.DeleteFunc(in, func(p kmsg.JoinGroupRequestProtocol) bool {
		again := seen[p.Name]
		seen[p.Name] = true
		return again
	})
}

func cloneProtocols(in []kmsg.JoinGroupRequestProtocol) []Protocol {
	out := make([]Protocol, len(in))
	for i, p := range in {
		out[i] = Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)}
	}
	return out
}
