package search

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"
)

// The kinds of conditions on a text.
const (
	Contains = "contains"
	Equals   = "equals"
	Regexp   = "regexp"
	Null     = "null"   // There is none: a record without key, a tombstone.
	Exists   = "exists" // There is one, whatever it is.
)

// MaxText is how long the text of a condition may be.
const MaxText = 1 << 10

// condition is a condition on bytes, of which nil are null.
type condition struct {
	kind    string
	text    []byte
	pattern *regexp.Regexp
	weight  int // Of the pattern: about how many instructions it has.
}

// maxWeight bounds what a pattern takes of memory, and for each letter of time.
const maxWeight = 10_000

// weigh returns about how many instructions a pattern has, or something beyond maxWeight.
func weigh(tree *syntax.Regexp) int {
	weight := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		if weight += weigh(sub); weight > maxWeight {
			return weight
		}
	}
	if tree.Op == syntax.OpRepeat {
		weight *= max(tree.Min, tree.Max, 1)
	}
	return weight
}

// newCondition makes a condition. An empty kind is byDefault.
func newCondition(what, kind, text, byDefault string) (*condition, error) {
	if kind == "" {
		kind = byDefault
	}
	if len(text) > MaxText {
		return nil, fmt.Errorf("the text for the %s has %d bytes, more than %d", what, len(text), MaxText)
	}
	c := &condition{kind: kind, text: []byte(text)}
	switch kind {
	case Contains, Equals:
	case Null, Exists:
		if text != "" {
			return nil, fmt.Errorf("where the %s is asked for as %s there is no text to compare with", what, kind)
		}
	case Regexp:
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("the regular expression for the %s: %w", what, err)
		}
		if c.weight = weigh(tree); c.weight > maxWeight {
			return nil, fmt.Errorf("the regular expression for the %s is too long: written out without repetitions such as {100} it has more than %d parts", what, maxWeight)
		}
		if c.pattern, err = regexp.Compile(text); err != nil {
			return nil, fmt.Errorf("the regular expression for the %s: %w", what, err)
		}
	default:
		return nil, fmt.Errorf("the %s is compared by %s, %s, %s, %s or %s, not by %q", what, Contains, Equals, Regexp, Null, Exists, kind)
	}
	return c, nil
}

// holds says whether the condition is true of some bytes.
func (c *condition) holds(b []byte, over func() bool) bool {
	switch c.kind {
	case Null:
		return b == nil
	case Exists:
		return b != nil
	}
	if b == nil {
		return false
	}
	switch c.kind {
	case Equals:
		return bytes.Equal(b, c.text)
	case Regexp:
		return c.matches(b, over)
	}
	return bytes.Contains(b, c.text)
}

// quickMatch is up to how many steps a pattern is matched without asking for the time.
const quickMatch = 20_000_000

// matches says whether the pattern is in the bytes. A pattern takes a time in
// proportion to its own length and to that of the text, and a long one in a long text
// takes very long: then the text comes by a reader, which ends when the time is over.
func (c *condition) matches(b []byte, over func() bool) bool {
	if len(b)*c.weight <= quickMatch {
		return c.pattern.Match(b)
	}
	r := &runes{b: b, over: over}
	return c.pattern.MatchReader(r) && !r.ended
}

// runes reads runes until the time is over.
type runes struct {
	b     []byte
	at    int
	reads int
	over  func() bool
	ended bool
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (rune, int, error) {
	if r.reads++; r.reads%1024 == 0 && r.over() {
		r.ended = true
	}
	if r.ended || r.at >= len(r.b) {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(r.b[r.at:])
	r.at += n
	return c, n, nil
}

// until returns what says whether a time has come.
func until(deadline time.Time, now func() time.Time) func() bool {
	return func() bool { return !now().Before(deadline) }
}
