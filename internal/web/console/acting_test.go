package console_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"muster/internal/assert"
)

// finders is JavaScript that finds things as people do: by what is written on them, and
// in the dialog if one is open. A button that does nothing is none.
const finders = `
const scope = () => document.querySelector("dialog[open]") ?? document;
const seen = (e) => e.checkVisibility();
const button = (text) => [...scope().querySelectorAll("main button, dialog button")].find((b) => seen(b) && !b.disabled && (b.getAttribute("aria-label") ?? b.innerText.trim()) === text);
const field = (label) => [...scope().querySelectorAll("label, input[aria-label]")].filter(seen).filter((l) => (l.getAttribute("aria-label") ?? l.innerText.trim()) === label).map((l) => l.control ?? l)[0];
`

// js is an expression that can use the finders.
func js(expression string) string { return "(() => {" + finders + "return (" + expression + ") })()" }

// click presses the button with a text, as soon as there is one.
func (p *page) click(text string) {
	p.t.Helper()
	p.wait(js("!!button(" + quoted(text) + ")"))
	p.eval(js("button(" + quoted(text) + ").focus(), button(" + quoted(text) + ").click()"))
	if strings.HasSuffix(text, "…") { // It asks, and the page behind may have fields of the same names.
		p.wait("!!document.querySelector('dialog[open]')")
	}
}

// put puts a value into the field with a label, or chooses it.
func (p *page) put(label, value string) {
	p.t.Helper()
	p.wait(js("!!field(" + quoted(label) + ")"))
	p.eval(js(fmt.Sprintf(`((f) => {
		if (f.type === "checkbox" || f.type === "radio") { if (!f.checked) f.click(); return }
		f.focus();
		const kind = { SELECT: HTMLSelectElement, TEXTAREA: HTMLTextAreaElement }[f.tagName] ?? HTMLInputElement;
		Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(f, %s);
		f.dispatchEvent(new Event(f.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
	})(field(%s))`, quoted(value), quoted(label))))
}

func (p *page) eval(expression string) {
	p.t.Helper()
	assert.Must(p.t, p.script(chromedp.Evaluate[chromedp.Void](expression)), "%s", expression)
}

// told waits until the page says that something was done, and no dialog is open any more.
// Then it is dismissed, so that what comes next is told apart.
func (p *page) told(text string) {
	p.t.Helper()
	p.wait("!document.querySelector('dialog[open]') && document.querySelector('.done')?.innerText.includes(" + quoted(text) + ")")
	p.click("Dismiss")
	p.wait("document.querySelector('.done').innerText === '' && document.activeElement.tagName === 'H1'")
}

// asks is the expression that the open dialog says something.
func asks(text string) string {
	return "document.querySelector('dialog[open]')?.innerText.includes(" + quoted(text) + ")"
}

// as has the browser say who it is with every request.
func (p *page) as(user, password string) {
	p.t.Helper()
	p.header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// header has the browser send a header with every request.
func (p *page) header(name, value string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{name: value}}); err != nil {
		p.t.Fatal(err)
	}
}

// width makes the window so wide.
func (p *page) width(pixels int64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: pixels, Height: 900, DeviceScaleFactor: 1})
	must(p.t, err)
}

// looked has axe-core look at the dialog that is open, or at the page, in light and dark.
// What else than colours depends on the scheme is nothing, so it is looked at once.
func (p *page) looked(name, axe string) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		p.colours(scheme)
		if *shots != "" {
			for _, w := range []int64{1280, 400} {
				p.width(w)
				p.shoot(fmt.Sprintf("%s-%s-%d", name, scheme, w))
			}
			p.width(1280)
		}
		rules := `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`
		if scheme == "dark" {
			rules = `{type: "rule", values: ["color-contrast"]}`
		}
		p.axe(name+"-"+scheme, axe, `document.querySelector("dialog[open]") ?? document`, rules)
	}
	p.colours("light")
}
