package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
)

type object = map[string]any

// openAPI writes the table of routes as an OpenAPI document.
func (s *schemas) openAPI() []byte {
	paths := object{}
	for _, r := range allRoutes() {
		if paths[Prefix+r.path] == nil {
			paths[Prefix+r.path] = object{}
		}
		paths[Prefix+r.path].(object)[strings.ToLower(r.method)] = s.operation(&r)
	}
	all := object{}
	for _, name := range s.names() {
		all[name] = objectSchema(s.objects[name])
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "muster", "version": "1",
			"description": "What a muster broker knows of its groups, topics and brokers, and what can be done to them. Version 1 only gains fields and routes. Offsets are strings. Lists can be had as CSV, by ?format=csv or by the Accept header. Where there are users, every request wants the name and password of one.",
		},
		"security": []any{object{"basic": []any{}}, object{}},
		"paths":    paths,
		"components": object{
			"schemas":         all,
			"securitySchemes": object{"basic": object{"type": "http", "scheme": "basic"}},
		},
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	must(s.t, err)
	return append(out, '\n')
}

func (s *schemas) operation(r *route) object {
	var params []any
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, f := range parameters(r.query) {
		params = append(params, object{"name": f.Tag.Get("query"), "in": "query", "description": f.Tag.Get("doc"), "schema": querySchema(f.Type)})
	}
	content := object{"application/json": object{"schema": ref(r.answer.Name())}}
	if r.lines {
		content = object{"application/x-ndjson": object{"schema": ref(r.answer.Name())}}
	}
	if r.stream {
		content = object{"text/event-stream": object{"schema": ref(r.answer.Name())}}
	}
	if _, list := rowsOf(reflect.New(r.answer).Elem()); list {
		content["text/csv"] = object{"schema": object{"type": "string"}}
		params = append(params, object{"name": "format", "in": "query", "description": "json or csv", "schema": object{"type": "string", "enum": []any{"json", "csv"}}})
	}
	var rights []string
	for _, n := range r.needs {
		rights = append(rights, n.String())
	}
	problem := object{"description": "why there is no answer", "content": object{"application/json": object{"schema": ref("Problem")}}}
	out := object{
		"operationId": r.name, "summary": r.doc, "description": "Needs " + strings.Join(rights, "; ") + ".",
		"responses": object{"200": object{"description": "the answer", "content": content}, "default": problem},
	}
	if len(params) > 0 {
		out["parameters"] = params
	}
	if r.takesBody() {
		out["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": ref(r.body.Name())}}}
	}
	return out
}

func querySchema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": "^[0-9]+(s|m|h|d)$"}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": object{"type": "string"}}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	}
	return object{"type": "integer"}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func objectSchema(members []member) object {
	properties, required := object{}, []any{}
	for i := range members {
		m := &members[i]
		schema := m.schema()
		if m.doc != "" {
			schema["description"] = m.doc
		}
		properties[m.name] = schema
		if !m.optional {
			required = append(required, m.name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// schema writes a shape as JSON Schema.
func (s *shape) schema() object {
	var out object
	switch s.kind {
	case "object":
		if s.null {
			return object{"anyOf": []any{ref(s.name), object{"type": "null"}}}
		}
		return ref(s.name)
	case "array":
		out = object{"type": "array", "items": s.of.schema()}
	case "time":
		out = object{"type": "string", "format": "date-time"}
	case "offset":
		out = object{"type": "string", "pattern": "^-?[0-9]+$"}
	case "map":
		out = object{"type": "object", "additionalProperties": s.of.schema()}
	default:
		out = object{"type": s.kind}
	}
	if s.null {
		out["type"] = []any{out["type"], "null"}
	}
	return out
}

var rewrite = flag.Bool("rewrite", false, "write what a test finds out of date")

const (
	openAPIFile    = "openapi.json"
	typeScriptFile = "ui/api.ts"
)

// The files are made of the table of routes, so that they cannot say anything else.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	s := newSchemas(t)
	for name, want := range map[string][]byte{openAPIFile: s.openAPI(), typeScriptFile: s.typeScript()} {
		if *rewrite {
			must(t, os.WriteFile(name, want, 0o644))
		}
		got, err := os.ReadFile(name)
		must(t, err)
		assert.True(t, bytes.Equal(got, want), "%s is out of date; make generate writes it", name)
	}
}
