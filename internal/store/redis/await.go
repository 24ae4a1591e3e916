package redis

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// Streams of which not all nodes tell are looked at again and again: the more there
// are, the less often, so that Redis is asked about a thousand times a second. Also when
// they do, looks do not follow each other faster.
const (
	minLook  = 50 * time.Millisecond
	lookEach = time.Millisecond
	maxLook  = time.Second
)

// AwaitChange implements store.Watcher.
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
	return s.tracker.await(ctx, list, wait)
}

// watched is a stream and the last id that is known of it.
type watched struct {
	at   int // where it is in the list of logs
	key  string
	last entryID
}

// xread makes a command that returns an entry of each stream that has more.
func (s *Store) xread(list []watched) rueidis.Completed {
	keys, ids := make([]string, len(list)), make([]string, len(list))
	for i, w := range list {
		keys[i], ids[i] = w.key, w.last.String()
	}
	return s.client.B().Arbitrary("XREAD", "COUNT", "1", "STREAMS").Keys(keys...).Args(ids...).Build()
}

// look returns which streams have more. One XREAD looks at all, but in a cluster at one slot
// only: there each has a command of its own, and all go in one pipeline.
func (s *Store) look(ctx context.Context, list []watched) (changed []watched, failed error) {
	if s.client.Mode() != rueidis.ClientModeCluster {
		return grown(list, s.do(ctx, s.xread(list)))
	}
	cmds := make([]rueidis.Completed, len(list))
	for i := range list {
		cmds[i] = s.xread(list[i : i+1])
	}
	for i, r := range s.doMulti(ctx, cmds...) {
		some, err := grown(list[i:i+1], r)
		if err != nil {
			failed = err // A node may be away, which must not keep others waiting.
		}
		changed = append(changed, some...)
	}
	return changed, failed
}

