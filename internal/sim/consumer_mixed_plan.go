package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/sim/seeds"
)

// isMixed says whether the clients of a group use both protocols, by its name: it is now
// a classic group, and now a consumer group.
func isMixed(id string) bool { return strings.HasPrefix(id, mixedPrefix) }

const mixedPrefix = "mixed-"

// The kinds of groups that a step may make of a group.
const (
	typeClassic  = "classic"
	typeConsumer = "consumer"
)

// SimulateMigration is one run with groups whose clients go over from one protocol to
// the other and back, one after the other, while everything else goes on as in other
// runs.
func SimulateMigration(base *seeds.World) {
	run(base, newMigrationPlan(base.Rand), nil)
}

// newMigrationPlan is what the seed decides of such a run.
func newMigrationPlan(r *rand.Rand) plan {
	p := newConsumersPlan(r)
	p.groups, p.consumers = nil, nil
	p.roll = seeds.Uniform(r, time.Second, 10*time.Second)
	p.config.Consumer.Migration = anyPolicy(r)
	for i := range 1 + r.IntN(5)/4 {
		g := newGroupPlan(r, i)
		g.id, g.protocolType, g.clients = fmt.Sprintf("%s%d", mixedPrefix, i), consumerType, 1+r.IntN(4)
		g.twins, g.odd, g.slow = 0, false, false
		p.groups = append(p.groups, g)
		p.consumers = append(p.consumers, consumerPlan{id: g.id, clients: g.clients, static: g.static, regex: []float64{0, 0, 0.3, 1}[r.IntN(4)]})
	}
	return p
}

// anyPolicy is mostly the one that lets groups go over in both directions.
func anyPolicy(r *rand.Rand) group.MigrationPolicy {
	policies := []group.MigrationPolicy{group.MigrateUpgrade, group.MigrateDowngrade, group.MigrateNever}
	if i := r.IntN(8); i < len(policies) {
		return policies[i]
	}
	return group.MigrateBoth
}

// The moments of groups that go over at which a fault is likely to do most harm.
const (
	momentUpgraded   = "upgraded"   // that it is a consumer group now is on its way to the log
	momentDowngraded = "downgraded" // so is that it is a classic one
)

var mixedMoments = append([]string{momentUpgraded, momentDowngraded, momentUpgraded, momentDowngraded, momentFormed, momentAssigned}, consumerMoments...)

// slot is the place of one process, which uses either protocol: mostly one at a time,
// and under the same instance id.
type slot struct {
	classic  *client
	consumer *consumer
}

// addSlots pairs the clients of both protocols, and has them go over.
func (w *world) addSlots() {
	if w.plan.roll == 0 {
		return
	}
	for i, c := range w.clients {
		s := &slot{classic: c, consumer: w.consumers[i]}
		w.slots = append(w.slots, s)
		if w.Rand.IntN(2) == 0 { // It is the same program, most of the time.
			s.consumer.names, s.consumer.regex = slices.Clone(c.topics), ""
		}
		switch w.Rand.IntN(8) {
		case 0:
		case 1, 2, 3:
			s.classic.benched = true
		default:
			s.consumer.benched = true
		}
	}
	w.back = w.Rand.IntN(2) == 0
	w.Every(w.plan.roll, w.roll)
}

// roll has one process go over, or use both protocols by mistake. They go in the same
// direction for a while, as when a program is rolled out, and perhaps back.
func (w *world) roll() {
	if w.Rand.IntN(6) == 0 {
		w.back = !w.back
	}
	s := w.slots[w.Rand.IntN(len(w.slots))]
	switch {
	case w.Rand.IntN(12) == 0:
		s.classic.unbench()
		s.consumer.unbench()
		w.Count("process uses both protocols")
	case w.back && s.classic.benched:
		s.consumer.bench()
		s.classic.unbench()
		w.Count("process goes back")
	case !w.back && s.consumer.benched:
		s.classic.bench()
		s.consumer.unbench()
		w.Count("process goes over")
	}
}

// bench ends the client, in order or not, and keeps it away.
func (c *client) bench() {
	c.benched = true
	switch {
	case !c.up || c.phase == leaving:
	case c.w.Rand.IntN(3) == 0:
		c.stop()
	default:
		c.leave()
	}
}

func (c *client) unbench() {
	if c.benched = false; !c.up && !c.starting {
		c.startLater(c.w.About(500 * time.Millisecond))
	}
}

// bench ends the client, in order or not, and keeps it away.
func (c *consumer) bench() {
	c.benched = true
	switch {
	case !c.up || c.leaving:
	case c.w.Rand.IntN(3) == 0:
		c.stop()
	default:
		c.leave(c.instance != nil && c.w.Rand.IntN(4) > 0)
	}
}

func (c *consumer) unbench() {
	if c.benched = false; !c.up && !c.starting {
		c.startLater(c.w.About(500 * time.Millisecond))
	}
}

// removeSlot names one member for an administrator to remove, of either protocol.
func (w *world) removeSlot(m *kmsg.LeaveGroupRequest) {
	s := w.slots[w.Rand.IntN(len(w.slots))]
	e := kmsg.NewLeaveGroupRequestMember()
	switch w.Rand.IntN(4) {
	case 0:
		e.InstanceID = s.classic.instance
	case 1:
		e.InstanceID, e.MemberID = s.consumer.instance, s.consumer.member
	case 2:
		e.MemberID = s.classic.member
	default:
		e.MemberID = s.consumer.member
	}
	m.Group = s.classic.group.id
	m.Members = append(m.Members, e)
}
