package group

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/migration"
)

func TestReadWantsReadsAllVersions(t *testing.T) {
	rack := "r"
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData, m.Generation, m.Rack = []string{"t", "u"}, []byte("x"), 7, &rack
	m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{2, 0}}, {Topic: "u"}}
	for version := range int16(5) {
		m.Version = version
		w, err := readWants(m.AppendTo(nil))
		if err != nil || w.version != version || !slices.Equal(w.topics, m.Topics) {
			t.Fatalf("version %d: %+v, %v", version, w, err)
		}
		if want := []topicPartition{{"t", 2}, {"t", 0}}; version > 0 != slices.Equal(w.owned, want) {
			t.Errorf("version %d owns %v", version, w.owned)
		}
		if version >= 3 != (orEmpty(w.rack) == rack) {
			t.Errorf("version %d is in rack %v", version, w.rack)
		}
	}
}

// Clients that name version 1 and end with the data of their assignor are about.
func TestReadWantsNeedsNothingAfterTheUserData(t *testing.T) {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = []string{"t"}
	b := m.AppendTo(nil)
	b[1] = 1
	if w, err := readWants(b); err != nil || len(w.owned) > 0 {
		t.Errorf("%+v, %v", w, err)
	}
}

// Whatever a client sends, no more room is made than it has sent bytes for.
func FuzzReadWants(f *testing.F) {
	rack := "r"
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Rack = 3, []string{"t", "u"}, &rack
	m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{2, 0}}}
	whole := m.AppendTo(nil)
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := readWants(b)
		if err == nil && len(w.topics)*2+len(w.owned)*4 > len(b) {
			t.Errorf("%d bytes say %+v", len(b), w)
		}
	})
}

func TestReadWantsRefusesWhatIsCutShort(t *testing.T) {
	rack := "rack"
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Rack = 3, []string{"t"}, &rack
	m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{1}}}
	whole := m.AppendTo(nil)
	missing := map[int]bool{} // Where a version may end.
	sub := len(whole) - (2 + len(rack)) - 4
	missing[sub] = true
	old := m
	old.Version = 0
	missing[len(old.AppendTo(nil))] = true
	for n := range whole {
		if _, err := readWants(whole[:n]); (err == nil) != missing[n] {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestUpgradeObstaclesListsThemAll(t *testing.T) {
	fine := migrant{id: "a", subscription: subscription("t"), assignment: assignment("t:0+1")}
	members := []migrant{
		fine, {id: "b", subscription: []byte("x")}, {id: "c", subscription: subscription("t")}, {id: "d", subscription: subscription("t"), assignment: []byte("x")},
		{id: "e", subscription: subscription("t"), assignment: assignment("t:2~x")}, {id: "f", subscription: subscription("t"), assignment: assignment("t:1")},
	}
	obstacles := func(policy MigrationPolicy, maxSize int, protocolType string, members []migrant) []migration.Obstacle {
		return upgradeObstacles(migration.Group{ProtocolType: protocolType, Members: len(members), Policy: policy, MaxSize: maxSize}, members)
	}
	var who []string
	for _, o := range obstacles(MigrateDowngrade, 2, consumerType, members) {
		if o.Reason == "" {
			t.Errorf("no reason in %+v", o)
		}
		who = append(who, o.Member)
	}
	if want := []string{"", "", "b", "d", "e", "f"}; !slices.Equal(who, want) {
		t.Errorf("obstacles are %q, not %q", who, want)
	}
	if list := obstacles(MigrateBoth, 10, "connect", members); len(list) != 1 || list[0].Member != "" {
		t.Errorf("of another type: %+v", list)
	}
	for _, policy := range []MigrationPolicy{MigrateBoth, MigrateUpgrade} {
		if list := obstacles(policy, 1, consumerType, []migrant{fine}); len(list) > 0 {
			t.Errorf("%s: %+v", policy, list)
		}
	}
	if twice := (migrant{id: "a", subscription: subscription("t"), assignment: assignment("t:0+0")}); len(obstacles(MigrateBoth, 1, consumerType, []migrant{twice})) > 0 {
		t.Error("a partition that one member has twice is an obstacle")
	}
}

// An assignment has the version of the subscription, up to the newest that there is.
func TestAssignmentsHaveTheVersionOfTheSubscription(t *testing.T) {
	for says, want := range map[int16]int16{0: 0, 1: 1, 3: 3, 7: 3, -1: 0} {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version = says
		a, ok := parseAssignment(assignmentBytes(nil, nil, m.AppendTo(nil)))
		if !ok || a.Version != want {
			t.Errorf("a subscription of version %d has an assignment of version %d (%t), not %d", says, a.Version, ok, want)
		}
	}
}
