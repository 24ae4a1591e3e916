package group

import (
	"fmt"
	"strconv"
)

// MigrationPolicy says in which directions groups that have members go over from one
// protocol to the other: group.consumer.migration.policy. Empty ones always do.
type MigrationPolicy string

// The policies.
const (
	MigrateBoth      MigrationPolicy = "bidirectional"
	MigrateUpgrade   MigrationPolicy = "upgrade"
	MigrateDowngrade MigrationPolicy = "downgrade"
	MigrateNever     MigrationPolicy = "disabled"
)

func (p MigrationPolicy) upgrades() bool   { return p == MigrateBoth || p == MigrateUpgrade }
func (p MigrationPolicy) downgrades() bool { return p == MigrateBoth || p == MigrateDowngrade }
func (p MigrationPolicy) disabled() bool   { return p == MigrateNever || p == "" }

// Migrant is what decides whether a member of a classic group can go on in a consumer
// group: what it subscribes to, and what it was assigned, in the bytes of its protocol.
type Migrant struct {
	ID           string
	Subscription []byte
	Assignment   []byte // empty if it was not assigned anything yet
}

// Obstacle is why a classic group cannot become a consumer group while it has members.
type Obstacle struct {
	Member string // "" if it is about the group
	Reason string // what comes after "because"
}

// UpgradeObstacles says what stands in the way of a classic group that is to become a
// consumer group while it has members, all of it. If nothing does, a member of the
// consumer protocol may join it.
func UpgradeObstacles(policy MigrationPolicy, maxSize int, protocolType string, members []Migrant) []Obstacle {
	out := groupObstacles(policy, maxSize, protocolType, len(members))
	if protocolType != consumerType {
		return out // What its members say means something else.
	}
	owners := map[topicPartition]string{}
	for i := range members {
		if o := members[i].obstacle(owners); o != "" {
			out = append(out, Obstacle{members[i].ID, o})
		}
	}
	return out
}

// groupObstacles is what can be told without a look at the members.
func groupObstacles(policy MigrationPolicy, maxSize int, protocolType string, members int) (out []Obstacle) {
	if !policy.upgrades() {
		out = append(out, Obstacle{Reason: "group.consumer.migration.policy is " + string(policy)})
	}
	if protocolType != consumerType {
		out = append(out, Obstacle{Reason: "its protocol type is " + strconv.Quote(protocolType) + ", not that of consumers"})
	}
	if members > maxSize {
		out = append(out, Obstacle{Reason: fmt.Sprintf("it has %d members, and group.consumer.max.size is %d", members, maxSize)})
	}
	return out
}

// obstacle says why a member cannot be one of a consumer group, "" if it can. A
// partition has one owner there.
func (m *Migrant) obstacle(owners map[topicPartition]string) string {
	if _, err := readWants(m.Subscription); err != nil {
		return "the subscription of member " + m.ID + " cannot be read"
	}
	if len(m.Assignment) == 0 {
		return ""
	}
	a, ok := parseAssignment(m.Assignment)
	switch {
	case !ok:
		return "the assignment of member " + m.ID + " cannot be read"
	case len(a.UserData) > 0:
		return "the assignment of member " + m.ID + " has data of a custom assignor, which would be lost"
	}
	twice := ""
	eachAssigned(m.Assignment, func(tp topicPartition) {
		if other, ok := owners[tp]; ok && other != m.ID && twice == "" {
			twice = fmt.Sprintf("partition %d of topic %s is assigned to member %s and to member %s", tp.partition, tp.topic, other, m.ID)
		}
		owners[tp] = m.ID
	})
	return twice
}
