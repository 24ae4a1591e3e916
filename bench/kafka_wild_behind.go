package main

import (
	"fmt"
	"net"
	"slices"
	"time"
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
	free, err := freeSpace(x.folder)
	if err != nil {
		return 0, err
	}
	want := x.o.wild.behind
	if most := float64(free) / 1e9 / 3; most < want {
		x.leaveOut("consumers were %s GB behind instead of %s, for lack of space", number(most), number(want))
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
		closeAll(producers.conns)
		for _, f := range fetchers {
			f.conn.Close()
		}
	}()
	if err := x.flush(); err != nil {
		return err
	}
	// What is read shall come from the disk.
	if err := x.eachSegment(forget); err != nil {
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
		read += f.read
	}
	x.noteBehind(gb, s, sent, read, readFor)
	return nil
}

func (x *session) noteBehind(gb float64, s spent, sent, read int64, readFor time.Duration) {
	metric := func(name, unit string, more bool) pairMetric {
		return pairMetric{group: behindName, name: name, unit: unit, rule: fromCache, more: more}
	}
	x.say("consumers have read %s of %s GB, producers have sent %s", number(float64(read)/1e9), number(gb), number(float64(sent)/1e9))
	x.note(metric(fmt.Sprintf("consumers, %g GB behind", gb), "MB/s", true), float64(read)/1e6/readFor.Seconds())
	x.note(metric("producers meanwhile", "MB/s", true), float64(sent)/1e6/s.wall.Seconds())
	x.note(metric("processor time, for both", "CPU-s/GB", false), s.cpu.Seconds()/(float64(read+sent)/1e9))
}

// behindProducers append to the topics, with a connection for each.
type behindProducers struct {
	loads []*load
	conns []net.Conn
}

func (p *behindProducers) run(d time.Duration) (int64, error) {
	sent := make([]int64, len(p.loads))
	err := together(p.conns, func(i int, c net.Conn) error {
		n, err := p.loads[i].pumpFor([]net.Conn{c}, d)
		sent[i] = int64(n * p.loads[i].bytes())
		return err
	})
	var sum int64
	for _, n := range sent {
		sum += n
	}
	return sum, err
}

// fillBehind produces what consumers are behind.
func (x *session) fillBehind(gb float64) ([]*fetcher, *behindProducers, error) {
	p := &behindProducers{}
	var err error
	if p.conns, err = x.connect(x.p, behindConsumers); err != nil {
		return nil, nil, err
	}
	conns, err := x.connect(x.p, behindConsumers)
	if err != nil {
		return nil, nil, err
	}
	var fetchers []*fetcher
	for i, c := range conns {
		topic := fmt.Sprintf("wild-behind-%d", i)
		if err := x.newTopic(c, topic, behindPartitions); err != nil {
			return nil, nil, err
		}
		l := shape{behindPartitions, recordSize, batchRecords}.load(topic, -1)
		n := max(1, int(gb*1e9)/l.bytes()/behindConsumers)
		f := newFetcher(c, topic, l, int64(n*batchRecords))
		f.grows, f.offsets = true, make([]int64, behindPartitions)
		fetchers, p.loads = append(fetchers, f), append(p.loads, l)
	}
	return fetchers, p, together(p.conns, func(i int, c net.Conn) error {
		l := p.loads[i]
		return l.pumpOne(c, int(fetchers[i].end)/batchRecords, true, produced(l.shape))
	})
}

// catchUp reads until everything that was there is read, or until the deadline.
func catchUp(fetchers []*fetcher, deadline time.Time) error {
	var conns []net.Conn
	for _, f := range fetchers {
		conns = append(conns, f.conn)
	}
	return together(conns, func(i int, _ net.Conn) error {
		f := fetchers[i]
		for slices.Min(f.offsets) < f.end && time.Now().Before(deadline) {
			if err := f.fetch(); err != nil {
				return fmt.Errorf("fetch: %w", err)
			}
		}
		return nil
	})
}
