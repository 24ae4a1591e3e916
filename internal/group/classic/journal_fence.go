package classic

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// fence says whether the journal is to tell of a member id: once, however often
// it beats, and not of ever new ones that someone makes up.
func (m *Member) fence(id string) bool {
	if m.fenced == nil {
		m.fenced = &kind.Fencing{}
	}
	return m.fenced.IsNew(id)
}

// lookup is find for a request: one of a static
// member whose place was taken is told of in the journal: the process behind it
// still runs.
func (g *Group) lookup(x *kind.Step, r *machine.Request, memberID string, instance *string) (*Member, *kerr.Error) {
	mem, err := g.find(memberID, instance)
	if err == kerr.FencedInstanceID {
		stale := journal.Who{Member: memberID, ClientID: r.ClientID, Host: r.Host, Instance: *instance}
		g.fenced(x, journal.Trigger{Who: stale, Request: kmsg.NameForKey(r.Msg.Key())}, g.Members.static(*instance))
	}
	return mem, err
}

// fenced tells that a request of a stale static member was refused. The holder is
// who has its place.
func (g *Group) fenced(x *kind.Step, stale journal.Trigger, holder *Member) {
	if stale.Member == "" || !holder.fence(stale.Member) {
		return
	}
	by := holder.Who()
	stale.Kind, stale.By = journal.TriggerFenced, &by
	x.Note(g, journal.KindFenced, stale)
}
