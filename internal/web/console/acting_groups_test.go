package console_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
)

// committed returns the offset that a group has committed, -1 if none.
func (w *world) committed(group, topic string, partition int32) int64 {
	w.t.Helper()
	found, err := w.admin.FetchOffsets(w.t.Context(), group)
	must(w.t, err)
	o, ok := found.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}

// rests makes a group without members that has read a part of a topic.
func (w *world) rests(group string, at int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	for partition := range int32(6) {
		offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	}
	must(w.t, w.admin.CommitAllOffsets(w.t.Context(), group, offsets))
}

func TestPeopleActOnGroups(t *testing.T) {
	t.Parallel()
	axe := axeOf(t)
	w := newWorld(t)
	w.fill()
	w.rests("resting", 20)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.width(1280)

	resetByPage(t, w, p, axe)
	resetBusy(t, w, p, axe)
	removeMember(t, w, p, axe)
	deleteGroupByPage(t, w, p, axe)
	p.quiet("groups")
}

func resetByPage(t *testing.T, w *world, p *page, axe string) {
	p.open("/groups/resting?tab=offsets", says("Log end"))
	p.looked("group-offsets", axe)
	p.click("Reset offsets …")
	p.put("To an offset", "")
	p.put("Offset", "7")
	p.put("Topics", topic)
	p.put("Partitions", "0, 2-3")
	p.looked("group-reset", axe)
	p.click("Show what would happen")
	p.wait(asks("Read again") + "&&" + asks("13"))
	p.looked("group-reset-plan", axe)
	assert.Equal(t, w.committed("resting", topic, 2), 20, "a plan moved the offset")
	p.click("Move 3 partitions")
	p.told("were moved in 3 partitions")
	for partition, want := range []int64{7, 20, 7, 7, 20, 20} {
		assert.Equal(t, w.committed("resting", topic, int32(partition)), want, "partition %d", partition)
	}
	p.wait("[...document.querySelectorAll('main tbody tr')].filter((r) => r.cells[2].innerText === '7').length === 3")

	// Each other way leads somewhere else.
	ends, err := w.admin.ListEndOffsets(t.Context(), topic)
	must(t, err)
	end, _ := ends.Lookup(topic, 0)
	for _, x := range []struct {
		way, label, value string
		want              int64
	}{
		{"To the end: everything that is unread is skipped", "", "", end.Offset},
		{"By a number of records, back or forth", "Records", "-5", end.Offset - 5},
		{"To a time", "Time", "2020-01-01T00:00:00", 0},
		{"By a number of records, back or forth", "Records", "3", 3},
		{"To the beginning: everything that is kept is read again", "", "", 0},
	} {
		p.click("Reset offsets …")
		p.put(x.way, "")
		if x.label != "" {
			p.put(x.label, x.value)
		}
		p.click("Show what would happen")
		p.wait(asks("Read again"))
		p.click("Move 6 partitions")
		p.told("were moved in 6 partitions")
		assert.Equal(t, w.committed("resting", topic, 0), x.want, "%s", x.way)
	}

	// What was committed meanwhile is not overwritten.
	p.click("Reset offsets …")
	p.put("To an offset", "")
	p.put("Offset", "100000")
	p.click("Show what would happen")
	p.wait(asks("nearest end"))
	p.looked("group-reset-clamped", axe)
	w.rests("resting", 11)
	p.expected = append(p.expected, "status of 409")
	p.click("Move 6 partitions")
	p.wait(asks("make a new plan"))
	p.looked("group-reset-refused", axe)
	assert.Equal(t, w.committed("resting", topic, 0), 11, "a stale plan moved the offset")
	p.keys("\x1b")
	p.wait("!document.querySelector('dialog[open]')")
}

func resetBusy(t *testing.T, w *world, p *page, axe string) {
	p.open("/groups/"+group, says("Members")+"&&"+says("Findings"))
	p.click("Reset offsets …")
	p.wait(asks("The group has 2 members") + "&&" + asks("first") + "&&" + asks("second"))
	p.looked("group-reset-busy", axe)
	p.click("Close")
	p.click("Delete the group …")
	p.wait(asks("It would be refused now"))
	p.put("Name of the group", group)
	p.looked("group-delete-busy", axe)
	p.wait(js("!button('Delete the group')"))
	p.click("Cancel")
	p.click("Reset offsets …")
	p.wait(asks("The group has 2 members"))
	for _, m := range w.members {
		m.Close()
	}
	p.wait(asks("Where to")) // It goes on by itself.
	p.click("Cancel")
	w.broker.Status().Pass(t.Context())
}

func removeMember(t *testing.T, w *world, p *page, axe string) {
	m := w.member("straggler")
	defer m.Close()
	w.read(t.Context(), m)
	p.open("/groups/"+group, says("straggler"))
	p.looked("group-now", axe)
	p.eval(js("[...document.querySelectorAll('td.do button')][0].click()"))
	p.wait(asks("would be removed"))
	p.looked("group-member", axe)
	before, err := w.admin.DescribeGroups(t.Context(), group)
	must(t, err)
	p.click("Remove the member")
	p.told("was removed from group")
	after, err := w.admin.DescribeGroups(t.Context(), group)
	must(t, err)
	for _, x := range after[group].Members {
		if x.MemberID == before[group].Members[0].MemberID {
			t.Error("the member is still there") // If it runs it joins again, as another one.
		}
	}
}

func deleteGroupByPage(t *testing.T, w *world, p *page, axe string) {
	p.open("/groups/resting?tab=offsets", says("Log end"))
	p.click("Delete offsets …")
	p.put("Partitions", "1")
	p.looked("group-forget", axe)
	p.click("Show what would happen")
	p.wait(asks("would be deleted"))
	p.looked("group-forget-sure", axe)
	p.click("Delete the offsets")
	p.told("was deleted")
	assert.Equal(t, w.committed("resting", topic, 1), -1, "partition 1")
	assert.Equal(t, w.committed("resting", topic, 0), 11, "partition 0")
	p.click("Delete the group …")
	p.wait(asks("would be deleted"))
	p.put("Name of the group", "resting")
	p.looked("group-delete", axe)
	p.expected = append(p.expected, "/api/v1/groups/resting") // The page may ask once more at that very moment.
	p.click("Delete the group")
	p.told("was deleted")
	p.wait("location.pathname === '/groups' &&" + says(group) + "&& !" + says("resting"))
	found, err := w.admin.ListGroups(t.Context())
	if _, there := found["resting"]; err != nil || there {
		t.Errorf("the groups are %v, %v", found.Groups(), err)
	}
}
