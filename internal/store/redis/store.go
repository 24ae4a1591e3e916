// Package redis keeps partition logs in Redis Streams: it owns their keys, the
// layouts of their streams, and the scripts that keep appends in order and
// fenced. It never decides who leads a partition. Beside it, package conn opens
// and watches the connection, lease registers brokers, and native shows groups
// to Redis clients.
package redis

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// Options are what a Store can be told.
type Options struct {
	Prefix string // of all keys, "muster" if empty
	Logger *slog.Logger
	Now    func() time.Time
	// Timeout is how long one exchange with Redis may take, 5 s if zero.
	Timeout time.Duration
	// ReplicaTimeout is how long replicas are waited for, Timeout if zero.
	ReplicaTimeout time.Duration
	// Runs is that of the client. Without it a server that is started again is noticed by
	// what it has lost of a log, and only there.
	Runs *conn.Runs
}

// DefaultPrefix is the prefix of all keys if none is given.
const DefaultPrefix = "muster"

// Store is a set of logs in Redis. It may be one of many that share them.
type Store struct {
	client  rueidis.Client
	prefix  string
	logger  *slog.Logger
	now     func() time.Time
	timeout time.Duration
	replica time.Duration // how long replicas are waited for
	runs    *conn.Runs

	mu     sync.Mutex
	closed bool
	logs   map[*log]struct{} // the handles that are open

	held        heldBytes // what was read and is not sent yet
	windows     indexWindows
	tracker     *tracker
	memory      *memory       // of appends that are being sent
	maxArgument atomic.Int64  // what Redis takes as one value
	waits       chan struct{} // bounds who waits for replicas, each on a connection
}

// maxWaits is how many logs wait for replicas at a time. A wait is short, and
// all flushes of a log share one.
const maxWaits = 16

var (
	_ store.Store     = (*Store)(nil)
	_ store.Shared    = (*Store)(nil)
	_ store.Watcher   = (*Store)(nil)
	_ store.Checker   = (*Store)(nil)
	_ store.Lengths   = (*Store)(nil)
	_ store.Converter = (*Store)(nil)
)

// New returns a store that uses a client, which stays the caller's to close,
// after the store.
func New(client rueidis.Client, opts Options) *Store {
	s := &Store{client: client, prefix: opts.Prefix, logger: opts.Logger, now: opts.Now, timeout: opts.Timeout, runs: opts.Runs, logs: map[*log]struct{}{}, waits: make(chan struct{}, maxWaits), memory: newMemory()}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.timeout == 0 {
		s.timeout = 5 * time.Second
	}
	s.replica = cmp.Or(opts.ReplicaTimeout, s.timeout)
	s.tracker = newTracker(s)
	return s
}

// CheckPrefix says whether a prefix can be used. Braces would move the keys of
// a log to different slots of a cluster.
func CheckPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") {
		return fmt.Errorf("key prefix %q: braces are not allowed", prefix)
	}
	return nil
}

// attempt wraps an error with what was attempted.
func attempt(what string, err error) error { return conn.Attempt(what, err) }

// bounded returns a context for one exchange with Redis.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

func (s *Store) do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.client.Do(ctx, cmd)
}

func (s *Store) doMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.client.DoMulti(ctx, cmds...)
}

// eval makes a command that runs a script. The text goes along every time:
// the server knows it by its hash and compiles it only once, and inside of a
// transaction a script that is not there would be noticed too late.
func (s *Store) eval(script string, keys, args []string) rueidis.Completed {
	return s.client.B().Eval().Script(script).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// defaultMaxArgument is proto-max-bulk-len of a server that no one configured.
const defaultMaxArgument = 512 << 20

// learnLimit asks once how large a value may be. Redis hangs up when it is sent
// a larger one, and all other commands on that connection fail with it.
// If it does not tell, it is taken to have the default.
func (s *Store) learnLimit(ctx context.Context) {
	if s.maxArgument.Load() != 0 {
		return
	}
	limit := int64(defaultMaxArgument)
	config, err := s.do(ctx, s.client.B().ConfigGet().Parameter("proto-max-bulk-len").Build()).AsStrMap()
	if _, answered := rueidis.IsRedisErr(err); err != nil && !answered {
		return
	}
	if err == nil {
		if n, err := strconv.ParseInt(config["proto-max-bulk-len"], 10, 64); err == nil && n > 0 {
			limit = n
		}
	}
	s.maxArgument.Store(limit)
}

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, tp store.TopicPartition, leaderEpoch int32, cfg store.LogConfig) (store.Log, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.learnLimit(ctx)
	l, err := s.open(ctx, tp, leaderEpoch, cfg)
	if err == nil && l.Failed() { // By it the restart was noticed.
		l, err = s.open(ctx, tp, leaderEpoch, cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", logKeys(s.prefix, tp).stream, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	s.logs[l] = struct{}{}
	return l.layout, nil
}

func (s *Store) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	return nil
}

// Delete implements store.Store. Handles elsewhere find that the log's meta
// key is gone.
func (s *Store) Delete(ctx context.Context, tp store.TopicPartition) error {
	if err := s.check(); err != nil {
		return err
	}
	k := logKeys(s.prefix, tp)
	del := s.client.B().Unlink().Key(k.meta, k.stream, k.index, k.conversion, k.copied, k.producers, k.aborted, k.mark, k.groups, k.consumers).Build()
	if err := s.do(ctx, del).Error(); err != nil {
		return attempt("delete "+k.stream, err)
	}
	for _, l := range s.handles(func(l *log) bool { return l.tp == tp }) {
		l.end()
	}
	return nil
}

// handles returns the open handles that match.
func (s *Store) handles(match func(*log) bool) []*log {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*log
	for l := range s.logs {
		if match(l) {
			out = append(out, l)
		}
	}
	return out
}

func (s *Store) forget(l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, l)
}

// Close implements store.Store. Appends under way are waited for.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.tracker.end()
	for _, l := range s.handles(func(*log) bool { return true }) {
		l.end()
	}
	return nil
}
