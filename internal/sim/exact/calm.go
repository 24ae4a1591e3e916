package exact

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"muster/internal/partition"
	"muster/internal/sim/seeds"
	"muster/internal/store"
)

// patience is how long the calm phase may take: transactions of before time out,
// and messages of before arrive.
const patience = 3 * time.Minute

// settle is the second phase. Nothing goes wrong any more, and all must end: each
// input is copied once, no transaction is open, and nothing is unstable.
func (w *world) settle() {
	w.Tracef("calm from now on")
	w.Calm = true
	w.createSide()
	for _, b := range w.brokers {
		b.restart()
	}
	if w.plan.tails.every > 0 {
		w.startAgain()
	}
	w.Settle(patience, func() string {
		w.checkTimeouts()
		return w.unsettled()
	})
	w.finish()
}

// settling is how long brokers may take until all that happened before is over.
const settling = 25 * time.Second

// checkTimeouts: every transaction that takes too long is aborted by the next sweep.
func (w *world) checkTimeouts() {
	for _, id := range w.txnIDs {
		v := w.model.id(id).value
		if w.void || v == nil || v.State != stateOngoing || w.Now < w.plan.chaos+settling {
			continue
		}
		until := time.UnixMilli(v.StartTimestamp).Add(time.Duration(v.TimeoutMillis)*time.Millisecond + w.plan.sweep + time.Second + 2*maxSkew)
		if w.Clock().After(until) {
			w.Violated("%s: %v should have been aborted at %s", id, w.model.id(id).cur, until.Sub(seeds.Start))
		}
	}
}

// unsettled says what is not yet as it should be, nothing if all is.
func (w *world) unsettled() string {
	for i, n := range w.inputs {
		if got := w.model.groups.current(w.inputKey(i)); got < n && !w.deserted(i) {
			return fmt.Sprintf("input %d is copied up to %d of %d", i, got, n)
		}
	}
	for _, c := range w.copiers {
		if c.busy() {
			return fmt.Sprintf("%s has a transaction", c.id)
		}
	}
	for _, id := range w.txnIDs {
		if v := w.model.id(id).value; !resting(v) {
			return fmt.Sprintf("%s is %s", id, stateNames[v.State])
		}
	}
	for _, tp := range w.partitions() {
		if why := w.unstable(tp); why != "" {
			return why
		}
	}
	for _, r := range w.readers {
		if end := w.store.log(r.tp).end(); r.offset < end {
			return fmt.Sprintf("a reader, committed %v, of %v is at %d of %d", r.committed, r.tp, r.offset, end)
		}
	}
	return ""
}

// unstable says what is open in a partition.
func (w *world) unstable(tp store.TopicPartition) string {
	for _, o := range w.model.part(tp).open {
		return fmt.Sprintf("%v: %v is open", tp, o.t)
	}
	b := w.brokers[leaderOf(w.image(), tp)]
	p := b.manager.Get(tp.Topic, tp.Partition)
	if p == nil {
		return fmt.Sprintf("%v has no leader", tp)
	}
	if p.HighWatermark() < p.LogEndOffset() {
		w.mend(p)
		return fmt.Sprintf("%v: high watermark is %d of %d", tp, p.HighWatermark(), p.LogEndOffset())
	}
	if tp.Topic != stateTopic && p.LastStableOffset() != p.HighWatermark() {
		return fmt.Sprintf("%v: last stable offset is %d of %d", tp, p.LastStableOffset(), p.HighWatermark())
	}
	return ""
}

// mend opens a log again whose last sync has failed, as managers do every few
// seconds, or whose last records have too few copies: the next append would show
// them, but there is none.
func (w *world) mend(p *partition.Partition) {
	w.store.atOnce = true
	_ = p.Reopen(context.Background())
	w.store.atOnce = false
}

// finish checks what came of it all.
func (w *world) finish() {
	w.over = true
	for _, c := range w.copiers {
		for _, x := range c.runs {
			x.dead = true
		}
	}
	w.RunUntil(w.Now + peerTimeout + time.Second)
	for tries := 0; w.appending(); tries++ {
		if tries > 5000 {
			w.Violated("an append never ends")
		}
		w.RunUntil(w.Now + time.Millisecond)
	}
	w.model.groups.checkTopics()
	for _, tp := range w.partitions() {
		if s := w.brokers[leaderOf(w.image(), tp)].shards[tp]; s != nil && len(s.waiting) > 0 {
			w.Violated("%v: %d requests were never answered", tp, len(s.waiting))
		}
	}
	if w.plan.tails.every > 0 {
		w.checkTails()
	}
	if !w.void {
		w.checkCopies()
		w.checkCompacted()
	}
	w.checkDigests()
	w.checkAdmin()
}

// appending says whether a coordinator has not heard of an append yet: ids expire at
// any time.
func (w *world) appending() bool {
	for _, b := range w.brokers {
		for _, s := range b.shards {
			if s.appends > 0 || s.Soon {
				return true
			}
		}
	}
	return false
}

// checkCopies: each input is in the output once, and each transaction is there
// with all its records or with none.
func (w *world) checkCopies() {
	copies := map[string]int{}
	whole := map[int]map[string]int{}
	for _, r := range w.readers {
		if !r.committed || r.tp.Topic != outputTopic {
			continue
		}
		for _, s := range r.got {
			if n, err := strconv.Atoi(s.value); err == nil {
				copies[s.key]++
				if whole[n] == nil {
					whole[n] = map[string]int{}
				}
				whole[n][s.key]++
			}
		}
	}
	for _, a := range w.attempts {
		got := whole[a.number]
		if len(got) != 0 && len(got) != len(a.keys) || a.committed && len(got) == 0 {
			w.Violated("transaction %d, told to be committed %v, has %d of %d records in the output", a.number, a.committed, len(got), len(a.keys))
		}
	}
	for i, n := range w.inputs {
		if w.deserted(i) {
			for key, times := range copies {
				if times > 1 {
					w.Violated("input %s was copied %d times", key, times)
				}
			}
			continue
		}
		for j := range n {
			if key := strconv.Itoa(i) + "/" + strconv.FormatInt(j, 10); copies[key] != 1 {
				w.Violated("input %s was copied %d times", key, copies[key])
			}
		}
		w.Seen["input copied"] += int(n)
	}
}
