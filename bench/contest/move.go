package contest

import (
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster/bench/rig"
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
func (x *session) warm(topic string, s rig.Shape) error {
	conns, err := x.Connect(x.p, rig.Connections)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], topic, s.Partitions); err != nil {
		return err
	}
	l := s.Load(topic, -1)
	sent, each := 0, max(2, int(2e6)/l.Bytes())
	for end := time.Now().Add(x.o.warm); time.Now().Before(end) && sent*l.Bytes() < int(x.Size*0.35e9); sent += each {
		if err := l.Pump(conns, each, true, rig.Produced(s)); err != nil {
			return err
		}
	}
	f := rig.NewFetcher(conns[0], topic, l, int64(sent*s.Records))
	for end := time.Now().Add(x.o.warm / 8); time.Now().Before(end); {
		if err := f.Pass(); err != nil {
			return err
		}
	}
	return nil
}

// fetchOf is the measure of fetching what another has produced.
func fetchOf(m *moving) *moving {
	f := newMoving("fetch", "", "", m.Shape, 2)
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
	return x.produceThenFetch(m, f, m.Load(m.topic, m.acks))
}

// produceThenFetch measures producing a load, and fetching it if f is not nil.
func (x *session) produceThenFetch(m, f *moving, l *rig.Load) error {
	conns, err := x.Connect(x.p, rig.Connections)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], m.topic, m.Partitions, m.set...); err != nil {
		return err
	}
	n, err := x.produce(m, l, conns)
	if err != nil {
		return err
	}
	end := int64(n * m.Records)
	if err := rig.CheckEnds(conns[0], m.topic, m.Partitions, end); err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	return x.fetch(f, rig.NewFetcher(conns[0], m.topic, l, end))
}

// produce sends a little to warm up, which also shows how much there is time
// for, and then what is measured. It returns how many requests that was in all.
func (x *session) produce(m *moving, l *rig.Load, conns []net.Conn) (int, error) {
	n := max(int(x.Size*1e9)/l.Bytes(), 2*rig.Connections*rig.InFlight)
	warm, began := max(n/20, 1), time.Now()
	if err := l.Pump(conns, warm, true, rig.Produced(m.Shape)); err != nil {
		return 0, err
	}
	affordable := float64(warm) * x.o.budget.Seconds() / time.Since(began).Seconds()
	n = int(math.Min(float64(n), math.Max(affordable, 2*rig.Connections*rig.InFlight)))
	err := x.move(m, func() (int64, error) {
		return int64(n * l.Bytes()), l.Pump(conns, n, true, rig.Produced(m.Shape))
	})
	return warm + n, err
}

// fetch reads everything: once to look at every batch, and then to be measured.
func (x *session) fetch(m *moving, f *rig.Fetcher) error {
	f.Verify = true
	if err := f.Pass(); err != nil {
		return err
	}
	f.Verify, f.Read = false, 0
	return x.move(m, func() (int64, error) {
		for range contestPasses {
			if err := f.Pass(); err != nil {
				return 0, err
			}
		}
		return f.Read, nil
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
	x.note(m.speed, bytes/1e6/s.Wall.Seconds())
	x.note(m.cpu, s.CPU.Seconds()/(bytes/1e9))
	return nil
}

// cost runs fn and returns what it took. What muster does in the background after
// its last answer counts, what Kafka does so does not.
func (x *session) cost(profile string, fn func() error) (rig.Spent, error) {
	before, err := x.p.CPU()
	if err != nil {
		return rig.Spent{}, err
	}
	var s rig.Spent
	began := time.Now()
	err = x.Profile(x.p, profile, func() error {
		err := fn()
		s.Wall = time.Since(began)
		return err
	})
	if err != nil {
		return s, err
	}
	after, err := x.p.CPU()
	if x.side == rig.Ours {
		after, err = x.Settle(x.p)
	}
	s.CPU = after.Sub(before).Total()
	return s, err
}

// flush puts what was written on disk, so that this is no burden on what is
// measured next.
func (x *session) flush() error { return x.eachSegment(rig.Datasync) }

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
