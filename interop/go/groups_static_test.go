package interop

import (
	"maps"
	"slices"
	"testing"
)

// TestStaticMembersRestartWithoutARebalance restarts the members of a group one
// by one, the leader among them, once after a crash and once after a clean end.
func TestStaticMembersRestartWithoutARebalance(t *testing.T) {
	addr := serve(t, t.TempDir(), groupSettings...).addr()
	tests := []struct{ client, assignor string }{
		{"franz-go", "range"},
		{"franz-go", "cooperative-sticky"},
		{"librdkafka", "range"},
		{"librdkafka", "cooperative-sticky"},
		{"sarama", "range"},
	}
	for _, tt := range tests {
		t.Run(tt.client+"/"+tt.assignor, func(t *testing.T) {
			name := "static-" + tt.client + "-" + tt.assignor
			createTopic(t, addr, name, groupPartitions)
			g := newGroup(t, addr, name, name, tt.client, tt.assignor, calmSession)
			w := startWriter(t, addr, name)
			members := []*memberProcess{g.joinStatic("a", "i-a"), g.joinStatic("b", "i-b"), g.joinStatic("c", "i-c")}
			before := g.settles(members...)
			g.movesOn()
			first := g.current()
			seen := historyLengths(members)
			for i := range members {
				for _, end := range []func(*memberProcess){(*memberProcess).crash, (*memberProcess).leave} {
					end(members[i])
					members[i] = g.joinStatic(members[i].spec.ClientID, members[i].spec.InstanceID)
					after := g.settles(members...)
					if !maps.EqualFunc(before, after, slices.Equal) {
						t.Fatalf("member %d restarted: assignments were %v and are %v", i, before, after)
					}
					g.movesOn()
					seen[i] = len(members[i].history())
				}
			}
			checkReplaced(t, first, g.current())
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

// checkReplaced checks that the generation is the same, with a new member id for
// each group instance id.
func checkReplaced(t *testing.T, before, after generation) {
	t.Helper()
	if before.number != after.number {
		t.Errorf("the generation was %d and is %d", before.number, after.number)
	}
	ids := map[string]string{}
	for _, m := range before.members {
		ids[m.instanceID] = m.id
	}
	for _, m := range after.members {
		old, known := ids[m.instanceID]
		if !known || old == m.id {
			t.Errorf("instance %s had member id %q and has %q", m.instanceID, old, m.id)
		}
	}
	if len(after.members) != len(before.members) {
		t.Errorf("there were %d members and there are %d", len(before.members), len(after.members))
	}
}
