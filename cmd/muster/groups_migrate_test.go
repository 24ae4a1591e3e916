package main

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/groups"
)

// Before anybody is restarted, it is told whether the group would go over; and what it says
// is what then happens.
func TestGroupsMigrateTellsWhetherAGroupCouldGoOver(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.run("groups", "migrate", "g", "--dry-run").fails(exitFailed, `there is no group "g"`)

	member := s.rawMember("g", 10*time.Second, "orders")
	member.mustJoin()
	s.run("groups", "migrate", "g", "--dry-run").prints("Group g could become a consumer group now, with its 1 member going on: nothing stands in the way.\n")
	report := decode[groups.MigrationReport](s.run("groups", "migrate", "g", "--dry-run", "--json"))
	if !report.Upgradable || report.Members != 1 || report.Type != "classic" || report.State != "Stable" || *report.Policy != "bidirectional" || *report.MaxSize != 1<<31-1 || len(report.Obstacles) != 0 {
		t.Errorf("--json has %+v", report)
	}
	s.member("g", []string{"orders"}, kgo.ServerSideBalancer())
	eventually(t, func() error {
		r := s.run("groups", "migrate", "g", "--dry-run")
		if r.code == exitOK {
			return cli.ErrNoAnswer // It has not joined yet.
		}
		same(t, "of a consumer group", r.stdout, "Group g cannot become a consumer group now, because\n  - it is one already\n")
		return nil
	})
}

// All that stands in the way is told, and the exit code says so.
func TestGroupsMigrateTellsWhatStandsInTheWay(t *testing.T) {
	s := newShell(t, "group.initial.rebalance.delay.ms", "0", "group.min.session.timeout.ms", "100", "group.consumer.migration.policy", "downgrade")
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.rawMember("g", 10*time.Second, "orders").mustJoin()
	r := s.run("groups", "migrate", "g", "--dry-run").fails(exitFailed, "group g cannot become a consumer group now")
	same(t, "stdout", r.stdout, "Group g cannot become a consumer group now, because\n  - group.consumer.migration.policy is downgrade\n")
}

// What members say and were assigned is read as the broker reads it.
func TestMigrationMembersAreReadFromTheirBytes(t *testing.T) {
	subscription, assigned := kmsg.NewConsumerMemberMetadata(), kmsg.NewConsumerMemberAssignment()
	subscription.Topics = []string{"t"}
	assigned.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{1, 2}}}
	m := kmsg.DescribeGroupsResponseGroupMember{MemberID: "a", ProtocolMetadata: subscription.AppendTo(nil), MemberAssignment: assigned.AppendTo(nil)}
	if got := groups.MigrationMember(&m); got.ID != "a" || got.UnreadableSubscription || got.UnreadableAssignment || got.UserData || len(got.Assigned) != 2 || got.Assigned[1].Number != 2 || got.Assigned[1].Topic != "t" {
		t.Errorf("a member is read as %+v", got)
	}
	assigned.UserData = []byte("x")
	m.MemberAssignment = assigned.AppendTo(nil)
	if got := groups.MigrationMember(&m); !got.UserData {
		t.Errorf("with user data it is read as %+v", got)
	}
	m.ProtocolMetadata, m.MemberAssignment = []byte("x"), []byte("x")
	if got := groups.MigrationMember(&m); !got.UnreadableSubscription || !got.UnreadableAssignment {
		t.Errorf("of nothing readable it is read as %+v", got)
	}
	m.MemberAssignment = nil
	if got := groups.MigrationMember(&m); got.UnreadableAssignment {
		t.Errorf("without an assignment it is read as %+v", got)
	}
}
