package interop

import (
	"maps"
	"slices"
	"testing"

	"muster/internal/assert"
)

// TestStaticMembersRestartWithoutARebalance restarts the members of a group one
// by one, once after a crash and once after a clean end.
func TestStaticMembersRestartWithoutARebalance(t *testing.T) {
	addr := serve(t, t.TempDir(), groupSettings...).addr()
	tests := []struct {
		client, assignor string
		// franz-go's leader makes a plan of its own when it comes back (KIP-814
		// gives it the members for that), and joins again if the group's plan is
		// another, as may well be with a sticky assignor.
		sparesLeader bool
	}{
		{"franz-go", "range", false},
		{"franz-go", "cooperative-sticky", true},
		{"librdkafka", "range", false},
		{"librdkafka", "cooperative-sticky", false},
		{"sarama", "range", false},
	}
	for _, tt := range tests {
		t.Run(tt.client+"/"+tt.assignor, func(t *testing.T) {
			name := "static-" + tt.client + "-" + tt.assignor
			createTopic(t, addr, name, groupPartitions)
			g := newGroup(t, addr, name, name, tt.client, tt.assignor, calmSession)
			w := startWriter(t, addr, name)
			members := []*memberProcess{g.joinStatic("a", "i-a"), g.joinStatic("b", "i-b"), g.joinStatic("c", "i-c")}
			g.settles(members...)
			g.movesOn()
			first, seen := g.current(), historyLengths(members)
			for i, m := range members {
				if tt.sparesLeader && first.leads(m) {
					continue
				}
				members[i] = g.restarts(m, members)
				seen[i] = len(members[i].history())
			}
			checkReplaced(t, first, g.current(), tt.sparesLeader)
			for i, m := range members {
				if h := m.history(); len(h) != seen[i] {
					t.Errorf("member %s noticed that others restarted: %+v", m.spec.ClientID, h[seen[i]:])
				}
			}
			ends := w.finish()
			g.reads(ends)
			g.commits(ends)
			g.checkGenerations()
		})
	}
}

// restarts restarts a static member twice and returns what it is then. It must
// get back what it had, and no one else something new.
func (g *liveGroup) restarts(m *memberProcess, all []*memberProcess) *memberProcess {
	g.t.Helper()
	before := g.settles(all...)
	for _, end := range []func(*memberProcess){(*memberProcess).crash, (*memberProcess).leave} {
		end(m)
		again := g.joinStatic(m.spec.ClientID, m.spec.InstanceID)
		all = slices.Clone(all)
		all[slices.Index(all, m)] = again
		m = again
		after := g.settles(all...)
		assert.MustTrue(g.t, maps.EqualFunc(before, after, slices.Equal), "member %s restarted: assignments were %v and are %v", m.spec.ClientID, before, after)
		g.movesOn()
	}
	return m
}

// leads says whether a member is the leader.
func (gen generation) leads(m *memberProcess) bool {
	return slices.ContainsFunc(gen.members, func(g generationMember) bool {
		return g.instanceID == m.spec.InstanceID && g.id == gen.leader
	})
}

// checkReplaced checks that the generation is the same, with a new member id for
// each group instance id, or for all but the leader's.
func checkReplaced(t *testing.T, before, after generation, sparesLeader bool) {
	t.Helper()
	assert.True(t, before.number == after.number, "the generation was %d and is %d", before.number, after.number)
	ids := map[string]string{}
	for _, m := range before.members {
		ids[m.instanceID] = m.id
	}
	for _, m := range after.members {
		spared := sparesLeader && m.id == before.leader
		if old, known := ids[m.instanceID]; !known || (old == m.id) != spared {
			t.Errorf("instance %s had member id %q and has %q", m.instanceID, old, m.id)
		}
	}
	assert.True(t, len(after.members) == len(before.members), "there were %d members and there are %d", len(before.members), len(after.members))
}
