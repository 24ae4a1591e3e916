package shares

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/share/state"
)

// key is a share partition, with those who write of it and what they were told.
type key struct {
	state.Key
	w        *world
	leaders  []*leader // the last is the newest
	state    int32     // epoch, as the group coordinator has it
	life     int       // counts what began and ended deletions
	removing bool
	facts    []fact
}

// leader is one of its partition, which may not know that there is a newer one.
type leader struct {
	epoch, state int32
	start        int64
	knows        bool // what is stored
}

// maxFacts is how many are remembered of a share partition: the last.
const maxFacts = 40

// fact is what someone was told of a share partition, with how much of the log there was then.
type fact struct {
	ops    int
	at     uint64
	state  int32
	leader int32 // least, -1 for none told
	start  int64
	runs   []state.Run
}

func newKey(w *world, name state.Key) *key {
	k := &key{Key: name, w: w, leaders: []*leader{{epoch: 0}}}
	w.Every(w.Between(50*time.Millisecond, time.Second), k.do)
	return k
}

// do has someone do something.
func (k *key) do() {
	r := k.w.Rand
	l := k.leaders[len(k.leaders)-1]
	if r.IntN(10) == 0 {
		l = k.leaders[r.IntN(len(k.leaders))]
	}
	switch n := r.IntN(100); {
	case n < 6:
		k.leaders = append(k.leaders, &leader{epoch: int32(len(k.leaders))})
	case n < 18 && k.removing:
	case n < 12 || k.state == 0:
		k.state++
		k.initialize(int64(r.IntN(12) - 1))
	case n < 16:
		k.initialize(-1)
	case n < 18:
		k.remove()
	case n < 30 || !l.knows:
		k.read(l)
	default:
		k.write(l)
	}
}

// tell remembers what someone was told, unless it is on its way out.
func (k *key) tell(f fact) {
	if k.removing {
		return
	}
	f.ops, f.at = len(k.w.ops), k.w.nextID()
	k.facts = append(k.facts, f)
	k.facts = k.facts[max(0, len(k.facts)-maxFacts):]
}

// forget forgets what the log says no longer, which had so much done to it.
func (k *key) forget(ops int) {
	k.facts = slices.DeleteFunc(k.facts, func(f fact) bool { return f.ops > ops })
}

// known returns what someone was told before a request was sent.
func (k *key) known(sent uint64) (out []fact) {
	for _, f := range k.facts {
		if f.at < sent {
			out = append(out, f)
		}
	}
	return out
}

// send sends a request, and passes the answer on if the share partition was not deleted since,
// nor the end of the log lost: what was answered before may be of what was lost.
func (k *key) send(req kmsg.Request, done func(resp kmsg.Response, before []fact)) {
	life, cuts, sent := k.life, k.w.cuts, k.w.nextID()
	k.w.ask(req, func(resp kmsg.Response) {
		if k.life == life && k.w.cuts == cuts {
			done(resp, k.known(sent))
		}
	})
}

func (k *key) initialize(start int64) {
	epoch := k.state
	req := &kmsg.InitializeShareGroupStateRequest{GroupID: k.Group, Topics: []kmsg.InitializeShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.InitializeShareGroupStateRequestTopicPartition{{
		Partition: k.Partition, StateEpoch: epoch, StartOffset: start,
	}}}}}
	k.send(req, func(resp kmsg.Response, before []fact) {
		code := resp.(*kmsg.InitializeShareGroupStateResponse).Topics[0].Partitions[0].ErrorCode
		k.w.Count(name(req, code))
		if code != 0 {
			return
		}
		for _, f := range before {
			if f.state > epoch {
				k.w.Violated("%v: state epoch %d begins after %d", k.Key, epoch, f.state)
			}
		}
		k.tell(fact{state: epoch, leader: -1, start: -1})
	})
}

func (k *key) remove() {
	req := &kmsg.DeleteShareGroupStateRequest{GroupID: k.Group, Topics: []kmsg.DeleteShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.DeleteShareGroupStateRequestTopicPartition{{Partition: k.Partition}}}}}
	k.removing = true
	k.anew()
	again := true
	k.w.ask(req, func(resp kmsg.Response) {
		code := resp.(*kmsg.DeleteShareGroupStateResponse).Topics[0].Partitions[0].ErrorCode
		k.w.Count(name(req, code))
		if again = code != 0; !again {
			k.anew()
			k.removing, k.state = false, k.state+1
		}
	})
	k.w.After(time.Second, func() {
		if again {
			k.remove()
		}
	})
}

