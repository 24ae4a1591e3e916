package top

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"muster/internal/web"
)

// What a terminal is told. A frame is written at once, between marks that make the
// terminals that know them show it at once, and lines are overwritten, not cleared first.
const (
	EnterScreen = "\x1b[?1049h\x1b[?25l"
	LeaveScreen = "\x1b[?25h\x1b[?1049l"
	beginFrame  = "\x1b[?2026h\x1b[H"
	endFrame    = "\x1b[J\x1b[?2026l"
	plainText   = "\x1b[0m"
	clearRest   = "\x1b[K"
)

// sizeEach is how often the size of the terminal is looked at: there is no signal for it
// on all systems.
const sizeEach = 200 * time.Millisecond

// topScreen is muster top at a terminal.
type topScreen struct {
	api     *topAPI
	view    *topView
	out     *os.File
	last    string      // The frame that is shown.
	asking  bool        // A request is under way.
	again   bool        // What was asked for has changed since.
	answers chan func() // What answers change.
}

// watchGroups shows groups until the user quits or ctx ends. Whatever happens, the
// terminal is as it was before.
func watchGroups(ctx context.Context, api *topAPI, view *topView, every time.Duration, in, out *os.File) error {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("the terminal cannot be had: %w", err)
	}
	defer func() { // Also in a panic, whose text is then to be seen.
		_, _ = out.WriteString(LeaveScreen)
		_ = term.Restore(int(in.Fd()), before)
	}()
	if _, err := out.WriteString(EnterScreen); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keys := make(chan string)
	go readKeys(ctx, in, keys)
	s := &topScreen{api: api, view: view, out: out, answers: make(chan func(), 1)}
	return s.loop(ctx, every, keys)
}

// readKeys reads what is typed. It ends with the process: nothing ends a read.
func readKeys(ctx context.Context, in *os.File, keys chan<- string) {
	defer close(keys)
	buffer := make([]byte, 256)
	for {
		n, err := in.Read(buffer)
		for _, key := range splitKeys(string(buffer[:n])) {
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// splitKeys splits what was typed into keys: a character, or a sequence that begins with
// escape.
func splitKeys(text string) []string {
	var out []string
	for len(text) > 0 {
		_, n := utf8.DecodeRuneInString(text)
		if strings.HasPrefix(text, "\x1b[") || strings.HasPrefix(text, "\x1bO") {
			for n = 2; n < len(text) && (text[n] < '@' || text[n] > '~'); n++ {
			}
			n = min(n+1, len(text))
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func (s *topScreen) loop(ctx context.Context, every time.Duration, keys <-chan string) error {
	refresh, size := time.NewTicker(every), time.NewTicker(sizeEach)
	defer refresh.Stop()
	defer size.Stop()
	s.ask(ctx)
	for {
		if err := s.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // The user ended it, which is how it ends.
		case <-refresh.C:
			s.ask(ctx)
		case <-size.C:
		case take := <-s.answers:
			take()
			if s.asking = false; s.again {
				s.ask(ctx)
			}
		case key, ok := <-keys:
			if !ok {
				return nil
			}
			changed, quit := s.view.press(key)
			if quit {
				return nil
			}
			if changed {
				s.ask(ctx)
			}
		}
	}
}

// ask asks the broker for what the view shows, one question at a time.
func (s *topScreen) ask(ctx context.Context) {
	if s.again = s.asking; s.asking {
		return
	}
	s.asking = true
	asked := *s.view
	go func() {
		var list *web.GroupList
		var why *web.Explanation
		var err error
		if asked.open != "" {
			why, err = s.api.explain(ctx, asked.open)
		} else {
			list, err = s.api.groups(ctx, &asked)
		}
		s.answers <- func() { s.view.take(asked.open, list, why, err) }
	}()
}

// take takes an answer in. An error leaves what was known.
func (v *topView) take(asked string, list *web.GroupList, why *web.Explanation, err error) {
	v.err = err
	switch {
	case err != nil:
	case asked == "":
		v.list = list
		if v.chosen == "" {
			v.move(0)
		}
	case asked == v.open:
		v.why = why
	}
}

// press does what a key says. changed says that the broker is to be asked.
func (v *topView) press(key string) (changed, quit bool) {
	if key == "\x03" { // Ctrl-C: in raw mode it is a key like others.
		return false, true
	}
	switch {
	case v.typing:
		return v.typed(key), false
	case v.open != "":
		return v.pressOpen(key)
	}
	switch key {
	case "q":
		return false, true
	case "\x1b[A", "\x1bOA", "k":
		v.move(-1)
	case "\x1b[B", "\x1bOB", "j":
		v.move(1)
	case "\x1b[5~":
		v.move(-v.page)
	case "\x1b[6~", " ":
		v.move(v.page)
	case "s":
		v.sort = (v.sort + 1) % len(topSorts)
		v.down = topSorts[v.sort].down
		return true, false
	case "S":
		v.down = !v.down
		return true, false
	case "/":
		v.typing = true
	case "\x1b":
		v.query = ""
		return true, false
	case "\r", "\n":
		v.move(0) // The group that was chosen may be gone, or hidden by the filter.
		v.open, v.why, v.scroll = v.chosen, nil, 0
		return v.open != "", false
	}
	return false, false
}

// typed takes a key into the filter.
func (v *topView) typed(key string) (changed bool) {
	switch r, _ := utf8.DecodeRuneInString(key); {
	case key == "\r" || key == "\n":
		v.typing = false
		return false
	case key == "\x1b":
		v.typing, v.query = false, ""
	case key == "\x7f" || key == "\b":
		_, n := utf8.DecodeLastRuneInString(v.query)
		v.query = v.query[:len(v.query)-n]
	case r < ' ' || len(v.query) > 200:
		return false
	default:
		v.query += key
	}
	return true
}

// pressOpen does what a key says while a group is explained.
func (v *topView) pressOpen(key string) (changed, quit bool) {
	switch key {
	case "q":
		return false, true
	case "\x1b", "\x1b[D", "\x7f", "h":
		v.open = ""
		return true, false
	case "\x1b[A", "\x1bOA", "k":
		v.scroll--
	case "\x1b[B", "\x1bOB", "j":
		v.scroll++
	case "\x1b[5~":
		v.scroll -= v.page
	case "\x1b[6~", " ":
		v.scroll += v.page
	}
	return false, false
}

// draw shows the view, if it has changed.
func (s *topScreen) draw() error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	s.view.now = time.Now()
	var frame strings.Builder
	frame.WriteString(beginFrame)
	for i, l := range s.view.lines(width, height) {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		free := max(width-utf8.RuneCountInString(l.text), 0)
		switch {
		case l.chose:
			frame.WriteString("\x1b[7m" + l.text + strings.Repeat(" ", free))
		case l.bold:
			frame.WriteString("\x1b[1m" + l.text)
		default:
			frame.WriteString(l.text)
		}
		if frame.WriteString(plainText); free > 0 && !l.chose { // After the last column it would take that away.
			frame.WriteString(clearRest)
		}
	}
	frame.WriteString(endFrame)
	if frame.String() == s.last {
		return nil
	}
	s.last = frame.String()
	_, err = s.out.WriteString(s.last)
	return err
}
