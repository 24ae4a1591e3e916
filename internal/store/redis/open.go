package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// defaultBits is how many bits of an offset are the sequence of its id.
const defaultBits = 10

// maxBits leaves room for the time in an offset until the year 2109.
const maxBits = 21

// found is what Open found in Redis.
type found struct {
	incarnation int64
	lost        bool
	length      int64
	lastID      entryID // the last id that the stream gave
	first, last string  // the ids of the first and last entries, if any
	time        int64   // of the server, in ms
	meta        map[string]string
}

// open takes a log over, and then reads its producers and aborted transactions:
// once the token is ours, no one else changes them. Redis queues no transaction when it is full, so this
// is none.
func (s *Store) open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (*log, error) {
	bits, err := sequenceBits(cfg)
	if err != nil {
		return nil, err
	}
	layout := cmp.Or(cfg.Layout, defaultLayout)
	k := logKeys(s.prefix, tp)
	generation := s.runs.Generation()
	args := []string{strconv.Itoa(int(epoch)), string(layout), strconv.Itoa(int(bits)), decimal(cfg.Shown), decimal(cfg.Lost)}
	r := s.doMulti(ctx, s.eval(openScript, []string{k.stream, k.meta, k.index, k.producers, k.aborted}, args),
		s.client.B().Hgetall().Key(k.producers).Build(), s.client.B().Zrange().Key(k.aborted).Min("0").Max("-1").Build())
	told, err := replies(r[0])
	if err != nil {
		return nil, attempt("take over", err)
	}
	f, err := parseFound(told)
	if err != nil {
		return nil, err
	}
	l := &log{store: s, tp: tp, keys: k, epoch: epoch, replicas: cfg.Replicas, generation: generation, owner: fmt.Sprintf("%d.%d.", epoch, f.incarnation)}
	l.idle, l.kick = sync.NewCond(&l.mu), make(chan struct{}, 1)
	if err := l.load(ctx, f, layout); err != nil {
		return nil, err
	}
	if f.lost {
		s.logger.Warn("stream of a log is gone, and its records with it", "key", k.stream)
	}
	states, err := r[1].AsStrMap()
	if err != nil {
		return nil, attempt("read producers", err)
	}
	aborted, err := r[2].AsStrSlice()
	if err != nil {
		return nil, attempt("read aborted transactions", err)
	}
	return l, l.layout.loadState(ctx, states, aborted, f.time)
}

// loadState reads what is kept with every append.
func (l *log) loadState(ctx context.Context, producers map[string]string, aborted []string, now int64) error {
	if err := l.loadAborted(ctx, aborted); err != nil {
		return err
	}
	return l.loadProducers(ctx, producers, now)
}

func sequenceBits(cfg store.LogConfig) (uint, error) {
	if cfg.SequenceBits < 0 || cfg.SequenceBits > maxBits {
		return 0, fmt.Errorf("%w: %d bits for the sequence, not 1 to %d", store.ErrStorage, cfg.SequenceBits, maxBits)
	}
	if cfg.SequenceBits == 0 {
		return defaultBits, nil
	}
	return uint(cfg.SequenceBits), nil
}

// parseFound reads openScript's reply.
func parseFound(r []reply) (*found, error) {
	if len(r) == 2 || len(r) == 3 {
		switch what := r[1].text(); r[0].text() {
		case "fenced":
			token, err := parseToken(what)
			if err != nil {
				return nil, err
			}
			return nil, &store.FencedError{Epoch: int32(token[0])}
		case "type":
			return nil, fmt.Errorf("%w: key %s holds a %s, which muster did not make: RENAME it, and muster makes another", store.ErrCorrupt, r[2].text(), what)
		case "token":
			return nil, fmt.Errorf("%w: token %q", store.ErrCorrupt, what)
		}
	}
	if len(r) != 10 {
		return nil, fmt.Errorf("%w: reply of %d values", store.ErrStorage, len(r))
	}
	f := &found{
		incarnation: r[1].int(), lost: r[2].int() == 1, length: r[3].int(),
		first: r[5].text(), last: r[6].text(), time: serverMillis(r[7], r[8]), meta: hash(r[9].list()),
	}
	var err error
	f.lastID, err = parseID(r[4].text())
	return f, err
}

// serverMillis reads a reply of TIME.
func serverMillis(seconds, micros reply) int64 { return seconds.int()*1000 + micros.int()/1000 }

