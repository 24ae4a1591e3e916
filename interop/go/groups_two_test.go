package interop

import (
	"maps"
	"testing"

	"muster/internal/assert"
)

// TestGroupsOnOneTopicDoNotDisturbEachOther has one group read a topic in peace
// while members of another come and go.
func TestGroupsOnOneTopicDoNotDisturbEachOther(t *testing.T) {
	addr := serve(t, t.TempDir(), groupSettings...).addr()
	const topic = "shared"
	createTopic(t, addr, topic, groupPartitions)
	calm := newGroup(t, addr, "calm", topic, "franz-go", "range", calmSession)
	wild := newGroup(t, addr, "wild", topic, "librdkafka", "range", flowSession)
	w := startWriter(t, addr, topic)
	members := []*memberProcess{calm.join("x"), calm.join("y")}
	calm.settles(members...)
	calm.movesOn()
	before, seen := calm.current(), historyLengths(members)

	a, b := wild.join("a"), wild.join("b")
	wild.settles(a, b)
	wild.movesOn()
	a.leave()
	wild.settles(b)
	c := wild.join("c")
	wild.settles(b, c)
	b.crash()
	wild.settles(c)
	wild.movesOn()

	ends := w.finish()
	for _, g := range []*liveGroup{calm, wild} {
		g.reads(ends)
		g.commits(ends)
		g.checkGenerations()
	}
	if after := calm.current(); after.number != before.number {
		t.Errorf("the calm group went from generation %d to %d", before.number, after.number)
	}
	for i, m := range members {
		if h := m.history(); len(h) != seen[i] {
			t.Errorf("member %s of the calm group was disturbed: %+v", m.spec.ClientID, h[seen[i]:])
		}
	}

	c.leave()
	wild.isEmpty()
	deleted, err := wild.admin.DeleteGroup(t.Context(), "wild")
	assert.MustTrue(t, err == nil && deleted.Err == nil, "delete the wild group: %v, %v", err, deleted.Err)
	if committed, err := wild.committed(); err != nil || len(committed) != 0 {
		t.Errorf("the deleted group has offsets %v, error %v", committed, err)
	}
	if committed, err := calm.committed(); err != nil || !maps.Equal(committed, ends) {
		t.Errorf("the calm group has offsets %v, error %v, want %v", committed, err, ends)
	}
	calm.settles(members...)
}
