package handler

import (
	"cmp"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
)

// change is what a request has changed, of one kind.
type change struct {
	kind      audit.Kind
	resources []audit.Resource
}

// changes says for each API key whose requests change something what one has changed.
// It goes by the answer: what was refused, or only checked, is no change. What brokers do
// among themselves, and what producers and the members of groups do all the time, is
// none either.
var changes = map[int16]func(*call, kmsg.Response) []change{
	8:  committedByNobody,
	13: removedMembers,
	19: createdTopics,
	20: deletedTopics,
	21: deletedRecords,
	27: endedTransactions,
	30: addedRules,
	31: removedRules,
	33: alteredConfigs,
	37: addedPartitions,
	42: deletedGroups,
	44: alteredSomeConfigs,
	45: reassignedPartitions,
	47: deletedOffsets,
	49: quotasChanged,
	51: usersChanged,
	75: convertedTopic,
}

// tellChanges tells the audit what a request has changed. Whether someone may was
// decided before.
func (h *Handler) tellChanges(c *call, resp kmsg.Response) {
	if h.opts.Audit == nil || c.own || resp == nil {
		return
	}
	of := changes[c.Key]
	if of == nil {
		return
	}
	for _, ch := range of(c, resp) {
		h.tell(c, audit.Entry{Kind: ch.kind, Resources: ch.resources})
	}
}

// tell tells the audit of something, and says who did it.
func (h *Handler) tell(c *call, e audit.Entry) {
	if h.opts.Audit == nil || c.own || len(e.Resources) == 0 {
		return // Nothing came of it, or this broker did it.
	}
	e.Time, e.Via, e.Broker = h.opts.Now().UTC(), cmp.Or(c.origin.Via, audit.ViaKafka), h.opts.NodeID
	e.Host, e.ClientID = c.host(), c.ClientID
	e.Principal, e.Request = string(c.principal()), kmsg.NameForKey(c.Key)
	h.opts.Audit(e.Bounded())
}
