package records

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
)

// lineParser makes a record of a line. The record's partition is negative if
// the line does not choose one.
type lineParser func(line []byte) (*kgo.Record, error)

func newLineParser(set *pflag.FlagSet, flags *produceFlags) (lineParser, error) {
	headers, err := parseHeaders(flags.headers)
	if err != nil {
		return nil, err
	}
	if flags.partition < -1 {
		return nil, cli.Usagef("--partition is a partition's number, not %d", flags.partition)
	}
	var inner lineParser
	if flags.jsonLines {
		inner = parseJSONLine
	} else if inner, err = newTextParser(set, flags); err != nil {
		return nil, err
	}
	return func(line []byte) (*kgo.Record, error) {
		r, err := inner(line)
		if err != nil {
			return nil, err
		}
		r.Headers = slices.Concat(headers, r.Headers)
		if flags.partition >= 0 {
			r.Partition = flags.partition
		}
		return r, nil
	}, nil
}

// newTextParser parses lines that are a value, or a key and a value.
func newTextParser(set *pflag.FlagSet, flags *produceFlags) (lineParser, error) {
	separator, err := unescape(flags.keySeparator)
	if err != nil {
		return nil, cli.Usagef("--key-separator: %s", err)
	}
	if set.Changed("key-separator") && separator == "" {
		return nil, cli.Usagef("--key-separator is empty")
	}
	withKey, withNull := set.Changed("key"), set.Changed("null-value")
	return func(line []byte) (*kgo.Record, error) {
		r := &kgo.Record{Value: line, Partition: -1}
		if withKey {
			r.Key = []byte(flags.key)
		}
		if separator != "" {
			key, value, ok := bytes.Cut(line, []byte(separator))
			if !ok {
				return nil, fmt.Errorf("the key separator %q is not in it", separator)
			}
			r.Key, r.Value = key, value
		}
		if withNull && string(r.Value) == flags.nullValue {
			r.Value = nil
		}
		return r, nil
	}, nil
}

func parseHeaders(pairs []string) ([]kgo.RecordHeader, error) {
	var out []kgo.RecordHeader
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, cli.Usagef("--header takes name=value, not %q", pair)
		}
		out = append(out, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return out, nil
}

// jsonLine has the fields that --json-lines accepts. Others are refused, since
// a misspelt one would be lost without a word.
type jsonLine struct {
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Headers   json.RawMessage `json:"headers"`
	Partition *int32          `json:"partition"`
	Timestamp json.RawMessage `json:"timestamp"`
	Encoding  string          `json:"encoding"`
	Topic     json.RawMessage `json:"topic"`
	Offset    json.RawMessage `json:"offset"`
}

func parseJSONLine(line []byte) (*kgo.Record, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var in jsonLine
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("not a record in JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return nil, errors.New("more than one JSON value in it")
	}
	if in.Value == nil {
		return nil, errors.New(`the field "value" is missing; null is a tombstone`)
	}
	if in.Encoding != "" && in.Encoding != "base64" {
		return nil, fmt.Errorf(`encoding is "base64" or absent, not %q`, in.Encoding)
	}
	r := &kgo.Record{Partition: -1}
	if in.Partition != nil && *in.Partition >= 0 {
		r.Partition = *in.Partition
	}
	var errs [4]error
	r.Key, errs[0] = decodeField("key", in.Key, in.Encoding)
	r.Value, errs[1] = decodeField("value", in.Value, in.Encoding)
	r.Headers, errs[2] = decodeHeaders(in.Headers, in.Encoding)
	r.Timestamp, errs[3] = decodeTimestamp(in.Timestamp)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// decodeField returns the bytes that a JSON value stands for: a string's, or
// the text of any other value; nil for null or nothing.
func decodeField(name string, raw json.RawMessage, encoding string) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '"' {
		if encoding != "" {
			return nil, fmt.Errorf("%s must be a string if encoding is %q", name, encoding)
		}
		return raw, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if encoding == "" {
		return []byte(text), nil
	}
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not base64: %w", name, err)
	}
	return out, nil
}

// jsonHeader is a header in JSON.
type jsonHeader struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// decodeHeaders accepts an array, which keeps order and repeated names, or an
// object, which is easier to write.
func decodeHeaders(raw json.RawMessage, encoding string) ([]kgo.RecordHeader, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var list []jsonHeader
	if raw[0] == '{' {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
		for name, value := range object {
			list = append(list, jsonHeader{name, value})
		}
		sort.Slice(list, func(i, j int) bool { return list[i].Key < list[j].Key })
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("headers must be an object, or an array of objects with key and value")
	}
	var out []kgo.RecordHeader
	for _, h := range list {
		value, err := decodeField("header "+h.Key, h.Value, encoding)
		if err != nil {
			return nil, err
		}
		out = append(out, kgo.RecordHeader{Key: h.Key, Value: value})
	}
	return out, nil
}

// decodeTimestamp accepts milliseconds since 1970, or RFC 3339 in a string. The
// zero time lets the client choose the present.
func decodeTimestamp(raw json.RawMessage) (time.Time, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return time.Time{}, nil
	}
	var millis int64
	if json.Unmarshal(raw, &millis) == nil {
		return time.UnixMilli(millis), nil
	}
	var t time.Time
	if json.Unmarshal(raw, &t) == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("timestamp is milliseconds since 1970 or RFC 3339, not %s", raw)
}
