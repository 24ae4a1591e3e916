package classic

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/migration"
)

// subscribes is a subscription to a topic.
func subscribes(topic string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = []string{topic}
	return m.AppendTo(nil)
}

// assigned is an assignment of partitions of t.
func assigned(userData string, partitions ...int32) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	a.Topics, a.UserData = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: partitions}}, []byte(userData)
	return a.AppendTo(nil)
}

func TestUpgradeObstaclesListsThemAll(t *testing.T) {
	fine := Migrant{ID: "a", Subscription: subscribes("t"), Assignment: assigned("", 0, 1)}
	members := []Migrant{
		fine, {ID: "b", Subscription: []byte("x")}, {ID: "c", Subscription: subscribes("t")}, {ID: "d", Subscription: subscribes("t"), Assignment: []byte("x")},
		{ID: "e", Subscription: subscribes("t"), Assignment: assigned("x", 2)}, {ID: "f", Subscription: subscribes("t"), Assignment: assigned("", 1)},
	}
	obstacles := func(policy kind.MigrationPolicy, maxSize int, protocolType string, members []Migrant) []migration.Obstacle {
		return UpgradeObstacles(migration.Group{ProtocolType: protocolType, Members: len(members), Policy: policy, MaxSize: maxSize}, members)
	}
	var who []string
	for _, o := range obstacles(kind.MigrateDowngrade, 2, subscription.ConsumerType, members) {
		if o.Reason == "" {
			t.Errorf("no reason in %+v", o)
		}
		who = append(who, o.Member)
	}
	if want := []string{"", "", "b", "d", "e", "f"}; !slices.Equal(who, want) {
		t.Errorf("obstacles are %q, not %q", who, want)
	}
	if list := obstacles(kind.MigrateBoth, 10, "connect", members); len(list) != 1 || list[0].Member != "" {
		t.Errorf("of another type: %+v", list)
	}
	for _, policy := range []kind.MigrationPolicy{kind.MigrateBoth, kind.MigrateUpgrade} {
		if list := obstacles(policy, 1, subscription.ConsumerType, []Migrant{fine}); len(list) > 0 {
			t.Errorf("%s: %+v", policy, list)
		}
	}
	if twice := (Migrant{ID: "a", Subscription: subscribes("t"), Assignment: assigned("", 0, 0)}); len(obstacles(kind.MigrateBoth, 1, subscription.ConsumerType, []Migrant{twice})) > 0 {
		t.Error("a partition that one member has twice is an obstacle")
	}
}
