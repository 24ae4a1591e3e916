package exact

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"muster/internal/sim/seeds"
	"muster/internal/store"
)

// A server that stops comes back without the last that it acknowledged: an older state of
// all its logs, of one moment. One server has all logs, as a single Redis does, or each of
// several has some, as in a cluster. Brokers and clients remember what it has forgotten.

// tailPlan says how servers lose what they wrote last.
type tailPlan struct {
	servers int
	every   time.Duration // a server loses something; 0 for never
	most    int           // batches that are lost at once
}

// loseTails makes a plan one in which servers do. What cannot be done again is left out:
// logs that are compacted, trimmed or deleted.
func (p *plan) loseTails(r *rand.Rand) {
	p.pipelined = true
	p.tails = tailPlan{servers: 1, every: seeds.Uniform(r, 4*time.Second, 20*time.Second), most: []int{4, 15, 60, 200}[r.IntN(4)]}
	if r.IntN(3) == 0 {
		p.tails.servers = 3
	}
	f := &p.faults
	f.loss, f.compact, f.remove, f.trim = 0, 0, 0, 0
	p.retention, p.expiry = 0, expiryPlan{}
	for i := range p.copiers {
		p.copiers[i].deserts = false
	}
	for i := range p.team.workers {
		p.team.workers[i].deserts = false
	}
}

// SimulateTails is a run in which servers come back without the last that they had.
func SimulateTails(base *seeds.World) { run(base, true, nil) }

// opening is that a log was opened, which its server forgets as it does appends.
type opening struct {
	seq   int
	epoch int32
	start int // of the server
	run   store.Run
}

func (s *simStore) serverOf(tp store.TopicPartition) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, tp.Topic, tp.Partition)
	return int(h.Sum32() % uint32(len(s.runs)))
}

func (s *simStore) isAway(l *simLog) bool { return s.w.Now < s.away[l.server] && !s.w.Calm }

// look is what a server notes of a log that is opened.
func (l *simLog) look(epoch int32, cfg store.LogConfig) store.Run {
	s := l.w.store
	start, end := s.runs[l.server], l.end()
	var was opening // What a log begins with was written in the first start, by whoever had it open then.
	if n := len(l.opened); n > 0 {
		was = l.opened[n-1]
	}
	run := was.run
	if was.start != start {
		run.Began = end
	}
	if cfg.Shown > end || was.start != start && cfg.Shown == 0 || cfg.Lost > was.run.Lost {
		run.Lost = end
	}
	if len(s.runs) == 1 {
		run.ID = strconv.Itoa(start)
	}
	s.seq++
	l.opened = append(l.opened, opening{s.seq, epoch, start, run})
	return run
}

// startFor is the start of the server under which a broker has a log open.
func (s *simStore) startFor(b *broker, tp store.TopicPartition) int {
	if h := b.handles[tp]; h != nil {
		return h.start
	}
	return -1
}

// stale says whether a broker has a log open that its server has closed.
func (s *simStore) stale(b *broker, tp store.TopicPartition) bool {
	start := s.startFor(b, tp)
	return start >= 0 && start != s.runs[s.log(tp).server]
}

// Failed implements store.Restarting: the connection is gone, and what was sent on it.
func (h *pipe) Failed() bool { return h.start != h.log.w.store.runs[h.log.server] }

// Run implements store.Restarting.
func (h *pipe) Run() store.Run { return h.run }

var _ store.Restarting = (*pipe)(nil)

// loseTail has a server stop, and come back with an older state.
func (w *world) loseTail() {
	s := w.store
	server := w.Rand.IntN(len(s.runs))
	keep := s.seq
	if w.Rand.IntN(5) > 0 {
		keep -= w.Rand.IntN(min(w.plan.tails.most, s.seq))
	}
	w.Tracef("server %d stops, and loses what is after %d of %d", server, keep, s.seq)
	w.Count("server lost its tail")
	w.void = true
	s.runs[server]++
	s.away[server] = w.Now + w.Between(0, 2*time.Second)
	for _, tp := range w.partitions() {
		if l := s.log(tp); l.server == server {
			l.lose(keep)
		}
	}
	w.model.again()
	for _, r := range w.readers {
		if s.log(r.tp).server == server {
			r.life++
			r.offset, r.got = 0, nil
		}
	}
	for _, b := range w.brokers {
		life := b.life
		w.At(s.away[server]+w.Between(0, 1500*time.Millisecond), func() { b.do(life, b.verify) })
	}
}

// lose takes away what was written after a moment.
func (l *simLog) lose(keep int) {
	l.opened = slices.DeleteFunc(l.opened, func(o opening) bool { return o.seq > keep })
	l.epoch = -1
	if n := len(l.opened); n > 0 {
		l.epoch = l.opened[n-1].epoch
	}
	n := len(l.raw)
	for n > 0 && l.raw[n-1].seq > keep {
		n--
	}
	if n < len(l.raw) {
		l.w.Count("tail of " + l.tp.Topic + " lost")
		l.cut(n)
	}
	l.w.model.part(l.tp).stable = 0
}

