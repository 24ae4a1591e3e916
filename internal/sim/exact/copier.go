package exact

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/record"
)

// attempt is one transaction as the client that makes it sees it.
type attempt struct {
	number    int
	c         *copier
	spans     []span
	place     place // of its client in the team
	aside     bool  // it writes to the side topic too
	keys      []string
	asked     bool // the client has asked for it to be committed
	committed bool // and was told that it is
	aborted   bool // it was told that it was aborted
}

// span is what a transaction copies of an input partition.
type span struct {
	partition int32
	from, to  int64
}

// span is what an attempt copies of an input partition, nil if nothing.
func (a *attempt) span(partition int32) *span {
	for i := range a.spans {
		if a.spans[i].partition == partition {
			return &a.spans[i]
		}
	}
	return nil
}

// copier copies input to the output, in transactions that hold its offsets too.
// One that is not in the team has an input partition for itself. Its instances
// share a transactional id: a new one fences the old.
type copier struct {
	w     *world
	n     int
	id    string
	group string
	team  bool // it shares input with others
	plan  copierPlan
	runs  []*instance
	gone  bool // it never comes back
}

func (w *world) addClients() {
	w.inputs = make([]int64, len(w.image().Topic(inputTopic).Partitions))
	for i, p := range w.plan.copiers {
		w.addCopier(&copier{w: w, n: i, id: fmt.Sprintf("copier-%d", i), group: fmt.Sprintf("group-%d", i), plan: p})
	}
	for i, p := range w.plan.team.workers {
		w.addCopier(&copier{w: w, n: i, id: fmt.Sprintf("worker-%d", i), group: teamGroup, team: true, plan: p})
	}
	for _, tp := range w.partitions() {
		for _, committed := range []bool{true, false} {
			if tp.Topic == outputTopic || tp.Topic == sideTopic {
				r := &reader{w: w, tp: tp, committed: committed}
				w.readers = append(w.readers, r)
				r.read()
			}
		}
	}
	w.Every(w.plan.input, func() {
		for i := range w.inputs {
			if !w.deserted(i) {
				w.inputs[i]++
			}
		}
	})
	w.Every(2*time.Second, w.noise)
	w.Every(2*time.Second, w.commit)
	w.Every(2*time.Second, func() { w.look(w.Rand.IntN(2) == 0, func(bool) {}) })
}

func (w *world) addCopier(c *copier) {
	w.copiers = append(w.copiers, c)
	c.start()
	w.Every(w.plan.faults.client, c.disturb)
	if c.plan.deserts {
		w.After(w.Between(0, w.plan.chaos), c.desert)
	}
	w.After(time.Second, c.watch)
}

// deserted says whether no one will copy the rest of an input partition.
func (w *world) deserted(partition int) bool {
	return partition < len(w.plan.copiers) && w.copiers[partition].gone
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
		tv2 = c.w.Rand.IntN(2) == 0
	}
	x := &instance{w: c.w, c: c, id: c.id, name: fmt.Sprintf("%s/%d", c.id, len(c.runs)), tv2: tv2}
	if c.plan.fresh {
		x.id = fmt.Sprintf("%s-%d", c.id, len(c.runs))
	}
	if !slices.Contains(c.w.txnIDs, x.id) {
		c.w.txnIDs = append(c.w.txnIDs, x.id)
	}
	if c.team {
		c.enlist(x)
	} else {
		x.parts = []int32{int32(c.n)}
	}
	c.runs = append(c.runs, x)
	c.w.Tracef("%s: starts, TV2 %v", x.name, tv2)
	c.w.Count("client started")
	x.init()
}

