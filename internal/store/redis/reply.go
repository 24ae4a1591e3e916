package redis

import (
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// reply is one value of what a script or a transaction returned. The zero
// value is that of missing things: what others may have written is never
// worth a panic.
type reply struct{ m rueidis.RedisMessage }

func (r reply) text() string {
	s, _ := r.m.ToString()
	return s
}

func (r reply) int() int64 {
	n, _ := r.m.AsInt64()
	return n
}

func (r reply) list() []reply {
	a, _ := r.m.ToArray()
	return wrapReplies(a)
}

func wrapReplies(a []rueidis.RedisMessage) []reply {
	out := make([]reply, len(a))
	for i := range a {
		out[i] = reply{a[i]}
	}
	return out
}

// replies returns the values of an array.
func replies(r rueidis.RedisResult) ([]reply, error) {
	a, err := r.ToArray()
	return wrapReplies(a), err
}

// executed returns the replies of a transaction's commands. If one of them was
// not even queued, nothing was done, and that is the error.
func executed(results []rueidis.RedisResult) ([]rueidis.RedisMessage, error) {
	exec := results[len(results)-1]
	if exec.Error() == nil {
		return exec.ToArray()
	}
	for _, r := range results[:len(results)-1] {
		if err := r.Error(); err != nil {
			return nil, err
		}
	}
	return nil, exec.Error()
}

// hash makes a map of the fields and values of a hash.
func hash(list []reply) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].text()] = list[i+1].text()
	}
	return m
}

// number parses a number in a meta hash; a missing one is zero.
func number(meta map[string]string, field string) (int64, error) {
	text, ok := meta[field]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: field %s is %q", store.ErrCorrupt, field, text)
	}
	return n, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
