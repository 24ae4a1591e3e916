package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// generation is one generation of a group, as the coordinator has written it to
// __consumer_offsets before it told any member its assignment. This is the only
// place that has all generations: DescribeGroups shows the last, and most
// clients do not tell theirs.
type generation struct {
	number  int32
	leader  string // member id
	members []generationMember
}

type generationMember struct {
	id, clientID, instanceID string
	partitions               []int32
}

// generations reads the generations that have members, in the order written. A
// static member that comes back is in there with its generation once more.
func (g *liveGroup) generations() []generation {
	g.t.Helper()
	var out []generation
	for _, value := range readGroupRecords(g.t, g.spec.Addr, g.spec.Group) {
		if len(value.Members) == 0 {
			continue
		}
		gen := generation{number: value.Generation}
		if value.Leader != nil {
			gen.leader = *value.Leader
		}
		for i := range value.Members {
			gen.members = append(gen.members, g.generationMember(&value.Members[i]))
		}
		out = append(out, gen)
	}
	return out
}

func (g *liveGroup) generationMember(m *kmsg.GroupMetadataValueMember) generationMember {
	g.t.Helper()
	out := generationMember{id: m.MemberID, clientID: m.ClientID}
	if m.InstanceID != nil {
		out.instanceID = *m.InstanceID
	}
	if len(m.Assignment) == 0 {
		return out
	}
	var assignment kmsg.ConsumerMemberAssignment
	assert.Must(g.t, assignment.ReadFrom(m.Assignment), "the assignment of member %s", m.MemberID)
	for _, t := range assignment.Topics {
		if t.Topic == g.spec.Topic {
			out.partitions = append(out.partitions, t.Partitions...)
		}
	}
	slices.Sort(out.partitions)
	return out
}

// current returns the last generation.
func (g *liveGroup) current() generation {
	g.t.Helper()
	all := g.generations()
	assert.MustTrue(g.t, len(all) != 0, "%s has no generation", g.spec.Group)
	return all[len(all)-1]
}

// readGroupRecords reads the records of a group from __consumer_offsets.
// Tombstones are left out.
func readGroupRecords(t testing.TB, addr, group string) []kmsg.GroupMetadataValue {
	t.Helper()
	const topic = "__consumer_offsets"
	ctx, cancel := context.WithTimeout(t.Context(), groupTimeout)
	defer cancel()
	ends, err := endOffsets(ctx, connect(t, addr), topic)
	must(t, err)
	partition := offsetsPartition(group, len(ends))
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().AtStart()},
	}))
	must(t, err)
	defer cl.Close()
	var values []kmsg.GroupMetadataValue
	for next := int64(0); next < ends[partition]; {
		fetches := cl.PollFetches(ctx)
		assert.Must(t, fetches.Err(), "read %s-%d", topic, partition)
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			next = r.Offset + 1
			var key kmsg.GroupMetadataKey
			if len(r.Key) < 2 || r.Key[1] != 2 || r.Value == nil { // Key type 2 is a classic group.
				continue
			}
			if err := key.ReadFrom(r.Key); err != nil || key.Group != group {
				continue
			}
			var value kmsg.GroupMetadataValue
			assert.Must(t, value.ReadFrom(r.Value), "%s-%d, offset %d", topic, partition, r.Offset)
			values = append(values, value)
		}
	}
	return values
}

// offsetsPartition is the partition of __consumer_offsets that has a group: the
// hash that Java has for its (here: ASCII) id.
func offsetsPartition(group string, partitions int) int32 {
	var h int32
	for _, c := range []byte(group) {
		h = 31*h + int32(c)
	}
	if h < 0 {
		h = max(-h, 0) // -h is still negative for the lowest number.
	}
	return h % int32(partitions)
}

// checkGenerations holds what the coordinator wrote and what the members said
// against each other: no partition has two owners in one generation, eager
// generations have an owner for each, and no member was given what the
// coordinator did not note.
func (g *liveGroup) checkGenerations() {
	g.t.Helper()
	all := g.generations()
	owned := map[int32]map[int32]string{} // generation, partition → who
	given := map[string]map[int32]bool{}  // client id and generation (0: any) → partitions
	last := int32(0)
	for _, gen := range all {
		assert.True(g.t, gen.number >= last, "generation %d was written after generation %d", gen.number, last)
		last = gen.number
		if owned[gen.number] == nil {
			owned[gen.number] = map[int32]string{}
		}
		for _, m := range gen.members {
			who := m.id
			if m.instanceID != "" {
				who = "instance " + m.instanceID
			}
			for _, p := range m.partitions {
				if other, taken := owned[gen.number][p]; taken && other != who {
					g.t.Errorf("generation %d: partition %d is owned by %s and by %s", gen.number, p, other, who)
				}
				owned[gen.number][p] = who
				for _, n := range []int32{0, gen.number} {
					key := fmt.Sprint(m.clientID, " ", n)
					if given[key] == nil {
						given[key] = map[int32]bool{}
					}
					given[key][p] = true
				}
			}
		}
		if n := len(owned[gen.number]); n != groupPartitions && !g.cooperative() {
			g.t.Errorf("generation %d: %d of %d partitions have an owner", gen.number, n, groupPartitions)
		}
	}
	for _, m := range g.all {
		for _, r := range m.history() {
			for _, p := range r.Partitions {
				if r.Event == eventAssigned && !given[fmt.Sprint(m.spec.ClientID, " ", r.Generation)][p] {
					g.t.Errorf("member %s took partition %d in generation %d, which the coordinator has not written",
						m.spec.ClientID, p, r.Generation)
				}
			}
		}
	}
	g.t.Logf("%s: %d generations, the last is %d", g.spec.Group, len(owned), last)
}
