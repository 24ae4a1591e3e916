package contest

import (
	"fmt"
	"net"
	"slices"
	"time"

	"muster/bench/rig"
)

const behindName = "wild far behind"

// Consumers that are far behind read what the page cache has not. Each of them reads a
// topic of its own, to which a producer appends meanwhile.
const (
	behindConsumers  = 4
	behindPartitions = 3
)

// behindSize is how many GB consumers can be behind: the disk must have three times as
// much free.
func (x *session) behindSize() (float64, error) {
	free, err := rig.FreeSpace(x.Folder)
	if err != nil {
		return 0, err
	}
	want := x.o.wild.behind
	if most := float64(free) / 1e9 / 3; most < want {
		x.leaveOut("consumers were %s GB behind instead of %s, for lack of space", rig.Number(most), rig.Number(want))
		want = most
	}
	return want, nil
}

func (x *session) farBehind() error {
	gb, err := x.behindSize()
	if err != nil {
		return err
	}
	fetchers, producers, err := x.fillBehind(gb)
	if err != nil {
		return err
	}
	defer func() {
		rig.CloseAll(producers.conns)
		for _, f := range fetchers {
			f.Conn.Close()
		}
	}()
	if err := x.flush(); err != nil {
		return err
	}
	// What is read shall come from the disk.
	if err := x.eachSegment(rig.Forget); err != nil {
		return err
	}
	var sent, read int64
	var readFor time.Duration
	s, err := x.cost(behindName, func() error {
		deadline := time.Now().Add(x.o.wild.catchUp)
		done := make(chan error, 1)
		go func() {
			n, err := producers.run(x.o.wild.catchUp)
			sent = n
			done <- err
		}()
		began := time.Now()
		err := catchUp(fetchers, deadline)
		readFor = time.Since(began)
		if other := <-done; err == nil {
			err = other
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range fetchers {
		read += f.Read
	}
	x.noteBehind(gb, s, sent, read, readFor)
	return nil
}

func (x *session) noteBehind(gb float64, s rig.Spent, sent, read int64, readFor time.Duration) {
	metric := func(name, unit string, more bool) pairMetric {
		return pairMetric{group: behindName, name: name, unit: unit, rule: fromCache, more: more}
	}
	x.Say("consumers have read %s of %s GB, producers have sent %s", rig.Number(float64(read)/1e9), rig.Number(gb), rig.Number(float64(sent)/1e9))
	x.note(metric(fmt.Sprintf("consumers, %g GB behind", gb), "MB/s", true), float64(read)/1e6/readFor.Seconds())
	x.note(metric("producers meanwhile", "MB/s", true), float64(sent)/1e6/s.Wall.Seconds())
	x.note(metric("processor time, for both", "CPU-s/GB", false), s.CPU.Seconds()/(float64(read+sent)/1e9))
}

// behindProducers append to the topics, with a connection for each.
type behindProducers struct {
	loads []*rig.Load
	conns []net.Conn
}

func (p *behindProducers) run(d time.Duration) (int64, error) {
	sent := make([]int64, len(p.loads))
	err := rig.Together(p.conns, func(i int, c net.Conn) error {
		n, err := p.loads[i].PumpFor([]net.Conn{c}, d)
		sent[i] = int64(n * p.loads[i].Bytes())
		return err
	})
	var sum int64
	for _, n := range sent {
		sum += n
	}
	return sum, err
}

// fillBehind produces what consumers are behind.
func (x *session) fillBehind(gb float64) ([]*rig.Fetcher, *behindProducers, error) {
	p := &behindProducers{}
	var err error
	if p.conns, err = x.Connect(x.p, behindConsumers); err != nil {
		return nil, nil, err
	}
	conns, err := x.Connect(x.p, behindConsumers)
	if err != nil {
		return nil, nil, err
	}
	var fetchers []*rig.Fetcher
	for i, c := range conns {
		topic := fmt.Sprintf("wild-behind-%d", i)
		if err := x.NewTopic(c, topic, behindPartitions); err != nil {
			return nil, nil, err
		}
		l := rig.Shape{Partitions: behindPartitions, Record: rig.RecordSize, Records: rig.BatchRecords}.Load(topic, -1)
		n := max(1, int(gb*1e9)/l.Bytes()/behindConsumers)
		f := rig.NewFetcher(c, topic, l, int64(n*rig.BatchRecords))
		f.Grows, f.Offsets = true, make([]int64, behindPartitions)
		fetchers, p.loads = append(fetchers, f), append(p.loads, l)
	}
	return fetchers, p, rig.Together(p.conns, func(i int, c net.Conn) error {
		l := p.loads[i]
		return l.PumpOne(c, int(fetchers[i].End)/rig.BatchRecords, true, rig.Produced(l.Shape))
	})
}

// catchUp reads until everything that was there is read, or until the deadline.
func catchUp(fetchers []*rig.Fetcher, deadline time.Time) error {
	var conns []net.Conn
	for _, f := range fetchers {
		conns = append(conns, f.Conn)
	}
	return rig.Together(conns, func(i int, _ net.Conn) error {
		f := fetchers[i]
		for slices.Min(f.Offsets) < f.End && time.Now().Before(deadline) {
			if err := f.Fetch(); err != nil {
				return fmt.Errorf("fetch: %w", err)
			}
		}
		return nil
	})
}