// anew forgets all: what is on its way now may be before the deletion or after it.
func (k *key) anew() {
	k.life++
	k.facts = nil
}

func (k *key) read(l *leader) {
	req := &kmsg.ReadShareGroupStateRequest{GroupID: k.Group, Topics: []kmsg.ReadShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.ReadShareGroupStateRequestTopicPartition{{Partition: k.Partition, LeaderEpoch: l.epoch}}}}}
	k.send(req, func(resp kmsg.Response, before []fact) {
		p := &resp.(*kmsg.ReadShareGroupStateResponse).Topics[0].Partitions[0]
		k.w.Count(name(req, p.ErrorCode))
		switch {
		case p.ErrorCode == 42 && len(before) > 0:
			k.w.Violated("%v: there is no state, and was", k.Key)
		case p.ErrorCode != 0:
			return
		}
		k.checkLeader(l.epoch, before)
		k.checkRead(p, before)
		k.tell(fact{state: p.StateEpoch, leader: l.epoch, start: p.StartOffset})
		l.state, l.start, l.knows = p.StateEpoch, max(p.StartOffset, 0), true
	})
}

func (k *key) write(l *leader) {
	r := k.w.Rand
	l.start += int64(r.IntN(3))
	p := kmsg.WriteShareGroupStateRequestTopicPartition{Partition: k.Partition, StateEpoch: l.state, LeaderEpoch: l.epoch, StartOffset: l.start, DeliveryCompleteCount: -1}
	f := fact{state: l.state, leader: l.epoch, start: l.start}
	for at := l.start; r.IntN(3) > 0; {
		run := state.Run{First: at, Last: at + int64(r.IntN(4)), State: []int8{0, 2, 4}[r.IntN(3)], Count: int16(1 + r.IntN(5))}
		at = run.Last + 1 + int64(r.IntN(3))
		f.runs = append(f.runs, run)
		p.StateBatches = append(p.StateBatches, kmsg.WriteShareGroupStateRequestTopicPartitionStateBatch{FirstOffset: run.First, LastOffset: run.Last, DeliveryState: run.State, DeliveryCount: run.Count})
	}
	req := &kmsg.WriteShareGroupStateRequest{Version: 1, GroupID: k.Group, Topics: []kmsg.WriteShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.WriteShareGroupStateRequestTopicPartition{p}}}}
	k.send(req, func(resp kmsg.Response, before []fact) {
		code := resp.(*kmsg.WriteShareGroupStateResponse).Topics[0].Partitions[0].ErrorCode
		k.w.Count(name(req, code))
		if code != 0 {
			l.knows = l.knows && code != 124 && code != 42
			return
		}
		k.checkLeader(l.epoch, before)
		for _, b := range before {
			if b.state > f.state {
				k.w.Violated("%v: a write of state epoch %d after %d", k.Key, f.state, b.state)
			}
		}
		k.tell(f)
	})
}

// checkLeader finds a leader that does something after the next one was told that it leads.
func (k *key) checkLeader(epoch int32, before []fact) {
	for _, f := range before {
		if f.leader > epoch {
			k.w.Violated("%v: leader epoch %d is served after %d", k.Key, epoch, f.leader)
		}
	}
}

// checkRead holds a state against what was told before.
func (k *key) checkRead(p *kmsg.ReadShareGroupStateResponseTopicPartition, before []fact) {
	at := func(offset int64) (out state.Run) {
		for _, b := range p.StateBatches {
			if b.FirstOffset <= offset && offset <= b.LastOffset {
				return state.Run{State: b.DeliveryState, Count: b.DeliveryCount}
			}
		}
		return out
	}
	for _, f := range before {
		if f.state > p.StateEpoch || f.state == p.StateEpoch && f.start > p.StartOffset {
			k.w.Violated("%v: state epoch %d from %d is read after %d from %d", k.Key, p.StateEpoch, p.StartOffset, f.state, f.start)
		}
		if f.state < p.StateEpoch {
			continue
		}
		for _, r := range f.runs {
			for offset := max(r.First, p.StartOffset); offset <= r.Last; offset++ {
				if got := at(offset); got.Count < r.Count || got.Count == r.Count && got.State < r.State {
					k.w.Violated("%v: offset %d is %d/%d, and was %d/%d", k.Key, offset, got.State, got.Count, r.State, r.Count)
				}
			}
		}
	}
}
