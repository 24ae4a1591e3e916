package group

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/schema"
	"muster/internal/metadata"
)

// consumerGroup is a group of the consumer protocol (KIP-848). There is no generation: the group has an epoch, which rises with each
// change of who wants what; the target assignment has the epoch that it was made
// for; and each member comes to that epoch by itself, heartbeat by heartbeat.
type consumerGroup struct {
	base

	// Hard state: what the records say.
	epoch       int32 // firstEpoch if there is no record
	hash        int64 // of the topics that are subscribed to
	targetEpoch int32 // firstEpoch if there is no record
	targetAt    int64 // when the target was made, in milliseconds
	hasEpoch    bool
	hasTarget   bool
	oldTopics   bool              // there is a record of an older Kafka that nobody needs
	members     []*consumerMember // in the order of their ids
	regexes     map[string]*regex // that were resolved, by pattern

	// What follows from the hard state.
	instances map[string]*consumerMember // by group instance id
	owners    map[part]*consumerMember   // who holds a partition, or has yet to let go of it
	names     map[string]int             // how many members subscribe to a topic by name
	patterns  map[string]int             // how many members have a regex
	bytes     int64                      // that members hold by what they say of themselves
	present   int                        // members that have joined
	classic   int                        // those of them that use the classic protocol
	supported tally                      // how many of these support each protocol

	// Soft state.
	seen     *metadata.Image // which the hash was last compared with, nil for none
	run      *run            // of the assignor, nil if none is under way
	tooLarge int32           // the epoch whose target cannot be stored, 0 if none
	scan     scan            // of the topics for regular expressions
	story    story           // for the journal
	leaps    bool            // it was loaded, and has had no other epoch since
	unheard  int             // members that were loaded and not heard of since
	changes  uint64          // how often the hard state has changed
	stays    *stays          // why it could not become a classic group, nil if that was not tried
}

// firstEpoch is the epoch of a group in which nothing has happened, and of its
// target, which is empty.
const firstEpoch = 1

// regex is what a pattern matched when it was last resolved.
type regex struct {
	topics  []string // sorted
	version int64
	at      int64 // in milliseconds
}

// consumerMember is a member of a consumer group.
type consumerMember struct {
	id      string
	says    *schema.ConsumerMember // record 5, nil if there is none
	target  []part                 // record 7
	stored  bool                   // there is a record 7
	current *consumerNow           // record 8, nil if there is none

	deadline  time.Time // to be heard of
	timerAt   time.Time // when the session timer fires, at the deadline or before
	timerSeq  uint64
	revokeSeq uint64    // of the timer by which it must have let go, 0 if none
	revokeIn  int32     // the epoch in which that was armed
	revokeBy  time.Time // when that fires
	joinSeq   uint64    // of the timer by which one of the classic protocol must have joined again, 0 if none
	syncSeq   uint64    // of the timer by which it must have asked for its assignment, 0 if none
	told      time.Time // since when it is to let go of something, or waits for others to
	silent    int64     // since when it counts as silent, see silence.go; 0 if it was not loaded, or is heard of since
	unheard   bool      // it was loaded, and not heard of since
	untold    bool      // it was loaded, and not told what it has since
	refused   *fencing  // who else came in its name, nil if nobody
}

func newConsumerGroup(b base) *consumerGroup {
	return &consumerGroup{
		base: b, epoch: firstEpoch, targetEpoch: firstEpoch, regexes: map[string]*regex{}, instances: map[string]*consumerMember{},
		owners: map[part]*consumerMember{}, names: map[string]int{}, patterns: map[string]int{},
	}
}

// isGone says that no record is left.
func (g *consumerGroup) isGone() bool {
	return !g.hasEpoch && !g.hasTarget && !g.oldTopics && len(g.members) == 0 && len(g.regexes) == 0
}

// now is where the member has got to; a new one is nowhere.
func (mem *consumerMember) now() consumerNow {
	if mem.current == nil {
		return consumerNow{}
	}
	return *mem.current
}

// find returns where a member is, or would be, among the members.
func (g *consumerGroup) find(id string) (int, bool) {
	return slices.BinarySearchFunc(g.members, id, func(m *consumerMember, id string) int { return strings.Compare(m.id, id) })
}

// member returns a member that has joined, nil if there is none of that id.
func (g *consumerGroup) member(id string) *consumerMember {
	if i, ok := g.find(id); ok && g.members[i].says != nil {
		return g.members[i]
	}
	return nil
}

// The states of a consumer group.
const (
	consumerEmpty       = "Empty"
	consumerAssigning   = "Assigning"
	consumerReconciling = "Reconciling"
	consumerStable      = "Stable"
)

// stateName returns Kafka's name of the group's state.
func (g *consumerGroup) stateName() string {
	switch {
	case g.present == 0:
		return consumerEmpty
	case g.epoch > g.targetEpoch:
		return consumerAssigning
	}
	for _, m := range g.members {
		if m.says != nil && !m.settled(g) {
			return consumerReconciling
		}
	}
	return consumerStable
}

// settled says whether a member has all that it is to have.
func (mem *consumerMember) settled(c *consumerGroup) bool {
	now := mem.now()
	return now.state == memberStable && now.epoch == c.targetEpoch
}

// consumerError is an error that is told to a client with a reason.
type consumerError struct {
	*kerr.Error
	reason string
}

func refused(err *kerr.Error, reason string) *consumerError { return &consumerError{err, reason} }
