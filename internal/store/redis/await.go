package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// Streams that cannot be waited for are looked at again and again: the more there
// are, the less often, so that Redis is asked about a thousand times a second.
const (
	minLook  = 50 * time.Millisecond
	lookEach = time.Millisecond
	maxLook  = time.Second
)

// AwaitChange implements store.Watcher. One XREAD waits for all streams. In a
// cluster it cannot, since their keys are in different slots: there each has a
// command of its own, again and again, and all go in one pipeline.
func (s *Store) AwaitChange(ctx context.Context, logs []store.Refresher, wait time.Duration) ([]int, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var list []watched
	for i, l := range logs {
		switch l := l.(type) {
		case recordLog:
			_, next := l.Bounds()
			list = append(list, watched{i, l.keys.stream, l.lastBefore(next)})
		case indexLog:
			list = append(list, watched{i, l.keys.stream, l.topID()})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if s.client.Mode() == rueidis.ClientModeCluster {
		return s.lookEach(ctx, list, wait)
	}
	block := strconv.FormatInt(max(wait.Milliseconds(), 1), 10)
	ctx, cancel := context.WithTimeout(ctx, s.timeout+wait)
	defer cancel()
	return grown(list, s.client.Do(ctx, s.xread(list, "BLOCK", block)))
}

// watched is a stream and the last id that is known of it.
type watched struct {
	at   int // where it is in the list of logs
	key  string
	last entryID
}

// xread makes a command that returns an entry of each stream that has more. One
// that waits has a connection of its own.
func (s *Store) xread(list []watched, options ...string) rueidis.Completed {
	keys, ids := make([]string, len(list)), make([]string, len(list))
	for i, w := range list {
		keys[i], ids[i] = w.key, w.last.String()
	}
	cmd := s.client.B().Arbitrary("XREAD", "COUNT", "1").Args(options...).Args("STREAMS").Keys(keys...).Args(ids...)
	if len(options) > 0 {
		return cmd.Blocking()
	}
	return cmd.Build()
}

// grown reads a reply of XREAD. If one of the keys is no stream, or may not be
// read, all are taken to have changed: a look at each will tell.
func grown(list []watched, r rueidis.RedisResult) ([]int, error) {
	m, err := r.ToMessage()
	switch {
	case rueidis.IsRedisNil(err):
		return nil, nil
	case err != nil && conn.IsPassing(err):
		return nil, attempt("look at streams", err)
	}
	changed := make([]int, 0, len(list))
	keys := readKeys(&m)
	for _, w := range list {
		if err != nil || keys[w.key] {
			changed = append(changed, w.at)
		}
	}
	return changed, nil
}

// readKeys returns which streams are in a reply of XREAD, which is a map or, in
// the older protocol, a list of pairs.
func readKeys(m *rueidis.RedisMessage) map[string]bool {
	keys := make(map[string]bool)
	if m.IsMap() {
		byKey, _ := m.AsMap()
		for key := range byKey {
			keys[key] = true
		}
		return keys
	}
	streams, _ := m.ToArray()
	for _, one := range wrapReplies(streams) {
		if pair := one.list(); len(pair) == 2 {
			keys[pair[0].text()] = true
		}
	}
	return keys
}

// lookEach looks at each stream until one has more, or the time is up.
func (s *Store) lookEach(ctx context.Context, list []watched, wait time.Duration) ([]int, error) {
	pace := min(max(minLook, time.Duration(len(list))*lookEach), maxLook)
	until := time.Now().Add(max(wait, pace))
	for {
		cmds := make([]rueidis.Completed, len(list))
		for i, w := range list {
			cmds[i] = s.xread([]watched{w})
		}
		var changed []int
		var failed error
		for i, r := range s.doMulti(ctx, cmds...) {
			some, err := grown(list[i:i+1], r)
			if err != nil {
				failed = err // A node may be away, which must not keep others waiting.
			}
			changed = append(changed, some...)
		}
		if len(changed) > 0 || failed != nil {
			return changed, failed
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pace):
		}
		if !time.Now().Before(until) {
			return nil, nil
		}
	}
}
