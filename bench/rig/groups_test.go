package rig

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestSmallRunMeasuresGroupsAndLeavesNothing(t *testing.T) {
	o := &Options{Only: regexp.MustCompile("groups"), Group: GroupSizes{
		members: []int{3, 100, 120}, groups: []int{1, 20}, offsets: 3, loads: 1,
		Connections: 4, Makers: 5, Time: 20 * time.Millisecond,
	}}
	text := small(t, o, "^groups (join 3|commit)$",
		"groups join 3", "groups join 100", "groups join 120", "groups join all", "groups commit", "groups memory",
		"groups heartbeat 1", "groups heartbeat 20", "groups load",
		"groups heartbeat consumer", "groups settle 12", "groups settle 120", "groups settle all")
	assert.True(t, strings.Contains(text, beginMarker+endMarker) && strings.Contains(text, "| groups commit |"), "%v", text)
}

func TestBadAssignmentsAreNoticed(t *testing.T) {
	members := func(partitions ...int32) []*GroupMember {
		var out []*GroupMember
		for _, p := range partitions {
			out = append(out, &GroupMember{generation: 2, partition: p})
		}
		return out
	}
	assert.NoError(t, checkAssigned(members(1, 0, 2)))
	older := members(0, 1)
	older[1].generation = 1
	for name, bad := range map[string][]*GroupMember{
		"one partition twice":   members(0, 1, 1),
		"nobody's partition":    members(0, 3, 1),
		"different generations": older,
	} {
		assert.True(t, checkAssigned(bad) != nil, "%s: not noticed", name)
	}
	for name, b := range map[string][]byte{"nothing": nil, "cut short": assignment(3)[:9], "no topic": new(kmsg.ConsumerMemberAssignment).AppendTo(nil)} {
		if _, err := assigned(b); err == nil {
			t.Errorf("%s: taken for an assignment", name)
		}
	}
	if p, err := assigned(assignment(3)); p != 3 || err != nil {
		t.Error(p, err)
	}
}

func TestNumbersHaveThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 5000: "5,000", 1_000_020: "1,000,020"} {
		assert.Equal(t, Thousands(n), want, "%d", n)
	}
}
