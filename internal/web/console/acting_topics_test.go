package console_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// Every act is done by the page, and its effect asked for by the Kafka protocol.
func TestPeopleActOnTopics(t *testing.T) {
	t.Parallel()
	axe := axeOf(t)
	w := newWorld(t)
	w.broker.Status().Pass(t.Context())
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.width(1280)

	p.open("/topics", says("There is no topic yet"))
	p.click("Create a topic …")
	p.put("Name", "shop")
	p.put("Partitions", "3")
	p.click("+ Add a setting")
	p.put("Setting 1", "retention.ms")
	p.put("Value 1", "soon")
	p.expected = []string{"status of 400"}
	p.click("Create the topic")
	p.wait(asks("retention.ms"))
	p.looked("topic-create-refused", axe)
	p.put("Value 1", "3600000")
	p.looked("topic-create", axe)
	p.click("Create the topic")
	p.wait("location.pathname === '/topics/shop' &&" + says("Partitions"))
	if got := w.partitions("shop"); got != 3 {
		t.Fatalf("the topic has %d partitions", got)
	}
	w.setting("shop", "retention.ms", "3600000")
	p.looked("topic-created", axe)
	p.told("was created")
	w.broker.Status().Pass(t.Context()) // Lists know of it from now on.

	produceByPage(t, w, p, axe)
	changeSettings(t, w, p, axe)
	growAndEmpty(t, w, p, axe)
	deleteTopicByPage(t, w, p, axe)
	p.quiet("topics")
}

// partitions says how many partitions a topic has, none if it does not exist. The admin
// client would remember what it heard before.
func (w *world) partitions(topic string) int {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	req.Topics = append(req.Topics, asked)
	resp, err := req.RequestWith(w.t.Context(), w.kafka)
	must(w.t, err)
	return len(resp.Topics[0].Partitions)
}

// setting fails unless a setting of a topic has a value.
func (w *world) setting(topic, name, want string) {
	w.t.Helper()
	found, err := w.admin.DescribeTopicConfigs(w.t.Context(), topic)
	must(w.t, err)
	for _, c := range found[0].Configs {
		if c.Key == name && c.MaybeValue() != want {
			w.t.Errorf("%s is %q, want %q", name, c.MaybeValue(), want)
		}
	}
}

// Keys alone open a dialog and leave it, and do nothing else there.
func TestADialogKeepsKeysToItself(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.open("/topics", says("Create a topic …"))
	p.eval(js("button('Create a topic …').focus()"))
	p.keys("\r")
	p.wait("document.activeElement.closest('dialog[open]') && document.activeElement.tagName === 'INPUT'")
	p.keys("gg?")
	p.wait(js("field('Name').value === 'gg?'") + "&& location.pathname === '/topics' && !document.querySelector('dialog.keys').open")
	p.keys("\r") // The name is not one.
	p.eval(js("button('Cancel').focus()"))
	p.keys("gg")
	p.press("?")
	p.wait("location.pathname === '/topics' && !document.querySelector('dialog.keys').open")
	p.keys("\x1b")
	p.wait("!document.querySelector('dialog.act') && document.activeElement.innerText === 'Create a topic …'")
	p.quiet("keys")
}

func TestWhoMayOnlyReadIsToldWhy(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	axe := axeOf(t)
	w := newWorld(t)
	w.fill()
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.width(1280)
	p.header("X-Forwarded-For", "192.0.2.7")
	for path, button := range map[string]string{"/topics": "Create a topic …", "/topics/" + topic: "Delete the topic …", "/groups/" + group: "Reset offsets …"} {
		p.open(path, js("button("+quoted(button)+")?.getAttribute('aria-disabled') === 'true'"))
		p.eval(js("button(" + quoted(button) + ").click()")) // It opens nothing.
		p.wait(js("document.getElementById(button(" + quoted(button) + ").getAttribute('aria-describedby')).innerText.length > 20"))
		p.wait("!document.querySelector('dialog.act') && document.querySelector('.acts .quiet').innerText.length > 20")
	}
	p.looked("read-only", axe)
	p.quiet("read only")
}

