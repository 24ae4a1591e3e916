package web

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// typeScript writes the types of questions and answers.
func (s *schemas) typeScript() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Made of the table of routes by make generate. Do not edit.\n\n/** An offset: a string, since JavaScript's numbers are too small. */\nexport type Offset = string;\n\n/** A time, as in 2026-11-16T21:50:00Z. */\nexport type Time = string;\n")
	for _, name := range s.names() {
		fmt.Fprintf(&out, "\nexport interface %s {\n", name)
		for _, m := range s.objects[name] {
			writeMember(&out, m.name, m.doc, m.optional, m.typeScript())
		}
		out.WriteString("}\n")
	}
	written := map[string]bool{}
	for _, r := range allRoutes() {
		if q := r.query; !written[q.Name()] {
			written[q.Name()] = true
			writeQuestion(&out, q)
		}
	}
	fmt.Fprintf(&out, "\n/** What each path below %s asks for and answers. */\nexport interface Routes {\n", Prefix)
	for _, r := range append(slices.Clone(routes), events, recordsRoute) {
		fmt.Fprintf(&out, "  /** %s */\n  %s: { path: %q; query: %s; answer: %s };\n", r.doc, r.name, r.path, r.query.Name(), r.answer.Name())
	}
	fmt.Fprintf(&out, "}\n\n/** What can be done below %s, what it takes and answers. */\nexport interface Acts {\n", Prefix)
	for _, r := range acts {
		body := "null"
		if r.takesBody() {
			body = r.body.Name()
		}
		fmt.Fprintf(&out, "  /** %s */\n  %s: { method: %q; path: %q; query: %s; body: %s; answer: %s };\n", r.doc, r.name, r.method, r.path, r.query.Name(), body, r.answer.Name())
	}
	out.WriteString("}\n")
	return out.Bytes()
}

func writeQuestion(out *bytes.Buffer, q reflect.Type) {
	if len(parameters(q)) == 0 {
		fmt.Fprintf(out, "\nexport type %s = Record<string, never>;\n", q.Name())
		return
	}
	fmt.Fprintf(out, "\nexport interface %s {\n", q.Name())
	for _, f := range parameters(q) {
		text := "number"
		switch {
		case f.Type.Kind() == reflect.Slice:
			text = "string[]"
		case f.Type.Kind() == reflect.String, f.Type == reflect.TypeFor[time.Duration]():
			text = "string"
		case f.Type.Kind() == reflect.Bool:
			text = "boolean"
		}
		writeMember(out, f.Tag.Get("query"), f.Tag.Get("doc"), true, text)
	}
	out.WriteString("}\n")
}

func writeMember(out *bytes.Buffer, name, doc string, optional bool, text string) {
	if doc != "" {
		fmt.Fprintf(out, "  /** %s */\n", strings.ReplaceAll(doc, "*/", "* /"))
	}
	mark := ""
	if optional {
		mark = "?"
	}
	fmt.Fprintf(out, "  %s%s: %s;\n", name, mark, text)
}

// typeScript writes a shape as a type.
func (s *shape) typeScript() string {
	var out string
	switch s.kind {
	case "object":
		out = s.name
	case "array":
		if out = s.of.typeScript(); strings.Contains(out, " ") {
			out = "(" + out + ")"
		}
		out += "[]"
	case "map":
		out = "Record<string, " + s.of.typeScript() + ">"
	case "time":
		out = "Time"
	case "offset":
		out = "Offset"
	case "integer", "number":
		out = "number"
	default:
		out = s.kind
	}
	if s.null {
		out += " | null"
	}
	return out
}
