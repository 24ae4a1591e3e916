package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Record is a record as a search sees it. Nil bytes are null.
type Record struct {
	Partition  int32
	Offset     int64
	Timestamp  int64 // In milliseconds; -1 for none.
	AppendTime bool  // The broker set it.
	Key, Value []byte
	Headers    []Header
	// KeySize and ValueSize are as in the log: more than is here if Cut says that the
	// record was too large to be held.
	KeySize, ValueSize int
	Cut                bool
	Transaction        Transaction
	ProducerID         int64
}

// Header is a header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Transaction says what has become of the transaction that a record is of.
type Transaction string

// The states of transactions.
const (
	NoTransaction Transaction = ""
	Committed     Transaction = "committed"
	Aborted       Transaction = "aborted"
	Open          Transaction = "open"
	// Waiting is that it is decided or about to be, but an earlier one is open in the
	// partition, so that readers of committed records do not see it yet.
	Waiting Transaction = "waiting"
)

// maxJSON is how large a value may be that is read as JSON: it takes many times its size.
const maxJSON = 1 << 20

// parseJSON reads a JSON document, of which there is exactly one. Numbers stay as they
// were written.
func parseJSON(b []byte) (any, error) {
	if len(b) > maxJSON {
		return nil, fmt.Errorf("a document of %d bytes is not looked into; %d is the most", len(b), maxJSON)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("not JSON: something follows the document")
	}
	return out, nil
}

// plainNumbers makes numbers of a document to those that jq knows, in place: an int
// where it fits, else a float64. It never makes larger ones, with which arithmetic
// takes time and memory without bound.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return plainNumber(string(v))
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name, in := range v {
			v[name] = plainNumbers(in)
		}
	}
	return v
}

func plainNumber(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return int(n)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// scalarText is a value of a document as people write it.
func scalarText(v any) (text []byte, ok bool) {
	switch v := v.(type) {
	case string:
		return []byte(v), true
	case json.Number:
		return []byte(v), true
	case bool:
		return strconv.AppendBool(nil, v), true
	case nil:
		return []byte("null"), true
	}
	return nil, false
}

// sameNumber says whether two texts are the same number, however it is written.
func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y && !exactly(a, b)
}

// exactly says whether both are whole numbers, which are the same only if their texts
// are: a float64 cannot tell large ones apart.
func exactly(a, b string) bool {
	_, err := strconv.ParseInt(a, 10, 64)
	_, err2 := strconv.ParseInt(b, 10, 64)
	return err == nil && err2 == nil
}

func isNumber(v any) bool {
	_, ok := v.(json.Number)
	return ok
}
