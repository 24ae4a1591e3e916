package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/group/kind"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// roomy is a shard of streams groups whose small requests ask for many tasks.
type roomy struct {
	*testing.T
	shard *Shard
	image *metadata.Image
	now   time.Time
	id    machine.RequestID
}

func newRoomy(t *testing.T, maxBytes int64, partitions int) *roomy {
	cfg := kind.DefaultConfig()
	cfg.MaxBytes, cfg.Streams.Interval, cfg.Streams.InitialDelay, cfg.Streams.AtOnce = maxBytes, 0, 0, 1<<30
	c := &roomy{T: t, shard: NewShard(cfg), now: time.Unix(1000, 0)}
	c.grow(partitions)
	c.step(machine.Loaded{Epoch: 1})
	return c
}

func (c *roomy) grow(partitions int) {
	c.image = withPartitions(imageOf(map[string]byte{"a": 1}), map[string]int{"a": partitions})
}

func (c *roomy) step(e machine.Event) machine.Effects {
	c.Helper()
	fx := c.shard.Step(machine.Input{Now: c.now, Image: c.image, MaxBatch: 8 << 20, Event: e})
	must(c, c.shard.CheckInvariants())
	return fx
}

// beat sends a heartbeat of the only member of a group, and returns the answer.
func (c *roomy) beat(group string, epoch int32) *kmsg.StreamsGroupHeartbeatResponse {
	c.Helper()
	c.id++
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = group, "m", epoch
	if epoch == 0 {
		t := kmsg.NewStreamsGroupHeartbeatRequestTopology()
		t.Subtopologies = append(t.Subtopologies, parseSubtopology("0: a"), parseSubtopology("1: a"))
		none := []kmsg.TaskIDs{}
		req.Topology, req.ProcessID, req.RebalanceTimeoutMillis, req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = &t, new("p"), 1000, none, none, none
	}
	return c.step(machine.Request{ID: c.id, ClientID: "app", Host: "h", Msg: req}).Replies[0].Msg.(*kmsg.StreamsGroupHeartbeatResponse)
}

func waits(resp *kmsg.StreamsGroupHeartbeatResponse) bool {
	return len(resp.Status) == 1 && resp.Status[0].StatusCode == 5 && strings.Contains(resp.Status[0].StatusDetail, "muster.groups.max.bytes")
}

func tasksIn(resp *kmsg.StreamsGroupHeartbeatResponse) (n int) {
	for _, t := range resp.ActiveTasks {
		n += len(t.Partitions)
	}
	return n
}

// Tasks take memory that the requests from which there are that many do not show.
func TestTasksOfAllStreamsGroupsAreCounted(t *testing.T) {
	c := newRoomy(t, 3_100_000, 1000) // A group has 2000 tasks, which weigh 700,000.
	for i := range 4 {
		resp := c.beat(fmt.Sprint("g", i), 0)
		assert.True(t, resp.ErrorCode == 0 && tasksIn(resp) == 2000, "group %d has %d tasks, error %d", i, tasksIn(resp), resp.ErrorCode)
	}
	late := c.beat("late", 0)
	assert.True(t, late.ErrorCode == 0 && tasksIn(late) == 0 && waits(late), "one too many: %d tasks, %+v", tasksIn(late), late.Status)
	assert.True(t, waits(c.beat("late", late.MemberEpoch)), "it waits")
	c.beat("g0", -1)
	resp := c.beat("late", late.MemberEpoch)
	assert.True(t, tasksIn(resp) == 2000 && len(resp.Status) == 0, "with room again: %d tasks, %+v", tasksIn(resp), resp.Status)
}

// A group whose topics grow more than there is room for keeps what it has.
func TestAStreamsGroupThatGrowsWithoutRoomStaysAsItIs(t *testing.T) {
	c := newRoomy(t, 1_200_000, 1000)
	first := c.beat("g", 0)
	assert.Equal(t, tasksIn(first), 2000, "tasks")
	c.grow(3000)
	resp := c.beat("g", first.MemberEpoch)
	assert.True(t, resp.ErrorCode == 0 && resp.ActiveTasks == nil && resp.MemberEpoch == first.MemberEpoch && waits(resp), "grown: %+v", resp)
	g := c.shard.streams("g")
	assert.Equal(t, len(g.Members[0].Now().Assigned), 2000, "tasks that it has")
	c.grow(1500)
	assert.Equal(t, tasksIn(c.beat("g", first.MemberEpoch)), 3000, "tasks when there is room")
}