// producersAgain has a log know its producers as it did when it ended where it does.
func (l *simLog) producersAgain() {
	if !l.w.plan.pipelined {
		return
	}
	ctx := context.Background()
	h, err := l.st.Open(ctx, l.tp, max(l.epoch, 0), store.LogConfig{})
	l.producers = store.NewProducerMap(nil)
	for _, e := range l.raw {
		var aborted *store.Aborted
		if err == nil {
			aborted, err = l.producers.Note(e.batch, e.batch.MaxTimestamp())
		}
		if err == nil && aborted != nil {
			err = h.NoteAborted(ctx, []store.Aborted{*aborted})
		}
	}
	if err == nil {
		err = h.SaveProducers(ctx, l.producers.List(), l.end())
	}
	if err != nil {
		panic(fmt.Sprintf("producers cannot be known again: %v", err))
	}
}

// again reads the logs of coordinators from their starts.
func (m *model) again() {
	for _, s := range m.ids {
		s.value = nil
	}
	m.groups = newOffsets(m.w)
	for _, tp := range m.w.partitions() {
		for _, e := range m.w.store.log(tp).raw {
			m.durable(m.w.store.log(tp), e)
		}
	}
}

// raise is a partition that wants a higher leader epoch.
type raise struct {
	tp   store.TopicPartition
	from int32
}

// raise notes what the manager wants.
func (b *broker) raise(_ context.Context, topic string, partition, from, _ int32) error {
	b.raises = append(b.raises, raise{store.TopicPartition{Topic: topic, Partition: partition}, from})
	return nil
}

// verify opens all logs again, to see what they have lost, as brokers do when a server is
// back, and has those led under higher epochs that have.
func (b *broker) verify() {
	w := b.w
	for _, tp := range w.partitions() {
		if p := b.manager.Get(tp.Topic, tp.Partition); p != nil {
			w.store.atOnce = true
			err := p.Reopen(context.Background())
			w.store.atOnce = false
			if err != nil {
				w.Tracef("broker %d: %v cannot be opened again: %v", b.id, tp, err)
			}
		}
	}
	for _, tp := range w.partitions() {
		if s := b.shards[tp]; s != nil && s.isStale() {
			w.Count("shard loaded again after a restart")
			s.Pump.Reload()
			s.Drain()
		}
	}
	b.raiseEpochs()
}

// isStale says whether a shard was loaded before its server was started.
func (s *shard) isStale() bool { return s.start != s.b.w.store.runs[s.b.w.store.log(s.tp).server] }

// raiseEpochs does what the manager wants done, from time to time.
func (b *broker) raiseEpochs() {
	w := b.w
	b.raises = nil
	b.manager.RaiseEpochs(context.Background())
	leaders := map[store.TopicPartition]int32{}
	for _, r := range b.raises {
		if t := w.image().Topic(r.tp.Topic); t != nil && t.Partitions[r.tp.Partition].Leader == b.id && t.Partitions[r.tp.Partition].LeaderEpoch == r.from {
			w.Count("leader epoch raised after a loss")
			leaders[r.tp] = b.id
		}
	}
	w.elect(leaders)
}

// raiseLater has brokers open what has failed, and raise epochs, from time to time.
func (w *world) raiseLater(b *broker) {
	w.After(w.Between(100*time.Millisecond, 500*time.Millisecond), func() {
		if b.up && !w.over {
			b.do(b.life, func() {
				w.store.atOnce = true
				b.manager.Mend(context.Background())
				w.store.atOnce = false
				b.raiseEpochs()
			})
		}
		w.raiseLater(b)
	})
}

// startAgain starts all copiers again: one that has nothing left to copy is never told that
// what it copied last is lost.
func (w *world) startAgain() {
	for _, c := range w.copiers {
		c.last().dead = true
		c.start()
	}
}

// checkTails: whoever reads what is committed finds each transaction whole or not at all,
// and those of a copier in the order in which it made them. Where one server has all logs,
// the offsets that are part of a transaction are there if its records are, so that nothing
// was copied twice.
func (w *world) checkTails() {
	found := map[int]map[string]bool{}
	copies := map[string]int{}
	for _, r := range w.readers {
		if !r.committed || r.tp.Topic != outputTopic {
			continue
		}
		last := map[*copier]int{}
		for _, s := range r.got {
			n, err := strconv.Atoi(s.value)
			if err != nil {
				continue
			}
			a := w.attempts[n]
			if !a.c.team && n < last[a.c] {
				w.Violated("%v: transaction %d of %s is behind %d", r.tp, n, a.c.id, last[a.c])
			}
			last[a.c] = n
			if found[n] == nil {
				found[n] = map[string]bool{}
			}
			found[n][s.key] = true
			copies[s.key]++
		}
	}
	if w.plan.tails.servers > 1 {
		return
	}
	for _, a := range w.attempts {
		if got := len(found[a.number]); got != 0 && got != len(a.keys) {
			w.Violated("transaction %d of %s has %d of %d records in the output", a.number, a.c.id, got, len(a.keys))
		}
		if a.committed && len(found[a.number]) == 0 {
			w.Count("committed transaction lost as a whole")
		}
	}
	for i, n := range w.inputs {
		for j := range n {
			key := strconv.Itoa(i) + "/" + strconv.FormatInt(j, 10)
			if copies[key] > 1 || copies[key] == 0 && i < len(w.plan.copiers) {
				w.Violated("input %s was copied %d times", key, copies[key])
			}
		}
	}
}