// load fills the handle from what was found.
func (l *log) load(ctx context.Context, f *found, want store.Layout) (err error) {
	if l.layout, err = newLayout(l, f.meta); err != nil {
		return err
	}
	if name := l.layout.name(); name != want && f.meta["was"] != string(want) { // A conversion writes the setting last.
		l.store.logger.Warn("log keeps the layout it was made with", "key", l.keys.stream, "layout", name, "configured", want)
	}
	for field, value := range map[string]*int64{
		"size": &l.tail.size, "largest": &l.tail.largest, "ahead": &l.tail.ahead,
	} {
		if *value, err = number(f.meta, field); err != nil {
			return err
		}
	}
	if l.cleaned, err = loadCleaned(f.meta, f.time); err != nil {
		return err
	}
	l.tail.maxTimestamp = record.NoTimestamp
	if _, ok := f.meta["maxts"]; ok {
		if l.tail.maxTimestamp, err = number(f.meta, "maxts"); err != nil {
			return err
		}
	}
	if l.run, err = l.store.loadRun(f.meta); err != nil {
		return err
	}
	if l.tail.epochs, err = parseEpochs(f.meta["epochs"]); err != nil {
		return err
	}
	if err := l.loadBounds(ctx, f); err != nil {
		return err
	}
	l.forgot = f.time
	l.clock = clock{server: f.time, local: l.store.now()}
	if l.numbered == nil {
		return nil // Its size is exact.
	}
	return l.loadSize(ctx, f)
}

// loadRun reads what is known of the run of the server. In a cluster each server has one
// of its own.
func (s *Store) loadRun(meta map[string]string) (run store.Run, err error) {
	if s.client.Mode() != rueidis.ClientModeCluster {
		run.ID = meta["run"]
	}
	for field, value := range map[string]*int64{"began": &run.Began, "lost": &run.Lost} {
		if *value, err = number(meta, field); err != nil {
			return run, err
		}
	}
	return run, nil
}

// loadBounds finds where the log starts and ends. A stream that was there
// before the log is adopted.
func (l *log) loadBounds(ctx context.Context, f *found) error {
	if _, ok := f.meta["start"]; !ok {
		return l.adopt(ctx, f)
	}
	start, err := parseID(f.meta["start"])
	if err != nil {
		return err
	}
	end, err := parseID(f.meta["end"])
	if err != nil {
		return err
	}
	return l.layout.loadBounds(ctx, f, start, end)
}

// loadSize accounts for entries that others added or removed while no one
// counted.
func (l *log) loadSize(ctx context.Context, f *found) error {
	counted, err := number(f.meta, "count")
	if err != nil {
		return err
	}
	l.tail.count = f.length
	switch {
	case counted == f.length:
		return nil
	case f.length == 0:
		l.tail.size = 0
	case counted > 0:
		l.tail.size = int64(float64(l.tail.size) / float64(counted) * float64(f.length))
	default:
		cmd := l.store.client.B().MemoryUsage().Key(l.keys.stream).Build()
		if l.tail.size, err = l.store.do(ctx, cmd).AsInt64(); err != nil {
			return attempt("measure", err)
		}
	}
	_, err = l.own(ctx, "measure", setScript, "size", decimal(l.tail.size), "count", decimal(l.tail.count))
	return err
}

// clock estimates the server's time, so that ids look like those that the
// server gives by itself.
type clock struct {
	server int64 // the server's time in ms when local was our time
	local  time.Time
}

func (c clock) now(local time.Time) int64 {
	return c.server + max(local.Sub(c.local).Milliseconds(), 0)
}

// parseEpochs reads the list of epochs: [[epoch, start offset], …].
func parseEpochs(text string) ([]store.EpochStart, error) {
	if text == "" {
		return nil, nil
	}
	var pairs [][2]int64
	if err := json.Unmarshal([]byte(text), &pairs); err != nil {
		return nil, fmt.Errorf("%w: epochs %q: %w", store.ErrCorrupt, text, err)
	}
	var out []store.EpochStart
	for _, p := range pairs {
		out = append(out, store.EpochStart{Epoch: int32(p[0]), Start: p[1]})
	}
	return out, nil
}

func formatEpochs(epochs []store.EpochStart) string {
	b := []byte{'['}
	for i, e := range epochs {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%d,%d]", e.Epoch, e.Start)
	}
	return string(append(b, ']'))
}

// adopt makes a log of a stream that has entries but no meta hash: one of a
// Redis application, or one of ours whose meta hash was lost. It starts at the
// first entry. Its consumer groups stay as they are.
func (l *log) adopt(ctx context.Context, f *found) error {
	if err := l.layout.adopt(ctx, f); err != nil {
		return err
	}
	args := []string{"start", l.layout.position(l.start), "end", l.layout.position(l.tail.next), "maxts", decimal(l.tail.maxTimestamp)}
	if len(l.tail.epochs) > 0 {
		args = append(args, "epochs", formatEpochs(l.tail.epochs))
	}
	_, err := l.own(ctx, "adopt", setScript, args...)
	return err
}
