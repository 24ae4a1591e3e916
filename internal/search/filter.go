package search

import (
	"errors"
	"fmt"
	"time"
)

// Spec is what records are looked for, as someone wrote it.
type Spec struct {
	Key, KeyIs       string
	Value, ValueIs   string
	Header           string // The name of a header.
	HeaderValue      string
	HeaderIs         string
	Path, PathValue  string // A JSON path in the value.
	PathIs           string
	JQ               string
	CommittedRecords bool // Without those of aborted transactions.
}

// Filter finds records. It is for one search at a time.
type Filter struct {
	key, value, headerValue, pathValue *condition
	header                             string
	path                               path
	hasPath                            bool
	jq                                 *jq
	committed                          bool
	now                                func() time.Time
}

// NewFilter reads what someone is looking for.
func NewFilter(s *Spec, now func() time.Time) (*Filter, error) {
	f := &Filter{header: s.Header, hasPath: s.Path != "", committed: s.CommittedRecords, now: now}
	var err error
	given := func(what, kind, text, byDefault string) *condition {
		if kind == "" && text == "" || err != nil {
			return nil
		}
		var c *condition
		c, err = newCondition(what, kind, text, byDefault)
		return c
	}
	f.key = given("key", s.KeyIs, s.Key, Equals)
	f.value = given("value", s.ValueIs, s.Value, Contains)
	f.headerValue = given("header", s.HeaderIs, s.HeaderValue, Equals)
	f.pathValue = given("JSON path", s.PathIs, s.PathValue, Equals)
	switch {
	case err != nil:
		return nil, err
	case f.headerValue != nil && s.Header == "":
		return nil, errors.New("header names the header whose value is asked for")
	case len(s.Header) > MaxText:
		return nil, fmt.Errorf("the name of the header has more than %d bytes", MaxText)
	case f.pathValue != nil && !f.hasPath:
		return nil, errors.New("path says where the value is that is asked for")
	}
	if f.path, err = parsePath(s.Path); err != nil {
		return nil, err
	}
	if s.JQ != "" {
		if f.jq, err = newJQ(s.JQ); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// match says whether a record is looked for, and what jq made of it. It is an error if
// that could not be found out, which is no reason not to go on with the next.
func (f *Filter) match(r *Record, deadline time.Time) (found bool, result string, err error) {
	over := until(deadline, f.now)
	switch {
	case f.committed && r.Transaction == Aborted,
		f.key != nil && !f.key.holds(r.Key, over),
		f.header != "" && !f.hasHeader(r, over),
		f.value != nil && !f.value.holds(r.Value, over):
		return false, "", nil
	case !f.hasPath && f.jq == nil:
		return true, "", nil
	}
	document, err := parseJSON(r.Value)
	if f.hasPath && (err != nil || !f.inDocument(document, over)) {
		return false, "", nil // A value that is no JSON has nothing at any path.
	}
	if f.jq == nil {
		return true, "", nil
	}
	if err != nil {
		document = string(r.Value[:min(len(r.Value), maxJSON)])
	}
	return f.jq.match(r, plainNumbers(document), deadline, f.now)
}

// hasHeader says whether one of the headers with the name is looked for.
func (f *Filter) hasHeader(r *Record, over func() bool) bool {
	named := false
	for _, h := range r.Headers {
		if h.Name != f.header {
			continue
		}
		if named = true; f.headerValue != nil && f.headerValue.kind == Regexp && over() {
			return false
		}
		if f.headerValue == nil || f.headerValue.holds(h.Value, over) {
			return true
		}
	}
	return !named && f.headerValue != nil && f.headerValue.kind == Null
}

// inDocument says whether the path leads to what is looked for.
func (f *Filter) inDocument(document any, over func() bool) bool {
	c := f.pathValue
	if c == nil || c.kind == Exists {
		return f.path.any(document, func(any) bool { return true })
	}
	if c.kind == Null {
		return f.path.any(document, func(v any) bool { return v == nil })
	}
	ended := false
	found := f.path.any(document, func(v any) bool {
		if ended = c.kind == Regexp && over(); ended {
			return true
		}
		text, ok := scalarText(v)
		return ok && (c.holds(text, over) || c.kind == Equals && isNumber(v) && sameNumber(string(text), string(c.text)))
	})
	return found && !ended
}
