package search

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

const (
	// maxMade is how many bytes a text has that an expression makes.
	maxMade = 1 << 20
	// maxLooks is how many values one step may look at.
	maxLooks = 1 << 17
	// maxDepth is how deep it looks.
	maxDepth = 512
)

var (
	errLarge   = errors.New("a value is too large to be looked at")
	errThrough = errors.New("only lists and objects have something in them to go through")
	errNumbers = errors.New("only numbers are computed with, and texts, lists and objects put together with +")
)

// maker is what functions make values with, which takes memory: it bounds how much that
// is for one record.
type maker struct {
	left    int // Bytes.
	pattern *condition
}

// maxMakes is how many bytes of values an expression may make of one record.
const maxMakes = 16 << 20

// takes says whether so many bytes more may be made.
func (m *maker) takes(bytes int) bool {
	m.left -= bytes
	return m.left >= 0
}

// functions are ours: they look at no more of a value than they may.
func (m *maker) functions() []gojq.CompilerOption {
	two := func(name string, f func(a, b any) any) gojq.CompilerOption {
		return gojq.WithFunction(prefix+name, 2, 2, func(_ any, args []any) any { return f(args[0], args[1]) })
	}
	compared := func(name string, f func(order int) bool) gojq.CompilerOption {
		return two(name, func(a, b any) any {
			looks := maxLooks
			order, err := compare(a, b, &looks, 0)
			if err != nil {
				return err
			}
			return f(order)
		})
	}
	one := func(name string, f func(v any) any) gojq.CompilerOption {
		return gojq.WithFunction(prefix+name, 0, 0, func(v any, _ []any) any { return f(v) })
	}
	return []gojq.CompilerOption{
		compared("equal", func(o int) bool { return o == 0 }), compared("notequal", func(o int) bool { return o != 0 }),
		compared("greater", func(o int) bool { return o > 0 }), compared("less", func(o int) bool { return o < 0 }),
		compared("greatereq", func(o int) bool { return o >= 0 }), compared("lesseq", func(o int) bool { return o <= 0 }),
		two("plus", m.plus),
		two("minus", func(a, b any) any { return compute(a, b, func(x, y float64) float64 { return x - y }) }),
		two("times", func(a, b any) any { return compute(a, b, func(x, y float64) float64 { return x * y }) }),
		two("over", func(a, b any) any { return compute(a, b, func(x, y float64) float64 { return x / y }) }),
		two("modulo", func(a, b any) any { return compute(a, b, math.Mod) }),
		gojq.WithFunction(prefix+"test", 1, 2, m.test),
		gojq.WithFunction(prefix+"contains", 1, 1, func(v any, args []any) any { return contains(v, args[0]) }),
		gojq.WithFunction(prefix+"inside", 1, 1, func(v any, args []any) any { return contains(args[0], v) }),
		one("tonumber", toNumber),
		one("tostring", func(v any) any {
			if _, ok := v.(string); ok {
				return v
			}
			return m.toJSON(v)
		}),
		one("tojson", m.toJSON), one("fromjson", m.fromJSON), one("add", sum),
		one("ascii_downcase", func(v any) any { return m.letters(v, 'A', 'Z') }), one("ascii_upcase", func(v any) any { return m.letters(v, 'a', 'z') }),
		gojq.WithFunction(prefix+"split", 1, 1, func(v any, args []any) any { return m.split(v, args[0]) }),
		gojq.WithIterFunction(prefix+"each", 0, 0, func(v any, _ []any) gojq.Iter { return m.each(v) }), one("keys", m.keys),
		one("min", func(v any) any { return extreme(v, -1) }), one("max", func(v any) any { return extreme(v, 1) }),
	}
}

// each goes through a list or an object, as .[] does.
func (m *maker) each(v any) gojq.Iter {
	switch v := v.(type) {
	case []any:
		return gojq.NewIter(v...)
	case map[string]any:
		if !m.takes(32 * len(v)) {
			return gojq.NewIter(errLarge)
		}
		values := make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			values = append(values, v[name])
		}
		return gojq.NewIter(values...)
	}
	return gojq.NewIter(errThrough)
}

// keys are the names in an object, in their order, or the numbers of what is in a list.
func (m *maker) keys(v any) any {
	var out []any
	switch v := v.(type) {
	case []any:
		if !m.takes(32 * len(v)) {
			return errLarge
		}
		out = make([]any, len(v))
		for i := range v {
			out[i] = i
		}
	case map[string]any:
		if !m.takes(32 * len(v)) {
			return errLarge
		}
		out = make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, name)
		}
	default:
		return errThrough
	}
	return out
}

