package console_test

import (
	"net/http"
	"testing"
)

// What a broker cannot say for a moment takes nothing away: neither what is shown, nor a
// dialog that is open.
func TestAMomentWithoutAnAnswerTakesNothingAway(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	w.rests("resting", 20)
	f := newFront(t, w)
	p := browser(t, f.base)
	away := "What you see is not the latest: The store is away for a moment."
	visible := "document.dispatchEvent(new Event('visibilitychange'))" // Has everything that is watched read again.
	for _, x := range []struct{ path, about, button, stays string }{
		{"/groups/resting?tab=offsets", "GET /api/v1/groups/resting", "Delete offsets …", "Log end"},
		{"/topics/" + topic, "GET /api/v1/topics/" + topic, "Delete records …", "Log end"},
	} {
		f.obey()
		p.open(x.path, says(x.stays))
		p.click(x.button)
		p.wait("document.querySelector('dialog[open]')")
		for _, status := range []int{http.StatusServiceUnavailable, http.StatusMisdirectedRequest} {
			f.obey(rule{about: x.about, status: status})
			p.eval(visible)
			p.wait(says(away) + "&&" + says(x.stays) + "&& document.querySelector('dialog[open]')")
			f.obey()
			p.eval(visible)
			p.wait("!" + says(away) + "&&" + says(x.stays) + "&& document.querySelector('dialog[open]')")
		}
	}
	// A refusal that lasts does take away what may not be seen.
	f.obey(rule{about: "GET /api/v1/topics/" + topic, status: http.StatusForbidden})
	p.eval(visible)
	p.wait(says("You may not see this") + "&& !" + says("Log end") + "&& document.querySelector('h1').innerText === " + quoted(topic))

	// The history of a group is not unknown because it was not to be had.
	f.obey(rule{about: "/groups/resting/history", status: http.StatusServiceUnavailable})
	p.open("/groups/resting?tab=time", says("The store is away for a moment.")+"&& !"+says("No data for this time"))
}

// Who asks and gets no answer has done nothing; who acts and gets none does not know.
func TestWithoutAnAnswerADialogSaysWhetherSomethingWasDone(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	w.rests("resting", 20)
	f := newFront(t, w)
	p := browser(t, f.base)
	p.open("/groups/resting", js("!!button('Reset offsets …')"))
	p.click("Reset offsets …")
	p.put("Topics", topic)
	p.put("Partitions", "5-2")
	p.click("Show what would happen")
	p.wait(asks("The range 5-2 ends before it begins."))
	p.put("Partitions", "2-5")
	f.obey(rule{about: "POST /api/v1/groups/resting/resets", gone: true})
	p.click("Show what would happen")
	p.wait(asks("Nothing was done."))
	f.obey()
	p.click("Show what would happen")
	p.wait(asks("Read again") + "&& document.activeElement.innerText === 'Back'") // The second step has the focus.
	p.click("Back")
	p.wait("document.activeElement.type === 'radio' && document.activeElement.closest('dialog[open]')")
	closed := "!document.querySelector('dialog[open]')"
	p.keys("\x1b")
	p.wait(closed)
	f.obey(rule{about: "DELETE /api/v1/groups/resting", gone: true})
	p.click("Delete the group …")
	p.wait(asks("Nothing was done."))
	p.keys("\x1b")
	p.wait(closed)
	f.obey(rule{about: "DELETE /api/v1/groups/resting?preview", change: func(map[string]any) {}}, rule{about: "DELETE /api/v1/groups/resting", gone: true})
	p.click("Delete the group …")
	p.wait(asks("would be deleted"))
	p.put("Name of the group", "resting")
	p.click("Delete the group")
	p.wait(asks("It is not known whether this was done."))
}

// A browser tells that a dialog was closed a moment after it has. Who presses the button in between
// is not too early.
func TestADialogOpensRightAfterItWasClosed(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	w.rests("resting", 20)
	p := browser(t, newFront(t, w).base)
	p.open("/groups/resting", js("!!button('Delete the group …')"))
	p.click("Delete the group …")
	p.wait(asks("would be deleted"))
	p.eval(js(`(() => {
		document.querySelector("dialog[open]").addEventListener("close", () => setTimeout(() => { window.toldOfClose = true }));
		document.querySelector("dialog[open]").close();
		button("Delete the group …").click();
	})()`))
	p.wait("window.toldOfClose")
	p.wait(asks("would be deleted"))
}

