package console_test

import (
	"context"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"muster/internal/assert"
	"muster/internal/web/console"
)

var shots = flag.String("shots", "", "a folder to write pictures of the pages to")

// patience is how long a page may take. Groups are looked at every ten seconds, and
// machines that test are busy.
const patience = 2 * time.Minute

// page is a tab of a real browser, and what went wrong in it.
type page struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	problems []string
	expected []string // What the browser may complain about, since it was asked for.
}

// browser starts Chromium. Where there is none the test is skipped, except where there
// must be one.
func browser(t *testing.T, base string) *page {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		console.Unavailable(t, "there is no Chromium to look at pages with")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1360, 1000))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // Chromium has none for root.
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, base: base}
	messages := chromedp.Console(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Type == chromedp.ConsoleException {
				p.mu.Lock()
				p.problems = append(p.problems, string(m.Type)+": "+m.Text+" "+m.URL)
				p.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

// open shows a page and waits until an expression of JavaScript is true.
func (p *page) open(path, until string) {
	p.t.Helper()
	assert.Must(p.t, chromedp.Do(p.ctx, chromedp.Navigate(p.base+path)), "%s", path)
	p.wait(until)
}

func (p *page) wait(until string) {
	p.t.Helper()
	if err := p.script(chromedp.Poll[chromedp.Void](until, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
		p.t.Fatalf("never came: %s: %v\n%s", until, err, text)
	}
}

// script runs a script in the page. The browser may just be replacing the page, which happens to few scripts
// in a row: such a one has not begun.
func (p *page) script(run chromedp.Action[chromedp.Void]) (err error) {
	for range 5 {
		if _, err = chromedp.Run(p.ctx, run); err == nil || !strings.Contains(err.Error(), "Cannot find context with specified id") {
			return err
		}
	}
	return err
}

// keys presses keys one after the other, in no time: a busy machine delivers them far
// apart, and some belong together.
func (p *page) keys(keys string) {
	p.t.Helper()
	now := input.TimeSinceEpoch(float64(time.Now().UnixMicro()) / 1e6)
	at := func(key *input.DispatchKeyEventParams) { key.Timestamp = now }
	must(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys, at)))
}

// press presses a key as people do: what it would type is not typed if the page takes it.
func (p *page) press(key string) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		params := input.DispatchKeyEventParams{Type: kind, Key: key}
		if kind == input.DispatchKeyEventTypeKeyDown {
			params.Text = key
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, params); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *page) colours(scheme string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	must(p.t, err)
}

// quiet fails if the browser complained.
func (p *page) quiet(where string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		assert.True(p.t, slices.ContainsFunc(p.expected, func(part string) bool { return strings.Contains(problem, part) }), "%s: %s", where, problem)
	}
	p.problems = nil
}

// accessible fails if axe-core finds something that keeps people out.
func (p *page) accessible(where, axe string) {
	p.t.Helper()
	p.axe(where, axe, "document", `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`)
}

// axe has axe-core look at a part of the page by some of its rules.
func (p *page) axe(where, axe, part, rules string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		there, err := chromedp.Evaluate[bool]("!!window.axe")(ctx, t)
		if err != nil || there {
			return err
		}
		_, err = chromedp.Evaluate[chromedp.Void](axe)(ctx, t)
		return err
	})); err != nil {
		p.t.Fatal(err)
	}
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](
		`axe.run(`+part+`, {runOnly: `+rules+`}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 5).map(n => n.html + " " + n.failureSummary).join("; "))))`,
		chromedp.EvalAwaitPromise))
	must(p.t, err)
	var violations []string
	must(p.t, json.Unmarshal([]byte(found), &violations))
	for _, v := range violations {
		p.t.Errorf("%s: %s", where, v)
	}
}

func (p *page) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	must(p.t, err)
	must(p.t, os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o644))
}

// says is the expression that a page shows a text.
func says(text string) string {
	return "document.querySelector('main')?.innerText.includes(" + quoted(text) + ")"
}

// quoted is a text in JavaScript.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func axeOf(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(console.Packages(t), "axe-core", "axe.min.js"))
	must(t, err)
	return string(b)
}

func TestEveryPageShowsABrokerWithoutComplaint(t *testing.T) {
	t.Parallel()
	axe := axeOf(t)
	w := newWorld(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	for name, want := range map[string]string{"/": "No groups yet", "/groups": "No groups yet", "/topics": "There is no topic yet", "/journal": "The journal is empty"} {
		p.open(name, says(want))
		p.quiet(name)
	}
	p.expected = append(p.expected, "status of 404")
	p.open("/nosuch", says("Page not found")+"&& document.querySelector('main a[href=\"/\"]')")
	p.quiet("/nosuch")
	p.expected = nil
	w.fill()
	billing := "/groups/" + group
	pages := []struct{ name, path, until string }{
		{"overview", "/", says("As of")},
		{"groups", "/groups", says(group) + "&&" + says("Stable")},
		{"now", billing, says("Members") + "&&" + says("Findings") + "&&" + says("Assignment")},
		{"time", billing + "?tab=time", "document.querySelector('.marker') && document.querySelector('.chart canvas')"},
		{"offsets", billing + "?tab=offsets", says(topic) + "&&" + says("Log end")},
		{"evil", "/groups/" + url.PathEscape(evilGroup), says(evilGroup) + "&&" + says("Findings")},
		{"topics", "/topics", says(topic) + "&&" + says("unread")},
		{"topic", "/topics/" + topic, says("Partitions") + "&&" + says(group)},
		{"brokers", "/brokers", says("PLAINTEXT") + "&&" + says("Settings")},
		{"journal", "/journal", says(group) + "&&" + says("rebalance")},
	}
	for _, scheme := range []string{"light", "dark"} {
		p.colours(scheme)
		for _, x := range pages {
			where := x.name + "-" + scheme
			p.open(x.path, x.until)
			p.accessible(where, axe)
			p.shoot(where)
			p.quiet(where)
		}
	}
}

func TestKeysAndAddressLeadThroughTheConsole(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.open("/", says("As of"))
	p.keys("gt")
	p.wait("location.pathname === '/topics' &&" + says(topic))
	p.keys("gg")
	p.wait("location.pathname === '/groups' &&" + says(group))
	p.press("/")
	p.wait("document.activeElement.type === 'search'")
	p.keys(group[:4])
	p.wait("location.search === '?q=" + group[:4] + "' && document.querySelectorAll('main tbody tr').length === 1")
	p.keys("\x1b")
	p.wait("document.activeElement.type !== 'search'")
	p.keys("jk\r")
	p.wait("location.pathname === '/groups/" + group + "' &&" + says("Members"))
	p.keys("?")
	p.wait("document.querySelector('dialog.keys').open")
	p.keys("\x1b")
	p.wait("!document.querySelector('dialog.keys').open")

	p.open("/groups/"+group+"?tab=time", "document.querySelector('.marker')")
	must(t, chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(".marker"))))
	p.wait("location.search.includes('rebalance=') && document.querySelector('.told p')?.innerText.length > 10")
	link, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.pathname + location.search"))
	assert.MustTrue(t, err == nil && strings.Contains(link, "rebalance="), "the address is %q, %v", link, err)
	p.open(link, "document.querySelector('.told p')?.innerText.length > 10")
	p.quiet("keys")
}

func TestWithoutTheBrokerThePageSaysHowOldItIs(t *testing.T) {
	ofThePage(t)
	w := newWorld(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.open("/", says("No groups yet"))
	must(t, w.broker.Close())
	p.wait(says("The broker does not answer. What you see is as of"))
}
