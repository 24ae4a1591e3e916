package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"
)

const (
	// jqTime is how long an expression may take for one record.
	jqTime = 100 * time.Millisecond
	// maxResult is how many bytes of what it makes of a record are shown.
	maxResult = 16 << 10
)

// jq is an expression in the language of jq. It is true of a record if the first thing
// that it makes of it is neither false nor null.
//
// The whole language cannot be had. A deadline does not bound what a single step takes:
// "x" * 2e9 is one step and two gigabytes, and so is comparing with itself a value that
// was made of two of the same, thirty times over. So no step may take more than a part
// of a megabyte or of a millisecond: operators and functions that look at whole values
// are ours (jq_functions.go), and what is neither that nor cheap is not there
// (jq_allowed.go). What then is left takes memory step by step, and the deadline bounds
// the steps.
type jq struct {
	code  *gojq.Code
	maker *maker
}

// newJQ reads an expression.
func newJQ(text string) (*jq, error) {
	if len(text) > 2*MaxText {
		return nil, fmt.Errorf("the jq expression has %d bytes, more than %d", len(text), 2*MaxText)
	}
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the jq expression: %w", err)
	}
	if err := allow(query); err != nil {
		return nil, fmt.Errorf("the jq expression: %w", err)
	}
	define(query)
	m := &maker{}
	code, err := gojq.Compile(query, m.functions()...)
	if err != nil {
		return nil, fmt.Errorf("the jq expression: %w", err)
	}
	return &jq{code, m}, nil
}

// errSlow says that an expression took too long.
var errSlow = errors.New("the expression took too long")

// match says whether the expression is true of a record, and what it made of it, unless
// that is just true.
func (j *jq) match(r *Record, value any, deadline time.Time, now func() time.Time) (found bool, result string, err error) {
	defer func() {
		if p := recover(); p != nil {
			found, err = false, fmt.Errorf("the expression broke: %v", p)
		}
	}()
	j.maker.left = maxMakes
	limit := min(jqTime, max(deadline.Sub(now()), time.Millisecond))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, any := j.code.RunWithContext(ctx, input(r, value)).Next()
	if err, failed := out.(error); failed {
		if ctx.Err() != nil {
			return false, "", errSlow
		}
		return false, "", errors.New(cutText(err.Error(), 200))
	}
	switch {
	case !any || out == nil || out == false:
		return false, "", nil
	case out == true:
		return true, "", nil
	}
	return true, resultText(out), nil
}

// input is a record as an expression sees it.
func input(r *Record, value any) any {
	headers := map[string]any{}
	for _, h := range r.Headers {
		headers[h.Name] = textOf(h.Value)
	}
	if r.Value == nil {
		value = nil
	}
	return map[string]any{
		"partition": int(r.Partition), "offset": int(r.Offset), "timestamp": int(r.Timestamp),
		"key": textOf(r.Key), "value": value, "headers": headers,
	}
}

func textOf(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b[:min(len(b), maxJSON)])
}

// resultText writes what an expression made as JSON, as much of it as is shown.
func resultText(v any) string {
	w := &writer{most: maxResult}
	w.write(v, 0)
	if w.full {
		return cutText(string(w.b), maxResult) + " …"
	}
	return string(w.b)
}
