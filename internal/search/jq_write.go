package search

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// writer writes a value as JSON, up to so many bytes.
type writer struct {
	b    []byte
	most int
	full bool
}

func (w *writer) put(text string) {
	if len(w.b)+len(text) > w.most {
		text, w.full = text[:w.most-len(w.b)], true
	}
	w.b = append(w.b, text...)
}

func (w *writer) write(v any, depth int) {
	if depth > maxDepth {
		w.full = true
	}
	if w.full {
		return
	}
	switch v := v.(type) {
	case []any:
		w.put("[")
		for i, in := range v {
			if w.full {
				return
			}
			w.comma(i)
			w.write(in, depth+1)
		}
		w.put("]")
	case map[string]any:
		w.put("{")
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if w.full {
				return
			}
			w.comma(i)
			w.scalar(name)
			w.put(":")
			w.write(v[name], depth+1)
		}
		w.put("}")
	default:
		w.scalar(v)
	}
}

func (w *writer) comma(i int) {
	if i > 0 {
		w.put(",")
	}
}

func (w *writer) scalar(v any) {
	if text, ok := v.(string); ok && len(text) > w.most {
		v = cutText(text, w.most)
	}
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte("null") // As jq writes what is no number.
	}
	w.put(string(b))
}

// cutText returns the beginning of a text, which does not end within a letter.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