// disturb has an instance die, be replaced while it goes on, or pause.
func (c *copier) disturb() {
	w, x := c.w, c.last()
	if c.gone {
		return
	}
	switch w.Rand.IntN(3) {
	case 0:
		w.Tracef("%s: dies", x.name)
		w.Count("client killed")
		x.dead = true
		w.After(w.Between(0, 5*time.Second), func() {
			if c.last() == x && !c.gone {
				c.start()
			}
		})
	case 1:
		if !x.dead {
			w.Count("zombie made")
		}
		c.start()
	case 2:
		w.Tracef("%s: pauses", x.name)
		w.Count("client paused")
		x.pausedUntil = w.Now + w.Between(100*time.Millisecond, c.plan.timeout+8*time.Second)
		if d := w.plan.expiry.producers; d > 0 && w.Rand.IntN(3) == 0 {
			x.pausedUntil = w.Now + w.Between(d, d+8*time.Second)
		}
		if c.team && w.Rand.IntN(2) == 0 { // Just so long that others take over.
			x.pausedUntil = w.Now + w.Between(w.plan.team.session, w.plan.team.session+2*time.Second)
		}
	}
}

// desert is the end of a copier that never comes back. What it has begun times out.
func (c *copier) desert() {
	c.w.Tracef("%s: is gone for good", c.id)
	c.w.Count("client gone for good")
	c.gone = true
	for _, x := range c.runs {
		if !x.dead && x.busy {
			c.w.Count("client gone in a transaction")
		}
		x.dead = true
	}
}

// watch starts an instance where the last has ended.
func (c *copier) watch() {
	if c.w.over {
		return
	}
	if c.last().dead && !c.gone {
		c.start()
	}
	c.w.After(c.w.Between(time.Second, 4*time.Second), c.watch)
}

// busy says whether an instance has a transaction.
func (c *copier) busy() bool {
	return slices.ContainsFunc(c.runs, func(x *instance) bool { return x.busy && !x.dead })
}

// inputKey is what the offset of an input partition is committed for.
func (w *world) inputKey(partition int) offsetKey {
	if partition < len(w.plan.copiers) {
		return offsetKey{w.copiers[partition].group, inputTopic, int32(partition)}
	}
	return offsetKey{teamGroup, inputTopic, int32(partition)}
}

// noise appends a record that belongs to no transaction.
func (w *world) noise() {
	b, err := record.Build(record.PlainTemplate(), []record.Record{{Key: []byte("noise"), Value: []byte("noise"), Timestamp: w.Clock().UnixMilli()}})
	if err != nil {
		panic(err)
	}
	tp := outputAt(w.Rand.Int32N(w.plan.outputs))
	w.send(message{from: "noise", to: leaderOf(w.someImage(), tp), body: produce{tp: tp, batch: b, how: plainProduce}, timeout: time.Second}, func(any) {})
}

// commit commits an offset without a transaction.
func (w *world) commit() {
	c := w.copiers[w.Rand.IntN(len(w.copiers))]
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 1_000_000 + w.Rand.Int64N(1_000_000)
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.Partitions = outputTopic, []kmsg.OffsetCommitRequestTopicPartition{p}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation, req.Topics = 8, c.group, -1, []kmsg.OffsetCommitRequestTopic{t}
	w.send(message{from: "commit", to: w.coordinator(w.someImage(), offsetsTopic, c.group), body: req, timeout: time.Second}, func(any) {})
}

// look looks at the offsets of a group; the model checks what it is told.
func (w *world) look(stable bool, done func(ok bool)) {
	k := w.inputKey(w.Rand.IntN(len(w.inputs)))
	req := offsetsRequest(k, stable)
	w.send(message{from: "look", to: w.coordinator(w.someImage(), offsetsTopic, k.group), body: req, timeout: time.Second}, func(answer any) { done(answer != nil) })
}

// offsetsRequest asks for the offsets of a group: of an input partition, of the output
// and of the side topic.
func offsetsRequest(k offsetKey, stable bool) *kmsg.OffsetFetchRequest {
	in, out := kmsg.NewOffsetFetchRequestGroupTopic(), kmsg.NewOffsetFetchRequestGroupTopic()
	in.Topic, in.Partitions = inputTopic, []int32{k.partition}
	out.Topic, out.Partitions = outputTopic, []int32{0}
	side := kmsg.NewOffsetFetchRequestGroupTopic()
	side.Topic, side.Partitions = sideTopic, []int32{0}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = k.group, []kmsg.OffsetFetchRequestGroupTopic{in, out, side}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable, req.Groups = 8, stable, []kmsg.OffsetFetchRequestGroup{g}
	return req
}
