package main

import (
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// warmUp produces and fetches in all layouts, which counts for nothing: Java
// compiles what is used often, and that takes a while.
func (x *session) warmUp() error {
	for i, s := range slices.Concat(contestShapes(), contestShapes()) {
		if err := x.warm(fmt.Sprintf("bench-warm-%d", i), s); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	return x.flush()
}

// warm produces a part of what will be measured, or as much as there is time
// for, and fetches it.
func (x *session) warm(topic string, s shape) error {
	conns, err := x.connect(x.p, connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if err := x.newTopic(conns[0], topic, s.partitions); err != nil {
		return err
	}
	l := s.load(topic, -1)
	sent, each := 0, max(2, int(2e6)/l.bytes())
	for end := time.Now().Add(x.o.warm); time.Now().Before(end) && sent*l.bytes() < int(x.size*0.35e9); sent += each {
		if err := l.pump(conns, each, true, produced(s)); err != nil {
			return err
		}
	}
	f := newFetcher(conns[0], topic, l, int64(sent*s.records))
	for end := time.Now().Add(x.o.warm / 8); time.Now().Before(end); {
		if err := f.pass(); err != nil {
			return err
		}
	}
	return nil
}

// produced checks an answer to Produce version 12.
func produced(s shape) func([]byte) error {
	return func(body []byte) error {
		if len(body) == 0 || body[0] != 0 {
			return fmt.Errorf("tags in the header of a Produce answer")
		}
		return checkProduced(body[1:], 12, s.partitions)
	}
}

// fetchOf is the measure of fetching what another has produced.
func fetchOf(m *moving) *moving {
	f := newMoving("fetch", "", "", m.shape, 2)
	f.topic = m.topic
	return f
}

func (x *session) produceAndFetch(m *moving) error {
	f := fetchOf(m)
	fetched := m.acks == -1 && len(m.set) == 0 && m.speed.rule == fromCache && x.wanted(f.name)
	if !fetched {
		f = nil
	}
	if !x.wanted(m.name) && f == nil {
		return nil
	}
	return x.produceThenFetch(m, f, m.load(m.topic, m.acks))
}

// produceThenFetch measures producing a load, and fetching it if f is not nil.
func (x *session) produceThenFetch(m, f *moving, l *load) error {
	conns, err := x.connect(x.p, connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if err := x.newTopic(conns[0], m.topic, m.partitions, m.set...); err != nil {
		return err
	}
	n, err := x.produce(m, l, conns)
	if err != nil {
		return err
	}
	end := int64(n * m.records)
	if err := checkEnds(conns[0], m.topic, m.partitions, end); err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	return x.fetch(f, newFetcher(conns[0], m.topic, l, end))
}

// produce sends a little to warm up, which also shows how much there is time
// for, and then what is measured. It returns how many requests that was in all.
func (x *session) produce(m *moving, l *load, conns []net.Conn) (int, error) {
	n := max(int(x.size*1e9)/l.bytes(), 2*connections*inFlight)
	warm, began := max(n/20, 1), time.Now()
	if err := l.pump(conns, warm, true, produced(m.shape)); err != nil {
		return 0, err
	}
	affordable := float64(warm) * x.o.budget.Seconds() / time.Since(began).Seconds()
	n = int(math.Min(float64(n), math.Max(affordable, 2*connections*inFlight)))
	err := x.move(m, func() (int64, error) {
		return int64(n * l.bytes()), l.pump(conns, n, true, produced(m.shape))
	})
	return warm + n, err
}

// fetch reads everything: once to look at every batch, and then to be measured.
func (x *session) fetch(m *moving, f *fetcher) error {
	f.verify = true
	if err := f.pass(); err != nil {
		return err
	}
	f.verify, f.read = false, 0
	return x.move(m, func() (int64, error) {
		for range contestPasses {
			if err := f.pass(); err != nil {
				return 0, err
			}
		}
		return f.read, nil
	})
}

// move runs fn, which moves some bytes, and notes what it cost.
func (x *session) move(m *moving, fn func() (int64, error)) error {
	var n int64
	s, err := x.cost(m.name, func() (err error) {
		n, err = fn()
		return err
	})
	if err != nil {
		return err
	}
	bytes := float64(n) * max(m.expands, 1)
	x.note(m.speed, bytes/1e6/s.wall.Seconds())
	x.note(m.cpu, s.cpu.Seconds()/(bytes/1e9))
	return nil
}

// cost runs fn and returns what it took. What muster does in the background after
// its last answer counts, what Kafka does so does not.
func (x *session) cost(profile string, fn func() error) (spent, error) {
	before, err := x.p.cpu()
	if err != nil {
		return spent{}, err
	}
	var s spent
	began := time.Now()
	err = x.profile(x.p, profile, func() error {
		err := fn()
		s.wall = time.Since(began)
		return err
	})
	if err != nil {
		return s, err
	}
	after, err := x.p.cpu()
	if x.side == ours {
		after, err = x.settle(x.p)
	}
	s.cpu = after.sub(before).total()
	return s, err
}

// flush puts what was written on disk, so that this is no burden on what is
// measured next.
func (x *session) flush() error { return x.eachSegment(datasync) }

// eachSegment calls fn for all segments that the broker has.
func (x *session) eachSegment(fn func(*os.File) error) error {
	return filepath.WalkDir(x.data, func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && (d.IsDir() || filepath.Ext(name) != ".log") {
			return nil
		}
		if err != nil {
			return err
		}
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // It was only read.
		return fn(f)
	})
}
