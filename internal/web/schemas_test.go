package web

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/journal"
	"muster/internal/web/problem"
)

// shape is a type as the generated files have it.
type shape struct {
	kind  string // string, integer, number, boolean, array, map, object, offset, time
	name  string // of an object
	of    *shape // of an array or a map
	null  bool
	notes string
}

// member is a field of an object.
type member struct {
	name     string
	doc      string
	optional bool
	shape
}

// schemas are the objects of all answers, by name.
type schemas struct {
	t       *testing.T
	objects map[string][]member
	types   map[string]reflect.Type
}

func newSchemas(t *testing.T) *schemas {
	s := &schemas{t: t, objects: map[string][]member{}, types: map[string]reflect.Type{}}
	s.shapeOf(reflect.TypeFor[problem.Problem]())
	for _, r := range allRoutes() {
		s.shapeOf(r.answer)
		if r.takesBody() {
			s.shapeOf(r.body)
		}
	}
	return s
}

func (s *schemas) names() []string { return slices.Sorted(maps.Keys(s.objects)) }

// rawName is what the type of journal.Entry is called outside.
const rawName = "JournalRecord"

func (s *schemas) shapeOf(t reflect.Type) shape {
	switch t {
	case reflect.TypeFor[time.Time]():
		return shape{kind: "time"}
	case reflect.TypeFor[Offset]():
		return shape{kind: "offset"}
	case reflect.TypeFor[time.Duration]():
		return shape{kind: "integer", notes: "in nanoseconds"}
	case reflect.TypeFor[RawEntry]():
		return s.object(rawName, reflect.TypeFor[journal.Entry]())
	}
	switch t.Kind() {
	case reflect.String:
		return shape{kind: "string"}
	case reflect.Bool:
		return shape{kind: "boolean"}
	case reflect.Float64:
		return shape{kind: "number"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Int16:
		return shape{kind: "integer"}
	case reflect.Pointer:
		out := s.shapeOf(t.Elem())
		out.null = true
		return out
	case reflect.Slice:
		of := s.shapeOf(t.Elem())
		return shape{kind: "array", of: &of}
	case reflect.Map:
		of := s.shapeOf(t.Elem())
		return shape{kind: "map", of: &of}
	case reflect.Struct:
		return s.object(t.Name(), t)
	}
	s.t.Fatalf("nothing is known of type %v", t)
	return shape{}
}

// object takes in a struct, once.
func (s *schemas) object(name string, t reflect.Type) shape {
	if known := s.types[name]; known != nil && known != t {
		s.t.Fatalf("both %v and %v would be called %s", known, t, name)
	}
	if s.types[name] == nil {
		s.types[name] = t
		s.objects[name] = s.members(t)
	}
	return shape{kind: "object", name: name}
}

func (s *schemas) members(t reflect.Type) []member {
	var out []member
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous:
			out = append(out, s.members(f.Type)...)
			continue
		case !f.IsExported() || f.Tag.Get("json") == "-":
			continue
		}
		m := member{name: jsonName(f), doc: f.Tag.Get("doc"), shape: s.shapeOf(f.Type)}
		assert.MustTrue(s.t, m.name != "", "field %s of %v has no name in JSON", f.Name, t)
		m.optional = strings.Contains(f.Tag.Get("json"), ",omit")
		if m.optional {
			m.null = false
		}
		m.null = m.null || f.Tag.Get("null") != ""
		if m.doc == "" {
			m.doc = m.notes
		}
		out = append(out, m)
	}
	return out
}
