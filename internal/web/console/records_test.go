package console_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Records are searched, opened, gone on with and followed, and shown as text only.
func TestRecordsAreSearchedAndShown(t *testing.T) {
	t.Parallel()
	axe := axeOf(t)
	w := newWorld(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	if _, err := w.admin.CreateTopic(t.Context(), 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	p.open("/topics/"+topic+"?tab=records", says("The topic has no records"))
	p.quiet("empty")
	c := w.client()
	evil := `<img src=x onerror="document.title='evil'">`
	for i := range 120 {
		r := &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "customer-%d", i%7), Value: fmt.Appendf(nil, `{"order":%d,"total":%d.5,"note":%q}`, i, i*3, evil), Headers: []kgo.RecordHeader{{Key: "trace-id", Value: fmt.Appendf(nil, "%016x", i)}}}
		switch i {
		case 117:
			r.Value = nil
		case 118:
			r.Key, r.Value = nil, append([]byte{0, 0, 0, 0, 42}, 200, 1, 2, 3)
		}
		must(t, c.ProduceSync(t.Context(), r).FirstErr())
	}
	rows := "document.querySelectorAll('main tbody tr').length"
	for _, scheme := range []string{"light", "dark"} {
		p.colours(scheme)
		p.open("/topics/"+topic+"?tab=records", rows+" === 50 &&"+says("tombstone")+"&&"+says("schema 42")+"&&"+says("Show more"))
		p.accessible("records-"+scheme, axe)
		p.shoot("records-" + scheme)
		click(p, "main tbody tr:nth-child(1) .toggle")
		p.wait("document.querySelector('.opened pre')")
		p.accessible("record-"+scheme, axe)
		p.shoot("record-" + scheme)
	}
	click(p, "p.more button")
	p.wait(rows + " === 101") // One is open.
	p.open("/topics/"+topic+"?tab=records&jq="+".value.order%20%3E%20110", says("Searched everything: searched 120 of 120 records, 7 found")+"&&"+rows+" === 7")
	p.shoot("records-jq")
	p.expected = append(p.expected, "status of 400") // The browser notes, sooner or later, that it was refused.
	p.open("/topics/"+topic+"?tab=records&jq=input", says("input/0 is not to be had here"))
	p.open("/topics/"+topic+"?tab=records&follow=true", says("Following."))
	must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("just now")}).FirstErr())
	p.wait(says("just now") + "&& document.title !== 'evil'")
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 400, Height: 800, DeviceScaleFactor: 1}); err != nil {
		t.Fatal(err)
	}
	p.open("/topics/"+topic+"?tab=records&value=order", says("found")+"&&"+rows+" === 50")
	p.wait("document.documentElement.scrollWidth <= 400")
	p.shoot("records-narrow")
	p.quiet("records")
}

// The same question has another answer after a while, and after something was done.
func TestRecordsAreSearchedAgain(t *testing.T) {
	ofThePage(t)
	w := newWorld(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	if _, err := w.admin.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	p.open("/topics/"+topic+"?tab=records", says("The topic has no records"))
	must(t, w.kafka.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("the first")}).FirstErr())
	p.click("Search")
	p.wait(says("the first"))
	p.click("Produce a record …")
	p.put("Value", "the second")
	p.click("Produce")
	p.wait("document.querySelector('main table')?.innerText.includes('the second')")
	p.quiet("searched again")
}

func click(p *page, css string) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(css))))
}
