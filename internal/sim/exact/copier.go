package exact

import (
	"fmt"
	"time"

	"muster/internal/record"
)

// attempt is one transaction as the client that makes it sees it.
type attempt struct {
	number    int
	c         *copier
	from, to  int64 // of the input
	keys      []string
	asked     bool // the client has asked for it to be committed
	committed bool // and was told that it is
	aborted   bool // it was told that it was aborted
}

// copier copies an input partition to the output, in transactions that hold its
// offsets too. Its instances share a transactional id: a new one fences the old.
type copier struct {
	w     *world
	n     int
	id    string
	group string
	plan  copierPlan
	runs  []*instance
}

func (w *world) addClients() {
	for i, p := range w.plan.copiers {
		c := &copier{w: w, n: i, id: fmt.Sprintf("copier-%d", i), group: fmt.Sprintf("group-%d", i), plan: p}
		w.copiers = append(w.copiers, c)
		w.inputs = append(w.inputs, 0)
		c.start()
		w.every(w.plan.faults.client, c.disturb)
		w.after(time.Second, c.watch)
	}
	for i := range w.plan.outputs {
		for _, committed := range []bool{true, false} {
			r := &reader{w: w, partition: i, committed: committed}
			w.readers = append(w.readers, r)
			r.read()
		}
	}
	w.every(w.plan.input, func() {
		for i := range w.inputs {
			w.inputs[i]++
		}
	})
	w.every(2*time.Second, w.noise)
}

// last is the newest instance, nil if there was none.
func (c *copier) last() *instance {
	if len(c.runs) == 0 {
		return nil
	}
	return c.runs[len(c.runs)-1]
}

// start starts an instance. Others may go on, not knowing.
func (c *copier) start() {
	tv2 := c.plan.tv2
	if c.plan.switches {
		tv2 = c.w.rand.IntN(2) == 0
	}
	x := &instance{w: c.w, c: c, name: fmt.Sprintf("%s/%d", c.id, len(c.runs)), tv2: tv2}
	c.runs = append(c.runs, x)
	c.w.tracef("%s: starts, TV2 %v", x.name, tv2)
	c.w.count("client started")
	x.init()
}

// disturb has an instance die, be replaced while it goes on, or pause.
func (c *copier) disturb() {
	w, x := c.w, c.last()
	switch w.rand.IntN(3) {
	case 0:
		w.tracef("%s: dies", x.name)
		w.count("client killed")
		x.dead = true
		w.after(w.between(0, 5*time.Second), func() {
			if c.last() == x {
				c.start()
			}
		})
	case 1:
		if !x.dead {
			w.count("zombie made")
		}
		c.start()
	case 2:
		w.tracef("%s: pauses", x.name)
		w.count("client paused")
		x.pausedUntil = w.now + w.between(100*time.Millisecond, c.plan.timeout+8*time.Second)
	}
}

// watch starts an instance where the last has ended.
func (c *copier) watch() {
	if c.w.over {
		return
	}
	if c.last().dead {
		c.start()
	}
	c.w.after(c.w.between(time.Second, 4*time.Second), c.watch)
}

// done says whether all input is copied.
func (c *copier) done() bool {
	return c.w.model.groups.current(offsetKey{c.group, inputTopic, int32(c.n)}) >= c.w.inputs[c.n] && !c.last().busy
}

// noise appends a record that belongs to no transaction.
func (w *world) noise() {
	b, err := record.Build(record.PlainTemplate(), []record.Record{{Key: []byte("noise"), Value: []byte("noise"), Timestamp: w.clock().UnixMilli()}})
	if err != nil {
		panic(err)
	}
	tp := outputAt(w.rand.Int32N(w.plan.outputs))
	w.send(message{from: "noise", to: leaderOf(w.someImage(), tp), body: produce{tp: tp, batch: b, how: plainProduce}, timeout: time.Second}, func(any) {})
}
