package contest

import (
	"fmt"
	"net"
	"time"

	"muster/bench/rig"
)

// ticker sends small records with acks=all when they are due, to partitions in turn
// over a connection for each, and never waits for an answer before the next. The time
// of a record counts from when it was due until the answer is there.
type ticker struct {
	every  time.Duration
	frames [][]byte
	conns  []net.Conn
}

// newTicker creates the topic.
func (x *session) newTicker(topic string, partitions int, every time.Duration) (*ticker, error) {
	if err := x.withConn(func(c net.Conn) error { return x.NewTopic(c, topic, partitions) }); err != nil {
		return nil, err
	}
	conns, err := x.Peers(x.p, partitions)
	return &ticker{every: every, frames: smallFrames(topic, partitions), conns: conns}, err
}

func (t *ticker) close() { rig.CloseAll(t.conns) }

// tailPercentiles are what is noted of latencies.
var tailPercentiles = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}}

// patience is how long answers may take longer than the load lasts.
const patience = time.Minute

// run sends for a while and returns how long each record took.
func (t *ticker) run(d time.Duration) ([]time.Duration, error) {
	n := max(1, int(d/t.every))
	took := make([]time.Duration, n)
	start := time.Now()
	receive := func(i int, c net.Conn) error {
		return acknowledged(c, share(n, i, len(t.conns)), func(k int) {
			number := k*len(t.conns) + i
			took[number] = time.Since(start) - time.Duration(number)*t.every
		})
	}
	err := rig.Together(t.conns, func(i int, c net.Conn) error {
		if err := c.SetDeadline(start.Add(d + patience)); err != nil {
			return err
		}
		if i > 0 {
			return receive(i, c)
		}
		// The first connection stands for the sender of all.
		answers := make(chan error, 1)
		go func() { answers <- receive(i, c) }()
		if err := t.send(n, start); err != nil {
			return err
		}
		return <-answers
	})
	return took, err
}

func (t *ticker) send(n int, start time.Time) error {
	_, err := pace(n, t.every, start, func(i int, _ time.Duration) error {
		at := i % len(t.conns)
		rig.SetCorrelation(t.frames[at], int32(i/len(t.conns)))
		_, err := t.conns[at].Write(t.frames[at])
		return err
	})
	return err
}

// besideWide measures a small produce to one partition, first quiet and then while
// many other partitions are written.
func (x *session) besideWide() error {
	t, err := x.newTicker("wild-tick", 1, 2*time.Millisecond)
	if err != nil {
		return err
	}
	defer t.close()
	if _, err := t.run(x.o.warm / 2); err != nil {
		return err
	}
	measure := func(what string) error {
		took, err := t.run(x.o.wild.tail)
		if err != nil {
			return err
		}
		for _, p := range tailPercentiles {
			m := pairMetric{group: shippedTail, name: "produce to 1 partition, " + what + ", " + p.name, unit: "ms", rule: byDefault}
			x.note(m, rig.Millis(percentile(took, p.share)))
		}
		return nil
	}
	if err := measure("quiet"); err != nil {
		return err
	}
	w, err := x.newWideWork("wild-beside")
	if err != nil {
		return err
	}
	defer w.conn.Close()
	began := time.Now()
	if err := x.beside(w.run, func() error { return measure(fmt.Sprintf("while %d others are written", x.o.wild.partitions)) }); err != nil {
		return err
	}
	rate := float64(w.appended) / time.Since(began).Seconds()
	x.note(pairMetric{group: shippedTail, name: "records to the others meanwhile, 2,000 wanted", unit: "1/s", rule: byDefault, more: true}, rate)
	return nil
}

// wideWork writes to many partitions at a moderate rate: every 10 ms a record to
// each of the next 20. It waits for each answer, and if that is late sends fewer.
type wideWork struct {
	conn     net.Conn
	loads    []*rig.Load
	appended int
}

const (
	wideEvery = 10 * time.Millisecond
	wideStep  = 20
)

func (x *session) newWideWork(topic string) (*wideWork, error) {
	w := &wideWork{}
	n := x.o.wild.partitions
	if err := x.withConn(func(c net.Conn) error { return x.NewTopic(c, topic, n) }); err != nil {
		return nil, err
	}
	for first := 0; first < n; first += wideStep {
		var some []int32
		for i := first; i < min(first+wideStep, n); i++ {
			some = append(some, int32(i))
		}
		w.loads = append(w.loads, rig.Shape{Partitions: 0, Record: smallRecord, Records: 1}.LoadFor(topic, -1, some))
	}
	var err error
	w.conn, err = x.p.Dial(x.Context)
	return w, err
}

func (w *wideWork) run(stop <-chan struct{}) error {
	tick := time.NewTicker(wideEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
		l := w.loads[i%len(w.loads)]
		if err := l.Pump([]net.Conn{w.conn}, 1, true, rig.Produced(l.Shape)); err != nil {
			return err
		}
		w.appended += l.Partitions
	}
}