// grown reads a reply of XREAD. If one of the keys is no stream, or may not be
// read, all are taken to have changed: a look at each will tell.
func grown(list []watched, r rueidis.RedisResult) ([]watched, error) {
	m, err := r.ToMessage()
	switch {
	case rueidis.IsRedisNil(err):
		return nil, nil
	case err != nil && conn.IsPassing(err):
		return nil, attempt("look at streams", err)
	}
	var changed []watched
	keys := readKeys(&m)
	for _, w := range list {
		if err != nil || keys[w.key] {
			changed = append(changed, w)
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

// tracker hears of changes of streams, whoever makes them: each node tells it the names of
// the keys that it has changed (CLIENT TRACKING). So whoever waits costs Redis nothing while
// nothing happens.
//
// A stream is looked at when it is new to the tracker, when a node has named it, and again
// after a look that found something. While a node cannot be heard, all are looked at again and
// again.
type tracker struct {
	store *Store
	ctx   context.Context
	end   context.CancelFunc
	kick  chan struct{} // that a node has said something

	mu    sync.Mutex
	nodes map[string]*trackedNode
	known map[string]bool // the streams that are waited for: true if a look at it is due
	asked time.Time       // when someone waited last

	looked time.Time // when the last look was; only await uses it
}

// trackedNode is a connection to a node.
type trackedNode struct {
	heard  bool
	failed time.Time // it is tried again a moment later
	end    context.CancelFunc
}

const (
	// trackAgain is after how long a node that could not be heard is tried again.
	trackAgain = time.Second
	// trackFor is how long nodes are listened to after someone waited.
	trackFor = 10 * time.Second
)

func newTracker(s *Store) *tracker {
	t := &tracker{store: s, kick: make(chan struct{}, 1), nodes: map[string]*trackedNode{}}
	t.ctx, t.end = context.WithCancel(context.Background())
	return t
}

// connect listens to all nodes, and to those only that are there now. It says whether all are
// heard.
func (t *tracker) connect() bool {
	nodes := t.store.client.Nodes()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return false
	}
	now, whole := time.Now(), len(nodes) > 0
	t.asked = now
	for addr, n := range t.nodes {
		switch {
		case nodes[addr] != nil:
		case n.end == nil:
			delete(t.nodes, addr)
		default:
			n.end()
		}
	}
	for addr, client := range nodes {
		n := t.nodes[addr]
		if n == nil {
			n = &trackedNode{}
			t.nodes[addr] = n
		}
		if n.end == nil && now.Sub(n.failed) >= trackAgain {
			ctx, end := context.WithCancel(t.ctx)
			n.end = end
			go t.listen(ctx, addr, n, client)
		}
		whole = whole && n.heard
	}
	return whole
}

// listen has a node tell of changes until ctx ends, the connection does, or no one waits.
func (t *tracker) listen(ctx context.Context, addr string, n *trackedNode, node rueidis.Client) {
	dedicated, release := node.Dedicate()
	gone := dedicated.SetOnInvalidations(t.changed)
	cmd := node.B().Arbitrary("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX").Args(t.store.prefix + ":").Build()
	bounded, cancel := t.store.bounded(ctx)
	err := dedicated.Do(bounded, cmd).Error()
	cancel()
	if err == nil {
		t.hear(n)
	}
	for listening := err == nil; listening; {
		select {
		case <-gone:
			listening = false
		case <-ctx.Done():
			listening = false
		case <-time.After(trackFor):
			t.mu.Lock()
			listening = time.Since(t.asked) < trackFor
			t.mu.Unlock()
		}
	}
	t.mu.Lock()
	n.heard, n.end = false, nil
	if err != nil {
		n.failed = time.Now()
	}
	if ctx.Err() != nil && t.nodes[addr] == n {
		delete(t.nodes, addr)
	}
	t.mu.Unlock()
	dedicated.Close()
	release()
}

// hear notes that a node is heard from now on. What it would have told before is not known.
func (t *tracker) hear(n *trackedNode) {
	t.mu.Lock()
	n.heard = true
	t.mu.Unlock()
	t.changed(nil)
}

// changed takes in the names of keys, or that all may have changed.
func (t *tracker) changed(names []rueidis.RedisMessage) {
	t.mu.Lock()
	some := names == nil
	if names == nil {
		for key := range t.known {
			t.known[key] = true
		}
	}
	for i := range names {
		key, _ := names[i].ToString()
		if _, ok := t.known[key]; ok {
			t.known[key], some = true, true
		}
	}
	t.mu.Unlock()
	if some {
		select {
		case t.kick <- struct{}{}:
		default:
		}
	}
}

// await waits until a look finds that some of the streams have grown, for so long.
func (t *tracker) await(ctx context.Context, list []watched, wait time.Duration) ([]int, error) {
	t.take(list)
	until := time.Now().Add(wait)
	for {
		whole := t.connect()
		if due := t.due(list, whole); len(due) > 0 {
			t.looked = time.Now()
			changed, err := t.store.look(ctx, due)
			if err != nil {
				t.again(due)
			} else {
				t.again(changed)
			}
			if len(changed) > 0 || err != nil {
				return places(changed), err
			}
		}
		if err := t.pause(ctx, list, until, whole); err != nil || !time.Now().Before(until) {
			return nil, err
		}
	}
}

// pause waits for a node to say something, but looks do not follow each other at once. While not
// all nodes are heard it only lets some time pass: the more streams there are, the more.
func (t *tracker) pause(ctx context.Context, list []watched, until time.Time, whole bool) error {
	pace := t.looked.Add(minLook)
	if whole {
		if err := t.sleep(ctx, time.Until(until), t.kick); err != nil || !time.Now().Before(until) {
			return err
		}
	} else {
		pace = time.Now().Add(min(max(minLook, time.Duration(len(list))*lookEach), maxLook))
	}
	return t.sleep(ctx, time.Until(pace), nil)
}

// sleep waits for a while, or less if it is kicked.
func (t *tracker) sleep(ctx context.Context, d time.Duration, kick <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return store.ErrClosed
	case <-time.After(d):
	case <-kick:
	}
	return nil
}

// take makes these the streams that are waited for. Those that are new have to be looked at.
func (t *tracker) take(list []watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := make(map[string]bool, len(list))
	for _, w := range list {
		due, old := t.known[w.key]
		known[w.key] = due || !old
	}
	t.known = known
}

// due returns the streams to look at, and takes them to have been looked at.
func (t *tracker) due(list []watched, whole bool) []watched {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []watched
	for _, w := range list {
		if t.known[w.key] || !whole {
			out = append(out, w)
			t.known[w.key] = false
		}
	}
	return out
}

// again has streams looked at once more.
func (t *tracker) again(list []watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range list {
		t.known[w.key] = true
	}
}

func places(list []watched) []int {
	out := make([]int, len(list))
	for i, w := range list {
		out[i] = w.at
	}
	return out
}
