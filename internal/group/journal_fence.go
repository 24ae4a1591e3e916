package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// fence says whether the journal is to tell of a member id: once, however often
// it beats, and not of ever new ones that somebody makes up.
func (m *member) fence(id string) bool {
	if m.fenced == nil {
		m.fenced = &fencing{}
	}
	return m.fenced.isNew(id)
}

// lookup is find for a request: one of a static
// member whose place was taken is told of in the journal: the process behind it
// still runs.
func (g *classicGroup) lookup(x *step, r *machine.Request, memberID string, instance *string) (*member, *kerr.Error) {
	mem, err := g.find(memberID, instance)
	if err == kerr.FencedInstanceID {
		stale := journal.Who{Member: memberID, ClientID: r.ClientID, Host: r.Host, Instance: *instance}
		g.fenced(x, journal.Trigger{Who: stale, Request: kmsg.NameForKey(r.Msg.Key())}, g.members.static(*instance))
	}
	return mem, err
}

// fenced tells that a request of a stale static member was refused. The holder is
// who has its place.
func (g *classicGroup) fenced(x *step, stale journal.Trigger, holder *member) {
	if stale.Member == "" || !holder.fence(stale.Member) {
		return
	}
	by := holder.who()
	stale.Kind, stale.By = journal.TriggerFenced, &by
	x.note(g, journal.KindFenced, stale)
}
