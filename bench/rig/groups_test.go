package rig

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestSmallRunMeasuresGroupsAndLeavesNothing(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else each process waits a second
	dir := t.TempDir()
	doc := filepath.Join(t.TempDir(), "doc.md")
	o := &Options{
		Rounds: 1, Only: regexp.MustCompile("groups"), Dir: dir, Embedded: true, JSON: true, Write: doc,
		Timeout: 2 * time.Minute, Command: "go -C bench run .", Rest: 10 * time.Millisecond,
		Group: GroupSizes{
			members: []int{3, 100, 120}, groups: []int{1, 20}, offsets: 3, loads: 1,
			Connections: 4, Makers: 5, Time: 20 * time.Millisecond,
		},
	}
	sampled(o, "^groups (join 3|commit)$")
	var stdout, stderr bytes.Buffer
	if err := Run(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var result struct{ Rows []row }
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, r := range result.Rows {
		got[r.Group] = true
		if len(r.Broker) == 0 && r.Unit != "times" { // Little work may show no processor time to compare.
			t.Errorf("nothing measured: %s, %s", r.Group, r.Name)
		}
	}
	for _, group := range []string{
		"groups join 3", "groups join 100", "groups join 120", "groups join all", "groups commit", "groups memory",
		"groups heartbeat 1", "groups heartbeat 20", "groups load",
		"groups heartbeat consumer", "groups settle 12", "groups settle 120", "groups settle all",
	} {
		if o.Only.MatchString(group) && !got[group] {
			t.Errorf("no row of %s", group)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	text, err := os.ReadFile(doc)
	if err != nil || !strings.Contains(string(text), beginMarker+endMarker) || !strings.Contains(string(text), "| groups commit |") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestBadAssignmentsAreNoticed(t *testing.T) {
	members := func(partitions ...int32) []*GroupMember {
		var out []*GroupMember
		for _, p := range partitions {
			out = append(out, &GroupMember{generation: 2, partition: p})
		}
		return out
	}
	if err := checkAssigned(members(1, 0, 2)); err != nil {
		t.Error(err)
	}
	older := members(0, 1)
	older[1].generation = 1
	for name, bad := range map[string][]*GroupMember{
		"one partition twice":   members(0, 1, 1),
		"nobody's partition":    members(0, 3, 1),
		"different generations": older,
	} {
		if checkAssigned(bad) == nil {
			t.Errorf("%s: not noticed", name)
		}
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
		if got := Thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}
