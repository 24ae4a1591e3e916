package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// noteRefused tells of a heartbeat that was refused since another has its instance id:
// two processes run that are one to the group. Each of them is told of once, however
// often it comes.
func noteRefused(x *step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest, err *consumerError) {
	kind := journal.TriggerUnreleased
	switch err.Error {
	case kerr.UnreleasedInstanceID:
	case kerr.FencedInstanceID:
		kind = journal.TriggerFenced
	default:
		return
	}
	g, ok := x.groups[m.Group].(*consumerGroup)
	if !ok {
		return
	}
	holder := g.instances[*m.InstanceID]
	if holder.refused == nil {
		holder.refused = &fencing{}
	}
	name := firstCharacters(m.MemberID, maxWho)
	if !holder.refused.isNew(name) {
		return
	}
	by := holder.who()
	x.note(g, journal.KindFenced, journal.Trigger{
		Kind: kind, By: &by, Request: kmsg.NameForKey(m.Key()),
		Who: journal.Who{Member: name, ClientID: firstCharacters(r.ClientID, maxWho), Host: plainHost(r.Host), Instance: firstCharacters(*m.InstanceID, maxWho)},
	})
}
