package console_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Long lists are cut, say so, and lead to what they leave out.
func TestLongListsSayWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	const partitions, groups = 520, 202
	w := newWorld(t)
	ctx := t.Context()
	for name, n := range map[string]int32{topic: 1, "wide": partitions} {
		if _, err := w.admin.CreateTopic(ctx, n, 1, nil, name); err != nil {
			t.Fatal(err)
		}
	}
	wide := kadm.Offsets{}
	for p := range int32(partitions) {
		wide.Add(kadm.Offset{Topic: "wide", Partition: p, LeaderEpoch: -1})
	}
	must(t, w.admin.CommitAllOffsets(ctx, group, wide))
	one := kadm.Offsets{}
	one.Add(kadm.Offset{Topic: topic, LeaderEpoch: -1})
	for i := range groups {
		must(t, w.admin.CommitAllOffsets(ctx, fmt.Sprintf("reader-%03d", i), one))
	}
	w.broker.Status().Pass(ctx)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	rows := func(n int) string {
		return fmt.Sprintf("document.querySelectorAll('main tbody tr').length === %d", n)
	}
	p.open("/groups/"+group+"?tab=offsets", says("Show all 520 partitions")+"&&"+rows(500))
	p.eval("[...document.querySelectorAll('main a')].find((a) => a.innerText.startsWith('Show all')).click()")
	p.wait(rows(partitions) + "&& !" + says("Show all"))

	cells := "document.querySelectorAll('.map li').length"
	p.open("/groups/"+group, cells+" === 512 &&"+says("and 8 more: the offsets tab has all."))
	p.click("Reset offsets …")
	p.click("Show what would happen")
	p.wait(asks("and 320 more") + "&& document.querySelectorAll('dialog[open] tbody tr').length === 200")
	p.open("/topics/wide", says("of 520"))
	p.click("Delete records …")
	p.wait(js("field('Partition')?.type === 'number' && field('Partition').max === '519'"))

	p.open("/topics/"+topic, says("of the first 200 by name, by lag in this topic; all 202 by lag"))
	p.eval("[...document.querySelectorAll('main a')].find((a) => a.innerText === 'all 202 by lag').click()")
	p.wait("location.pathname === '/groups' && location.search === '?topic=" + topic + "' &&" + says("50 of 202 groups"))
	p.quiet("long lists")
}
