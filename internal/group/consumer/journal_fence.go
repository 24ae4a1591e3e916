package consumer

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// noteRefused tells of a heartbeat that was refused since another has its instance id:
// two processes run that are one to the group. Each of them is told of once, however
// often it comes.
func noteRefused(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest, err *protocolError) {
	reason := journal.TriggerUnreleased
	switch err.Error {
	case kerr.UnreleasedInstanceID:
	case kerr.FencedInstanceID:
		reason = journal.TriggerFenced
	default:
		return
	}
	g, ok := x.Groups[m.Group].(*Group)
	if !ok {
		return
	}
	holder := g.Instances[*m.InstanceID]
	if holder.Refused == nil {
		holder.Refused = &kind.Fencing{}
	}
	name := kind.Truncate(m.MemberID, kind.MaxWho)
	if !holder.Refused.IsNew(name) {
		return
	}
	by := holder.who()
	x.Note(g, journal.KindFenced, journal.Trigger{
		Kind: reason, By: &by, Request: kmsg.NameForKey(m.Key()),
		Who: journal.Who{Member: name, ClientID: kind.Truncate(r.ClientID, kind.MaxWho), Host: kind.PlainHost(r.Host), Instance: kind.Truncate(*m.InstanceID, kind.MaxWho)},
	})
}
