package cluster

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/redistest"
	"muster/internal/store/mem"
)

func moveTo(topic string, partition int32, replicas ...int32) metadata.Reassignment {
	return metadata.Reassignment{Topic: topic, Partition: partition, Replicas: replicas}
}

func TestAReassignedPartitionMovesAlone(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	before := *f.create(a, "orders")
	f.agreed(a, b)
	from := before.Partitions[0].Leader
	to := 3 - from
	for range 2 { // The second time nothing is left to do.
		if errs := b.Reassign(t.Context(), []metadata.Reassignment{moveTo("orders", 0, to)}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		after := f.agreed(a, b).Topic("orders")
		for i, was := range before.Partitions {
			want := was
			if i == 0 {
				want = metadata.Partition{Leader: to, LeaderEpoch: was.LeaderEpoch + 1}
			}
			assert.Equal(t, after.Partitions[i], want, "partition %d", i)
		}
	}
}

// TestAReassignedPartitionGoesBackWithItsBroker takes the broker away that a partition was
// given to, and brings it back.
func TestAReassignedPartitionGoesBackWithItsBroker(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.agreed(a, b)
	f.create(a, "orders")
	// Broker 2 leads this one already. That it was given to it counts all the same.
	must(t, create(t, a, metadata.NewTopic{Name: "one", Partitions: 1, Replication: 1, Leaders: []int32{2}}))
	moves := make([]metadata.Reassignment, 6, 7)
	for i := range moves {
		moves[i] = moveTo("orders", int32(i), 2)
	}
	moves = append(moves, moveTo("one", 0, 2))
	for _, err := range a.Reassign(t.Context(), moves) {
		must(t, err)
	}
	all := f.agreed(a, b).Topic("orders")
	must(t, b.Leave(t.Context()))
	if got := led(f.agreed(a).Topic("orders")); got[1] != 6 {
		t.Fatalf("without broker 2: %v", got)
	}
	c, again := f.join(3), f.join(2)
	now := f.agreed(a, c, again).Topic("orders")
	if got := led(now); got[2] != 6 {
		t.Fatalf("with broker 2 again: %v", got)
	}
	if got := again.Image().Topic("one").Partitions[0]; got.Leader != 2 {
		t.Errorf("the partition that broker 2 led when it was given to it: %+v", got)
	}
	for i, p := range now.Partitions {
		if was := all.Partitions[i].LeaderEpoch; p.LeaderEpoch < was+2 {
			t.Errorf("the epoch of partition %d went from %d to %d", i, was, p.LeaderEpoch)
		}
	}
	// What is read again is the same: this broker has seen nothing but the log.
	if d := f.join(4); led(f.agreed(a, c, again, d).Topic("orders"))[2] != 6 {
		t.Errorf("a new broker took some: %v", led(d.Image().Topic("orders")))
	}
}

func TestJournalsFollowReassignedCoordinators(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	for _, name := range []string{metadata.OffsetsTopic, metadata.JournalTopic} {
		must(t, create(t, a, metadata.NewTopic{Name: name, Partitions: -1, Replication: -1}))
	}
	image := f.agreed(a, b)
	to := 3 - image.Topic(metadata.OffsetsTopic).Partitions[7].Leader
	wantCode(t, a.Reassign(t.Context(), []metadata.Reassignment{moveTo(metadata.JournalTopic, 7, to)})[0], kerr.InvalidReplicaAssignment)
	if errs := a.Reassign(t.Context(), []metadata.Reassignment{moveTo(metadata.OffsetsTopic, 7, to)}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	after := f.agreed(a, b)
	for _, name := range []string{metadata.OffsetsTopic, metadata.JournalTopic} {
		was := image.Topic(name).Partitions[7]
		assert.Equal(t, after.Topic(name).Partitions[7], metadata.Partition{Leader: to, LeaderEpoch: was.LeaderEpoch + 1}, "%s-7", name)
	}
	// The journal may be told to go where it is.
	if errs := a.Reassign(t.Context(), []metadata.Reassignment{moveTo(metadata.JournalTopic, 7, to)}); errs[0] != nil {
		t.Error(errs[0])
	}
}

func TestBadReassignmentsAreRefusedWithKafkasCodes(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(a, "orders")
	before := describe(f.agreed(a, b))
	moves := []metadata.Reassignment{
		moveTo("nowhere", 0, 1), moveTo("orders", 6, 1), moveTo("orders", -1, 1),
		{Topic: "orders", Partition: 0, Replicas: []int32{}}, moveTo("orders", 1, 9), moveTo("orders", 2, -1), moveTo("orders", 3, 1, 2),
		{Topic: "orders", Partition: 4, Cancel: true}, {Topic: "nowhere", Cancel: true},
	}
	codes := []*kerr.Error{
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition,
		kerr.InvalidReplicaAssignment, kerr.InvalidReplicaAssignment, kerr.InvalidReplicaAssignment, kerr.InvalidReplicaAssignment,
		kerr.NoReassignmentInProgress, kerr.UnknownTopicOrPartition,
	}
	for i, err := range a.Reassign(t.Context(), moves) {
		wantCode(t, err, codes[i])
	}
	if after := describe(f.agreed(a, b)); after != before {
		t.Errorf("before\n%s after\n%s", before, after)
	}
}

func TestALoneBrokerIsToldWhyNothingMoves(t *testing.T) {
	c := open(t, mem.New(), false)
	must(t, create(t, c, metadata.NewTopic{Name: "orders", Partitions: 2, Replication: 1}))
	errs := c.Reassign(t.Context(), []metadata.Reassignment{moveTo("orders", 0, 1), moveTo("orders", 1, 2)})
	if errs[0] != nil {
		t.Errorf("to itself: %v", errs[0])
	}
	wantCode(t, errs[1], kerr.InvalidReplicaAssignment)
	if !strings.Contains(errs[1].Error(), "Redis") {
		t.Errorf("%v", errs[1])
	}
	wantCode(t, drain(t, c, "1"), kerr.InvalidRequest)
}

// drain sets which brokers are to lead nothing.
func drain(t *testing.T, c *Controller, ids string) error {
	t.Helper()
	return c.AlterBroker(t.Context(), []metadata.ConfigChange{{Name: metadata.DrainedSetting, Value: &ids}}, false, false)
}

func TestADrainedBrokerLeadsNothing(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b, c := f.join(1), f.join(2), f.join(3)
	f.agreed(a, b, c)
	f.create(a, "orders")
	if errs := a.Reassign(t.Context(), []metadata.Reassignment{moveTo("orders", 0, 2)}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	must(t, drain(t, a, "2"))
	f.agreed(a, b, c)
	f.create(c, "created-since")
	f.agreed(a, b, c)
	wantCode(t, a.Reassign(t.Context(), []metadata.Reassignment{moveTo("orders", 1, 2)})[0], kerr.InvalidReplicaAssignment)
	must(t, c.GrowTopic(t.Context(), "created-since", 9, []int32{2, 2, 2}, false))
	// Also after another broker came, and after it was started again itself.
	must(t, b.Leave(t.Context()))
	d, again := f.join(4), f.join(2)
	image := f.agreed(a, c, d, again)
	for _, topic := range image.Topics() {
		if got := led(topic); got[2] != 0 || got[1] == 0 || got[3] == 0 || got[4] == 0 {
			t.Errorf("%s: %v", topic.Name, got)
		}
	}
	must(t, drain(t, d, ""))
	image = f.agreed(a, c, d, again)
	for _, topic := range image.Topics() {
		if got := led(topic); got[2] == 0 {
			t.Errorf("%s after it may lead again: %v", topic.Name, got)
		}
	}
	if p := image.Topic("orders").Partitions[0]; p.Leader != 2 {
		t.Errorf("the partition that was given to broker 2 did not go back: %+v", p)
	}
}

func TestDrainsThatCannotBeAreRefused(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.agreed(a, b)
	for _, ids := range []string{"9", "x", "-1", "02", "1,2", "1,9"} {
		wantCode(t, drain(t, a, ids), kerr.InvalidRequest)
	}
	must(t, drain(t, a, "2"))
	must(t, b.Leave(t.Context()))
	f.agreed(a)
	// A broker that is away stays in the list, and who is left cannot go.
	wantCode(t, drain(t, a, "2,1"), kerr.InvalidRequest)
	c := f.join(3)
	f.agreed(a, c)
	must(t, drain(t, c, "2,1"))
	f.create(a, "orders")
	if got := led(f.agreed(a, c).Topic("orders")); got[3] != 6 {
		t.Errorf("%v", got)
	}
	// If no one else is there, a drained broker leads: that is better than none.
	must(t, c.Leave(t.Context()))
	if got := led(f.agreed(a).Topic("orders")); got[1] != 6 {
		t.Errorf("%v", got)
	}
}

func TestBrokersAreNotDrainedByTheirProperties(t *testing.T) {
	defaults, err := config.NewBroker(map[string]string{metadata.DrainedSetting: "1"})
	must(t, err)
	if _, err := Open(t.Context(), Options{Store: mem.New(), Self: metadata.Broker{ID: 1}, Defaults: defaults}); err == nil || !strings.Contains(err.Error(), "muster brokers drain") {
		t.Errorf("%v", err)
	}
}
