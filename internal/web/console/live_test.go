package console_test

import (
	"net/http"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// onlyStreams has pages not ask by themselves after a while, and notes their streams. Who
// hangs is given up when the test says so.
const onlyStreams = `
const later = window.setTimeout;
window.setTimeout = (f, ms, ...rest) => ms === 15000 ? later(f, window.patience ?? 1e9) : [5000, 30000].includes(ms) ? 0 : later(f, ms, ...rest);
window.streams = [];
window.EventSource = class extends EventSource { constructor(url) { super(url); window.streams.push(this) } };
window.tell = (what) => window.streams.at(-1).dispatchEvent(new MessageEvent("changed", { data: JSON.stringify({ watch: what }) }));
`

// first has every page run a script before its own.
func (p *page) first(script string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		p.t.Fatal(err)
	}
}

// What the stream tells, and that it broke or came back, is acted upon at once.
func TestTheStreamTellsAtOnceWhatABrokerDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker.Status().Pass(t.Context())
	f := newFront(t, w)
	p := browser(t, f.base)
	p.first(onlyStreams)
	needing := func(n int) rule {
		return rule{about: "/api/v1/overview", change: func(a map[string]any) { a["needing"], a["groups"] = n, 100 }}
	}
	shows := func(text string) string { return "document.querySelector('h1')?.innerText === " + quoted(text) }
	events := rule{about: "/api/v1/events", quiet: true}
	silent := says("The broker does not answer. What you see is as of")
	open := "window.streams.at(-1)?.readyState === 1"

	f.obey(events, needing(2))
	p.open("/", shows("2 groups need attention"))
	p.wait(open)
	f.obey(rule{about: "/api/", gone: true})
	f.cut()
	p.wait(silent)
	f.obey(events, needing(3)) // The browser opens the stream again by itself.
	p.wait("!" + silent + "&&" + shows("3 groups need attention"))

	f.obey(events, needing(4))
	p.eval("document.dispatchEvent(new Event('visibilitychange'))")
	p.wait(shows("4 groups need attention"))

	// What changes while it is asked for is asked for once more.
	held := needing(5)
	held.came, held.held = make(chan struct{}, 1), make(chan struct{})
	f.obey(events, held)
	p.eval("tell('overview')")
	<-held.came
	f.obey(events, needing(6))
	p.eval("tell('overview')")
	close(held.held)
	p.wait(shows("6 groups need attention"))

	// A broker that hangs does not answer.
	f.obey(events, rule{about: "/api/v1/overview", hangs: true})
	p.eval("window.patience = 100, tell('overview')")
	p.wait(silent)
}

// An act that is refused may be half done: the page is read again, without waiting for anything.
func TestAfterARefusalThePageIsReadAgain(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	if _, err := w.admin.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	f := newFront(t, w)
	p := browser(t, f.base)
	p.first(onlyStreams)
	rules := func(groups int) []rule {
		return []rule{
			{about: "/api/v1/events", quiet: true}, {about: "POST /api/v1/topics", status: http.StatusServiceUnavailable},
			{about: "GET /api/v1/topics/" + topic, change: func(a map[string]any) { a["moreGroups"] = groups }},
		}
	}
	f.obey(rules(5555)...)
	p.open("/topics/"+topic, says("5,555"))
	p.click("Produce a record …")
	f.obey(rules(7777)...)
	p.click("Produce")
	p.wait(asks("The store is away for a moment.") + "&&" + says("7,777"))
}
