package web

import (
	"bytes"
	"encoding"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster/internal/web/problem"
)

const csvType = "text/csv; charset=utf-8"

// encodeCSV writes the list of an answer: its field with the tag csv:"rows", a line for
// each of its elements and a column for each field of these that has no tag csv:"-".
func encodeCSV(answer any) ([]byte, error) {
	rows, ok := rowsOf(reflect.ValueOf(answer).Elem())
	if !ok {
		return nil, problem.BadRequest("only lists can be had as CSV")
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	columns := slices.DeleteFunc(reflect.VisibleFields(rows.Type().Elem()), func(f reflect.StructField) bool { return f.Tag.Get("csv") == "-" })
	var header []string
	for _, f := range columns {
		header = append(header, jsonName(f))
	}
	if err := w.Write(header); err != nil {
		return nil, err
	}
	for i := range rows.Len() {
		var line []string
		for _, f := range columns {
			cell, err := cellOf(rows.Index(i).FieldByIndex(f.Index))
			if err != nil {
				return nil, err
			}
			line = append(line, cell)
		}
		if err := w.Write(line); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

func rowsOf(v reflect.Value) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("csv") == "rows" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// cellOf writes a value: lists of words with spaces between, what has parts as JSON, and
// what is not known not at all.
func cellOf(v reflect.Value) (string, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", nil
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		return string(b), err
	case []string:
		return harmless(strings.Join(x, " ")), nil
	case string:
		return harmless(x), nil
	}
	switch v.Kind() {
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), nil
	case reflect.Struct, reflect.Slice, reflect.Map:
		b, err := json.Marshal(v.Interface())
		return string(b), err
	case reflect.String:
		return harmless(v.String()), nil
	}
	return fmt.Sprint(v.Interface()), nil
}

// harmless keeps a spreadsheet from taking a name for a formula: anyone may have chosen
// it who may join a group.
func harmless(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@＝＋－＠\t\r\n", first) {
		return "'" + text
	}
	return text
}