// number returns a number that is not larger than those that machines compute with.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func compute(a, b any, f func(x, y float64) float64) any {
	x, ok := number(a)
	y, ok2 := number(b)
	if !ok || !ok2 {
		return errNumbers
	}
	out := f(x, y)
	if out == math.Trunc(out) && math.Abs(out) < 1<<53 {
		return int(out)
	}
	return out
}

// plus adds numbers, and puts texts, lists and objects together.
func (m *maker) plus(a, b any) any {
	switch x := a.(type) {
	case nil:
		return b
	case string:
		if y, ok := b.(string); ok {
			if len(x)+len(y) > maxMade || !m.takes(len(x)+len(y)) {
				return errLarge
			}
			return x + y
		}
	case []any:
		if y, ok := b.([]any); ok {
			if !m.takes(16 * (len(x) + len(y))) {
				return errLarge
			}
			return slices.Concat(x, y)
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			if !m.takes(64 * (len(x) + len(y))) {
				return errLarge
			}
			out := maps.Clone(x)
			maps.Copy(out, y)
			return out
		}
	}
	if b == nil {
		return a
	}
	return compute(a, b, func(x, y float64) float64 { return x + y })
}

// sum is what + makes of all in a list or an object.
func sum(v any) any {
	var out any
	var list []any
	switch v := v.(type) {
	case []any:
		list = v
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, v[name])
		}
	default:
		return errNumbers
	}
	for _, in := range list {
		switch in.(type) {
		case nil, int, float64:
		default:
			return errors.New("add is for numbers here")
		}
		if out == nil {
			out = in
		} else if in != nil {
			out = compute(out, in, func(x, y float64) float64 { return x + y })
		}
	}
	return out
}

// test matches a text with a pattern that is not long.
func (m *maker) test(v any, args []any) any {
	text, ok := v.(string)
	pattern, ok2 := args[0].(string)
	if !ok || !ok2 {
		return errors.New("test is of a text, with a text for a pattern")
	}
	if len(args) > 1 {
		flags, ok := args[1].(string)
		if !ok || strings.Trim(flags, "is") != "" {
			return errors.New("the flags of test are i and s here")
		}
		if flags != "" {
			pattern = "(?" + flags + ")" + pattern
		}
	}
	if m.pattern == nil || string(m.pattern.text) != pattern {
		c, err := newCondition("text", Regexp, pattern, Regexp)
		if err != nil {
			return err
		}
		m.pattern = c
	}
	if len(text)*m.pattern.weight > quickMatch {
		return errLarge
	}
	return m.pattern.pattern.MatchString(text)
}

// letters turns the letters of a range into large or small ones.
func (m *maker) letters(v any, first, last rune) any {
	text, ok := v.(string)
	if !ok {
		return errors.New("ascii_downcase and ascii_upcase are of a text")
	}
	if !m.takes(len(text)) {
		return errLarge
	}
	return strings.Map(func(c rune) rune {
		if c >= first && c <= last {
			return c ^ ' '
		}
		return c
	}, text)
}

func (m *maker) split(v, by any) any {
	text, ok := v.(string)
	at, ok2 := by.(string)
	if !ok || !ok2 {
		return errors.New("split is of a text, by a text")
	}
	pieces := []string{}
	if text != "" {
		if !m.takes(32 * (1 + strings.Count(text, at))) {
			return errLarge
		}
		pieces = strings.Split(text, at)
	}
	out := make([]any, len(pieces))
	for i, p := range pieces {
		out[i] = p
	}
	return out
}

func toNumber(v any) any {
	switch v := v.(type) {
	case int, float64:
		return v
	case string:
		out := plainNumber(strings.TrimSpace(v))
		if f, ok := out.(float64); !ok || !math.IsNaN(f) {
			return out
		}
	}
	return errors.New("tonumber is of a number, or of a text that is one")
}

func (m *maker) fromJSON(v any) any {
	text, ok := v.(string)
	if !ok {
		return errors.New("fromjson is of a text")
	}
	if !m.takes(16 * len(text)) {
		return errLarge
	}
	out, err := parseJSON([]byte(text))
	if err != nil {
		return err
	}
	return plainNumbers(out)
}

// toJSON writes a value, if it is not too large for it.
func (m *maker) toJSON(v any) any {
	w := &writer{most: maxMade}
	if w.write(v, 0); w.full || !m.takes(len(w.b)) {
		return errLarge
	}
	return string(w.b)
}
