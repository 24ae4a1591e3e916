package search

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxSteps is how many steps a JSON path may have.
const maxSteps = 64

// path is a JSON path: $.order.lines[0]['product id'].tags[*]
type path []step

// step goes from a value to some that are in it: by name, by number (from the end if
// it is negative), or to all.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind int8

const (
	byName stepKind = iota
	byIndex
	toAll
)

// parsePath reads a JSON path. The dollar in front may lack.
func parsePath(text string) (path, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the JSON path has %d bytes, more than %d", len(text), MaxText)
	}
	rest := strings.TrimPrefix(text, "$")
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	var out path
	for rest != "" {
		var s step
		var err error
		if rest[0] == '.' {
			s, rest, err = dotStep(rest[1:])
		} else {
			s, rest, err = bracketStep(rest)
		}
		if err != nil {
			return nil, fmt.Errorf("the JSON path %q: %w", text, err)
		}
		if out = append(out, s); len(out) > maxSteps {
			return nil, fmt.Errorf("the JSON path has more than %d steps", maxSteps)
		}
	}
	return out, nil
}

func dotStep(rest string) (step, string, error) {
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	name := rest[:end]
	switch {
	case name == "" && strings.HasPrefix(rest, "."):
		return step{}, "", errors.New("a search at any depth (..) is a matter for jq")
	case name == "":
		return step{}, "", errors.New("a name lacks after a dot")
	case name == "*":
		return step{kind: toAll}, rest[end:], nil
	}
	return step{name: name}, rest[end:], nil
}

func bracketStep(rest string) (step, string, error) {
	if len(rest) > 1 && (rest[0] == '[') && (rest[1] == '\'' || rest[1] == '"') {
		return quotedStep(rest[2:], rest[1])
	}
	end := strings.IndexByte(rest, ']')
	if rest[0] != '[' || end < 0 {
		return step{}, "", errors.New("after a step comes a dot or a bracket, and a bracket ends")
	}
	inside := rest[1:end]
	if inside == "*" {
		return step{kind: toAll}, rest[end+1:], nil
	}
	n, err := strconv.ParseInt(inside, 10, 32)
	if err != nil {
		return step{}, "", fmt.Errorf("in brackets is a number, a name in quotes or *, not %q", inside)
	}
	return step{kind: byIndex, index: int(n)}, rest[end+1:], nil
}

// quotedStep reads a name in quotes, in which a backslash stands before a quote or
// another backslash.
func quotedStep(rest string, quote byte) (step, string, error) {
	var name strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && i+1 < len(rest):
			i++
			name.WriteByte(rest[i])
		case c == quote:
			if i+1 >= len(rest) || rest[i+1] != ']' {
				return step{}, "", errors.New("a bracket lacks after a name in quotes")
			}
			return step{name: name.String()}, rest[i+2:], nil
		default:
			name.WriteByte(c)
		}
	}
	return step{}, "", errors.New("a name in quotes does not end")
}

// any says whether f is true of one of the values that a path leads to.
func (p path) any(v any, f func(any) bool) bool {
	if len(p) == 0 {
		return f(v)
	}
	s, rest := p[0], p[1:]
	switch v := v.(type) {
	case map[string]any:
		switch s.kind {
		case byName:
			in, ok := v[s.name]
			return ok && rest.any(in, f)
		case toAll:
			for _, in := range v {
				if rest.any(in, f) {
					return true
				}
			}
		}
	case []any:
		switch s.kind {
		case byIndex:
			i := s.index
			if i < 0 {
				i += len(v)
			}
			return i >= 0 && i < len(v) && rest.any(v[i], f)
		case toAll:
			for _, in := range v {
				if rest.any(in, f) {
					return true
				}
			}
		}
	}
	return false
}
