package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

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

// classicGroup is a group of the classic protocol, or one that only has offsets.
type classicGroup struct {
	base

	// Hard state: what the records say.
	hard        *schema.Group     // nil for a simple group, which only has offsets
	rebalancing *schema.Rebalance // nil unless it is on its way to another generation than that of hard
	departed    map[string]int32  // members that hard has and that are gone, with its generation; nil if there are none

	// Soft state. After a load it follows from the hard state. There are many
	// groups, so what is small stands together.
	state        State
	previous     State // the state before this one
	newMember    bool  // somebody joined since the initial delay was last armed
	changed      bool  // the step under way sees to what is to be written
	leaps        bool  // it was loaded, and has formed no generation since
	loads        int8  // how often it was loaded in the middle of this rebalance before
	lives        int16 // how many lives before this one have leapt in this rebalance
	leapsFrom    int32 // the generation that was loaded, 0 if none with members was
	generation   int32
	joined       int32 // members parked in JoinGroup
	unsynced     int32 // members of this generation that have not synced
	bytes        int64 // that members and pending ones hold
	since        int64 // when it came to this state, in milliseconds
	protocolType string
	protocol     string // selected; empty if none is
	leader       string
	members      memberList
	pending      map[string]*pending // told their id, not yet joined; nil if nobody is
	supported    tally               // how many members support each protocol
	joinSeq      uint64              // of the join timer, 0 if none
	syncSeq      uint64              // of the sync timer, 0 if none
	rebalance    *rebalance          // what the journal will say of the one under way
	refusal      *noUpgrade          // why it could not become a consumer group, nil if that was not tried
}

// pending is somebody who was told a member id and has not joined with it yet
// (KIP-394).
type pending struct {
	seq      uint64
	clientID string
	host     string
}

// member is a member of a classic group.
type member struct {
	id        string
	instance  *string
	clientID  string
	host      string // as Kafka writes it
	rebalance time.Duration
	session   time.Duration
	protocols []protocol
	assigned  []byte
	stored    *string // the id that hard has it under, nil if it has not

	join        machine.RequestID // parked JoinGroup, 0 if none
	sync        machine.RequestID // parked SyncGroup, 0 if none
	joinVersion int16
	syncVersion int16
	isNew       bool  // has not been in a completed join phase
	unsynced    bool  // has not synced in this generation
	loaded      bool  // is as the record has it, since it has not joined again
	asked       int64 // when it joined in this rebalance, in milliseconds
	silent      int64 // since when it counts as silent, in milliseconds; 0 if it was not loaded, or is heard of since

	deadline time.Time // to be heard of
	timerAt  time.Time // when the session timer fires, at the deadline or before
	timerSeq uint64
	fixed    int // bytes that it is counted for besides its protocols

	fenced     *fencing // nil if nobody was
	prev, next *member
}

// protocol is an assignor that a member supports, with its metadata.
type protocol struct {
	name     string
	metadata []byte
}

func newClassicGroup(b base) *classicGroup { return &classicGroup{base: b, previous: Empty} }

func (g *classicGroup) to(s State, now time.Time) {
	g.previous, g.state, g.since = g.state, s, now.UnixMilli()
}

// add adds a member. The first one leads, and decides the protocol type.
func (g *classicGroup) add(m *member, protocolType string) {
	if g.members.len() == 0 {
		g.protocolType = protocolType
	}
	if g.leader == "" {
		g.leader = m.id
	}
	g.members.add(m)
	m.fixed = m.fixedBytes()
	g.bytes += int64(m.fixed)
	g.support(m.protocols, 1)
}

// support counts protocols that a member supports in or out.
func (g *classicGroup) support(protocols []protocol, n int) {
	for _, p := range protocols {
		g.supported.add(p.name, n)
	}
	g.bytes += int64(n * protocolBytes(protocols))
}

// remove removes a member; the next one leads if it did.
func (g *classicGroup) remove(m *member) {
	g.members.remove(m)
	g.bytes -= int64(m.fixed)
	g.support(m.protocols, -1)
	g.sync(m)
	if m.join != 0 {
		g.joined--
	}
	if g.leader == m.id {
		g.leader = ""
		if g.members.first != nil {
			g.leader = g.members.first.id
		}
	}
}

// sync notes that a member need not sync any more.
func (g *classicGroup) sync(m *member) {
	if m.unsynced {
		m.unsynced = false
		g.unsynced--
	}
}

// forget notes that somebody is not pending any more.
func (g *classicGroup) forget(id string) {
	if g.pending[id] != nil {
		g.bytes -= pendingBytes(id)
	}
	if delete(g.pending, id); len(g.pending) == 0 {
		g.pending = nil
	}
}

// supports says whether somebody with these protocols can be a member: the type
// must be the group's, and one protocol must be supported by everybody.
func (g *classicGroup) supports(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	return protocolType == g.protocolType && slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool {
		return g.supported.of(p.Name) == g.members.len()
	})
}

// vote selects the protocol: each member votes for the first of its own that
// all support. Among equals, the one that was voted for first wins.
func (g *classicGroup) vote() string {
	votes := map[string]int{}
	var order []string
	for m := g.members.first; m != nil; m = m.next {
		for _, p := range m.protocols {
			if g.supported.of(p.name) == g.members.len() {
				if votes[p.name]++; votes[p.name] == 1 {
					order = append(order, p.name)
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
func (g *classicGroup) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for m := g.members.first; m != nil; m = m.next {
		longest = max(longest, m.rebalance)
	}
	return longest
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.name == protocol {
			return p.metadata
		}
	}
	return nil
}

// matches says whether a member joins with what it joined with before: the same
// protocols in the same order with the same metadata.
func (m *member) matches(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a protocol, b kmsg.JoinGroupRequestProtocol) bool {
		return a.name == b.Name && bytes.Equal(a.metadata, b.Metadata)
	})
}

// distinct leaves out protocols that are named again: a member supports each of
// its protocols once.
func distinct(in []kmsg.JoinGroupRequestProtocol) []kmsg.JoinGroupRequestProtocol {
	seen := make(map[string]bool, len(in))
	return slices.DeleteFunc(in, func(p kmsg.JoinGroupRequestProtocol) bool {
		again := seen[p.Name]
		seen[p.Name] = true
		return again
	})
}

func cloneProtocols(in []kmsg.JoinGroupRequestProtocol) []protocol {
	out := make([]protocol, len(in))
	for i, p := range in {
		out[i] = protocol{name: p.Name, metadata: bytes.Clone(p.Metadata)}
	}
	return out
}
