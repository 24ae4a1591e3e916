package web

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Offset is an offset in JSON: a string, since on Redis offsets are larger than the
// numbers that JavaScript can tell apart.
type Offset int64

// MarshalText implements encoding.TextMarshaler.
func (o Offset) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(o), 10), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Offset) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*o = Offset(n)
	return err
}

func offset(n *int64) *Offset {
	if n == nil {
		return nil
	}
	o := Offset(*n)
	return &o
}

// RawEntry is an entry of the journal as the broker wrote it.
type RawEntry json.RawMessage

// MarshalJSON implements json.Marshaler.
func (r RawEntry) MarshalJSON() ([]byte, error) { return json.RawMessage(r).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (r *RawEntry) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(r).UnmarshalJSON(b) }

// Silent is a broker of which an answer has nothing.
type Silent struct {
	Broker  int32  `json:"broker" doc:"its node id"`
	Message string `json:"message" doc:"why"`
}

// known returns a time, nil for none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// finite returns a number of seconds, nil if it is never.
func finite(seconds float64) *float64 {
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return nil
	}
	return &seconds
}

// some returns a list that is not null in JSON.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
