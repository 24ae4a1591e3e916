package web

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/internal/web/problem"
)

// A question is a struct whose fields have the tag query, which is the parameter's name,
// and doc. They are strings, numbers, truth values, durations, or lists of strings,
// which may be given several times or with commas; with the tag commas:"no" only the former,
// since values may have commas.

// maxListed is how many values a list may have.
const maxListed = 32

// parameters returns the fields of a question by their names.
func parameters(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("query") != "" {
			out = append(out, t.Field(i))
		}
	}
	return out
}

// parseQuery reads a query into a question. What no one knows is refused: a filter that
// has no effect would be worse than none.
func parseQuery(raw string, into any) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return problem.BadRequest("the query cannot be read: %v", err)
	}
	v := reflect.ValueOf(into).Elem()
	fields := parameters(v.Type())
	for name, given := range values {
		i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return f.Tag.Get("query") == name })
		switch {
		case i < 0 && name == "format":
		case i < 0:
			return problem.BadRequest("there is no parameter %q here; there are %s", name, strings.Join(names(fields), ", "))
		default:
			if err := setField(v.FieldByIndex(fields[i].Index), fields[i].Tag, name, given); err != nil {
				return err
			}
		}
	}
	return nil
}

func names(fields []reflect.StructField) []string {
	out := []string{}
	for _, f := range fields {
		out = append(out, f.Tag.Get("query"))
	}
	return append(out, "format")
}

// setField reads the value of a parameter.
func setField(field reflect.Value, tag reflect.StructTag, name string, given []string) error {
	if field.Kind() == reflect.Slice {
		return setList(field, tag.Get("commas") != "no", name, given)
	}
	if len(given) != 1 {
		return problem.BadRequest("%s is given %d times", name, len(given))
	}
	value := given[0]
	switch field.Interface().(type) {
	case string:
		field.SetString(value)
	case time.Duration:
		d, ok := parseSpan(value)
		if !ok {
			return problem.BadRequest("%s is how long, as 30m, 24h or 7d, not %q", name, value)
		}
		field.SetInt(int64(d))
	case bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return problem.BadRequest("%s is true or false, not %q", name, value)
		}
		field.SetBool(b)
	case *int:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return problem.BadRequest("%s is a number, not %q", name, value)
		}
		i := int(n)
		field.Set(reflect.ValueOf(&i))
	default:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 1 {
			return problem.BadRequest("%s is a number from 1 on, not %q", name, value)
		}
		field.SetInt(n)
	}
	return nil
}

func setList(field reflect.Value, commas bool, name string, given []string) error {
	var out []string
	for _, value := range given {
		parts := []string{value}
		if commas {
			parts = strings.Split(value, ",")
		}
		for _, part := range parts {
			if commas {
				part = strings.TrimSpace(part)
			}
			if part != "" {
				out = append(out, part)
			}
			if len(out) > maxListed {
				return problem.BadRequest("%s has more than %d values", name, maxListed)
			}
		}
	}
	field.Set(reflect.ValueOf(out))
	return nil
}

// longestSpan is how far back anyone may look.
const longestSpan = 366 * 24 * time.Hour

// parseSpan reads a duration, also in days.
func parseSpan(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return min(time.Duration(n)*24*time.Hour, longestSpan), true
		}
	}
	d, err := time.ParseDuration(text)
	return min(d, longestSpan), err == nil && d > 0
}