// What an act says stays on its page, once.
func TestWhatWasDoneIsToldOnce(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	f := newFront(t, w)
	p := browser(t, f.base)
	told := "document.querySelector('.done')?.innerText.includes('The record is in partition')"
	p.open("/topics/"+topic, js("!!button('Produce a record …')"))
	produce := func() {
		p.click("Produce a record …")
		p.put("Value", "x")
		p.click("Produce")
		p.wait(told)
	}
	produce()
	p.keys("gt")
	p.wait("location.pathname === '/topics' && !" + told)
	p.eval("history.back()")
	p.wait("location.pathname === '/topics/" + topic + "' &&" + says("Log end"))
	p.wait("!" + told)

	// Who logs in next is not told either.
	produce()
	f.obey(rule{about: "/api/v1/topics/" + topic, status: http.StatusUnauthorized}, rule{about: "GET /api/v1/session", change: func(a map[string]any) { a["loginWanted"], a["user"] = true, nil }})
	p.eval("document.dispatchEvent(new Event('visibilitychange'))")
	p.wait(loginPage)
	f.obey(rule{about: "POST /api/v1/session", session: `{"user":"ann","login":"cookie","loginWanted":true,"ways":[],"readOnly":""}`})
	p.filled("ann", "x")
	p.wait(says("Log end"))
	p.wait("!" + told)
}

// Who may not see a group's topics is not told that there are none.
func TestHiddenTopicsAreNotNone(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	f := newFront(t, w)
	p := browser(t, f.base)
	hide := func(a map[string]any) {
		a["hiddenTopics"], a["partitions"], a["totalLag"], a["watched"] = 1, list(), nil, nil
		for _, m := range a["members"].([]any) {
			m.(map[string]any)["assigned"] = list()
		}
	}
	f.obey(rule{about: "GET /api/v1/groups/" + group + "/explain", status: http.StatusForbidden}, rule{about: "GET /api/v1/groups/" + group, change: hide})
	hidden := says("The group reads 1 topic that you may not see.")
	p.open("/groups/"+group, hidden+"&&"+says("nothing that you may see"))
	p.open("/groups/"+group+"?tab=offsets", hidden+"&&"+says("committed nothing that you may see")+"&& !"+says("No offset is committed"))
}

// What is cut short says so, and does not pretend to know who had what before.
func TestAPastThatIsCutSaysSo(t *testing.T) {
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	f := newFront(t, w)
	p := browser(t, f.base)
	p.open("/groups/"+group+"?tab=time", says("rebalances in this time")+"&& !"+says("at least")+"&& !"+says("not known"))
	f.obey(rule{about: "/explain", change: func(a map[string]any) { a["partly"] = true }})
	p.open("/groups/"+group+"?tab=time", says("at least ")+"&&"+says("rebalances in this time")+"&&"+says("not known"))
	f.obey(rule{about: "/explain", change: func(a map[string]any) { a["rebalanceCount"] = 400 }})
	p.open("/groups/"+group+"?tab=time", says("the latest ")+"&&"+says(" of 400 rebalances in this time")+"&&"+says("not known"))

	p.open("/journal", says("Download as CSV")+"&& !"+says("the latest"))
	f.obey(rule{about: "/api/v1/journal", change: func(a map[string]any) { a["partly"] = true }})
	p.open("/journal", says("The search ended before it had seen everything")+"&&"+says("Download as CSV, at most the latest 1,000"))
	f.obey(rule{about: "/api/v1/journal", change: func(a map[string]any) {
		a["partly"] = true
		one := a["entries"].([]any)[0].(map[string]any)
		all := list()
		for range 200 {
			all = append(all, one)
		}
		a["entries"] = all
	}})
	p.open("/journal", says("These are the latest 200 entries, and there are more"))
}

// Keys lead past the menu, and to a page that still waits.
func TestKeysAreNotLostWhereNothingIsYet(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.fill()
	f := newFront(t, w)
	p := browser(t, f.base)
	p.open("/topics", says(topic))
	p.eval("document.querySelector('a.skip').focus()")
	p.keys("\r")
	p.wait("document.activeElement.id === 'main' && location.pathname === '/topics'")
	f.obey(rule{about: "GET /api/v1/brokers", hangs: true}, rule{about: "GET /api/v1/topics/" + topic, hangs: true})
	p.eval("[...document.querySelectorAll('a.name')].find((a) => a.innerText === '" + topic + "').click()")
	p.wait("location.pathname === '/topics/" + topic + "' && document.activeElement.tagName === 'H1' && document.activeElement.innerText === '" + topic + "'")
	p.keys("gb")
	p.wait("location.pathname === '/brokers' && document.activeElement.tagName === 'H1'")

	// A finding whose age changes stays where it is.
	age := func(text string) rule {
		return rule{about: "/explain", change: func(a map[string]any) {
			a["findings"] = list(map[string]any{"id": "stuck-partition", "text": text, "change": "See it: muster groups describe Billing."})
		}}
	}
	f.obey(age("It is 1s old."))
	p.open("/groups/"+group, says("It is 1s old."))
	p.eval("document.querySelector('.finding button').focus()")
	f.obey(age("It is 9s old."))
	p.eval("document.dispatchEvent(new Event('visibilitychange'))")
	p.wait(says("It is 9s old.") + "&& document.activeElement.getAttribute('aria-label') === 'Copy muster groups describe Billing'")
}