func produceByPage(t *testing.T, w *world, p *page, axe string) {
	p.click("Produce a record …")
	p.put("Key", "k1")
	p.put("Value", "a <b>value</b>\nof two lines")
	p.click("+ Add a header")
	p.put("Key 1", "trace")
	p.put("Value 1", "abc")
	p.looked("topic-produce", axe)
	p.click("Produce")
	p.told("The record is in partition ")
	c := w.client(kgo.ConsumeTopics("shop"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	first := next(t, c)
	if string(first.Key) != "k1" || string(first.Value) != "a <b>value</b>\nof two lines" || first.Headers[0].Key != "trace" || string(first.Headers[0].Value) != "abc" {
		t.Errorf("the record is %s %s %v", first.Key, first.Value, first.Headers)
	}
	p.click("Produce a record …")
	p.put("Without a key", "")
	p.put("Without a value: a tombstone, which deletes the key where the topic is compacted", "")
	p.put("Partition", "2")
	p.click("Produce")
	p.told("The record is in partition 2 at offset ")
	for {
		r := next(t, c)
		if r.Key == nil && r.Value == nil && r.Partition == 2 {
			return
		}
	}
}

func changeSettings(t *testing.T, w *world, p *page, axe string) {
	p.click("Change retention.ms")
	p.put("Value", "60000")
	p.looked("topic-setting", axe)
	p.click("Show what would happen")
	p.wait(asks("retention.ms would become 60000"))
	p.looked("topic-setting-sure", axe)
	w.setting("shop", "retention.ms", "3600000")
	p.click("Change the setting")
	p.told("1 setting of topic")
	w.setting("shop", "retention.ms", "60000")
	p.click("Change a setting")
	p.put("Setting", "compression.type")
	p.put("Value", "zstd")
	p.click("Show what would happen")
	p.click("Change the setting")
	p.told("1 setting of topic")
	w.setting("shop", "compression.type", "zstd")
	p.click("Reset retention.ms to the default")
	p.click("Reset to the default")
	p.told("1 setting of topic")
	w.setting("shop", "retention.ms", "604800000")
	p.wait(says("compression.type") + "&& !" + says("retention.ms would") + "&&" + js("!button('Change retention.ms')"))
}

func growAndEmpty(t *testing.T, w *world, p *page, axe string) {
	p.click("Add partitions …")
	p.put("Partitions afterwards", "4")
	p.click("Show what would happen")
	p.wait(asks("would have 4 partitions"))
	p.looked("topic-partitions", axe)
	p.click("Add partitions")
	p.told("4 partitions")
	if got := w.partitions("shop"); got != 4 {
		t.Errorf("the topic has %d partitions", got)
	}
	p.click("Delete records …")
	p.put("Partition", "2")
	p.put("First offset that stays", "9")
	p.click("Show what would happen")
	p.wait(asks("It would be refused now: Offset 9 lies beyond the end of partition 2") + "&&" + js("!button('Delete the records')"))
	p.click("Back")
	p.put("First offset that stays", "1")
	p.looked("topic-records", axe)
	p.click("Show what would happen")
	p.wait(asks("would be deleted"))
	p.looked("topic-records-sure", axe)
	p.click("Delete the records")
	p.told("were deleted")
	starts, err := w.admin.ListStartOffsets(t.Context(), "shop")
	if o, ok := starts.Lookup("shop", 2); err != nil || !ok || o.Offset != 1 {
		t.Errorf("partition 2 starts at %+v, %v", o, err)
	}
	// All are those that the page knows of: they are looked at again first.
	w.broker.Status().Pass(t.Context())
	p.wait("[...document.querySelectorAll('[aria-label=Partitions] tbody tr')].map((r) => r.cells[3].innerText).join() === '0,0,2,0'")
	p.click("Delete records …")
	p.put("All that are there now", "")
	p.eval("window.sent = [], ((f) => { window.fetch = (to, how) => (window.sent.push(how?.body ?? ''), f(to, how)) })(window.fetch)")
	p.click("Show what would happen")
	p.wait(`window.sent.some((b) => b.includes('{"partition":2,"offset":"2"}'))`)
	p.click("Delete the records")
	p.told("Records of 4 partitions")
	starts, err = w.admin.ListStartOffsets(t.Context(), "shop")
	must(t, err)
	ends, err := w.admin.ListEndOffsets(t.Context(), "shop")
	must(t, err)
	ends.Each(func(end kadm.ListedOffset) {
		if start, _ := starts.Lookup(end.Topic, end.Partition); start.Offset != end.Offset {
			t.Errorf("partition %d has offsets %d to %d", end.Partition, start.Offset, end.Offset)
		}
	})
}

func deleteTopicByPage(t *testing.T, w *world, p *page, axe string) {
	p.click("Delete the topic …")
	p.wait(asks("would be deleted") + "&&" + js("!button('Delete the topic')"))
	p.put("Name of the topic", "sho")
	p.wait(js("!button('Delete the topic')"))
	p.looked("topic-delete", axe)
	p.keys("\r")
	p.keys("\x1b")
	p.wait("!document.querySelector('dialog[open]') && document.activeElement.innerText === 'Delete the topic …'")
	assert.MustTrue(t, w.partitions("shop") != 0, "Escape deleted the topic")
	p.click("Delete the topic …")
	p.put("Name of the topic", "shop")
	p.eval(`window.listed = false;
		new MutationObserver(() => { window.listed ||= location.pathname === "/topics" && !!document.querySelector("tbody")?.innerText.includes("shop") }).observe(document.body, { childList: true, subtree: true })`)
	p.click("Delete the topic")
	p.wait("location.pathname === '/topics' && !window.listed &&" + says("There is no topic yet"))
	p.told("was deleted")
	if got := w.partitions("shop"); got != 0 {
		t.Errorf("the topic has %d partitions", got)
	}
}

// next returns the next record that there is.
func next(t *testing.T, c *kgo.Client) *kgo.Record {
	t.Helper()
	for {
		fetches := c.PollRecords(t.Context(), 1)
		must(t, fetches.Err())
		if all := fetches.Records(); len(all) > 0 {
			return all[0]
		}
	}
}
