package top

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/web"
)

var errNotYet = errors.New("not yet")

// seenList is a view with groups.
func seenList(names ...string) *topView {
	v := &topView{address: "http://x", now: time.Now()}
	list := &web.GroupList{At: &v.now}
	for i, name := range names {
		list.Groups = append(list.Groups, web.GroupRow{Name: name, State: "Stable", Lag: int64(1234567 * i)})
	}
	v.take("", list, nil, nil)
	return v
}

func screen(v *topView, width, height int) string {
	var out []string
	for _, l := range v.lines(width, height) {
		text := strings.TrimRight(l.text, " ")
		if l.chose {
			text = "> " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

func TestTheKeysOfTop(t *testing.T) {
	v := seenList("a", "b", "c")
	for _, c := range []struct {
		keys, chosen, query, open string
		changed, quit             bool
	}{
		{keys: "j", chosen: "b"}, {keys: "\x1b[B\x1bOB", chosen: "c"}, {keys: "j", chosen: "c"}, {keys: "\x1b[A", chosen: "b"},
		{keys: "\x1b[5~k", chosen: "a"}, {keys: "/", chosen: "a"}, {keys: "qéx", query: "qéx", chosen: "a", changed: true},
		{keys: "\x7f", query: "qé", chosen: "a", changed: true}, {keys: "\x1b[B", query: "qé", chosen: "a"}, {keys: "\r", query: "qé", chosen: "a"},
		{keys: "\x1b", chosen: "a", changed: true}, {keys: "s", chosen: "a", changed: true}, {keys: "S", chosen: "a", changed: true},
		{keys: "\r", chosen: "a", open: "a", changed: true}, {keys: "j", chosen: "a", open: "a"}, {keys: "\x1b", chosen: "a", changed: true},
		{keys: "q", chosen: "a", quit: true}, {keys: "/\x03", chosen: "a", quit: true},
	} {
		var changed, quit bool
		for _, key := range splitKeys(c.keys) {
			changed, quit = v.press(key)
		}
		if changed != c.changed || quit != c.quit || v.chosen != c.chosen || v.query != c.query || v.open != c.open {
			t.Errorf("after %q: %q, %q, %q, %t, %t", c.keys, v.chosen, v.query, v.open, changed, quit)
		}
	}
	assert.True(t, v.sort == 1 && !v.down, "sorted by %d, %t", v.sort, v.down)
}

func TestTopFitsEveryScreen(t *testing.T) {
	v := seenList("a", "b", "a name that is longer than others", "d", "e", "f")
	v.move(4)
	for _, size := range [][2]int{{80, 24}, {20, 6}, {1, 1}, {5, 2}, {200, 50}} {
		lines := v.lines(size[0], size[1])
		assert.True(t, len(lines) == size[1], "%v has %d lines", size, len(lines))
		for _, l := range lines {
			if n := len([]rune(l.text)); n > size[0] {
				t.Errorf("%v has a line of %d columns: %s", size, n, l.text)
			}
		}
		if chosen := slices.ContainsFunc(lines, func(l line) bool { return l.chose }); size[1] >= 6 && !chosen {
			t.Errorf("on %v the chosen group is not to be seen:\n%s", size, screen(v, size[0], size[1]))
		}
	}
	says(t, screen(v, 80, 24), "> e  ", "4,938,268", "LAG↑", "Enter why")
	v.err = errNotYet
	says(t, screen(v, 80, 24), "! "+errNotYet.Error(), "> e  ")
}

func TestTopExplainsAGroup(t *testing.T) {
	v := seenList("a")
	v.press("\r")
	says(t, screen(v, 80, 24), "The broker is asked about a")
	long := strings.Repeat("word ", 60)
	v.take("a", nil, &web.Explanation{Name: "a", Text: "Group a is fine.", Journal: true, Findings: []web.Finding{{ID: "x", Text: long, Change: "Do\x1b[2J it."}}}, nil)
	says(t, screen(v, 60, 30), "Group a is fine.", "What is odd:", "What to do: Do·[2J it.")
	v.take("b", nil, &web.Explanation{Text: "late"}, nil)
	assert.False(t, strings.Contains(screen(v, 60, 30), "late"), "an answer about another group is shown")
	v.scroll = 1000
	assert.Contains(t, screen(v, 30, 8), "it.", "at its end")
}

// says demands texts on the screen.
func says(t *testing.T, screen string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			t.Errorf("%q is not in\n%s", text, screen)
		}
	}
}
