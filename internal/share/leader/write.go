package leader

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/share/window"
)

// queue is the writes of a share partition that wait for their turn, and who waits for them.
// They are stored in their order, one request at a time, and what came meanwhile goes together
// in the next.
type queue struct {
	waiting []pending
	writing bool
}

// pending is a write, and who is told what became of it, if anyone.
type pending struct {
	*window.Write
	done *Outcome
}

func (q *queue) busy() bool { return q.writing || len(q.waiting) > 0 }

// discard fails what waits: there is another leader, or another state.
func (q *queue) discard() {
	for _, w := range q.waiting {
		w.done.finish(kerr.NotLeaderForPartition)
	}
	q.waiting = nil
}

// begin has a write stored, nil for nothing. It is for who has the lock.
func (p *part) begin(w *window.Write, done *Outcome) {
	switch {
	case w == nil:
		return
	case p.dropped:
		done.finish(kerr.NotLeaderForPartition)
		return
	}
	p.queue.waiting = append(p.queue.waiting, pending{w, done})
	if !p.queue.writing {
		p.queue.writing = p.leader.background(p.guarded(p.store))
	}
}

// store stores what waits, until nothing does.
func (p *part) store() {
	for p.storeSome() {
	}
	p.leave()
}

// storeSome stores what waits now, and says whether there was something.
func (p *part) storeSome() bool {
	p.mu.Lock()
	some := p.queue.waiting
	p.queue.waiting = nil
	p.queue.writing = len(some) > 0
	p.mu.Unlock()
	if len(some) == 0 {
		return false
	}
	err := kerr.UnknownServerError // What is told after a panic.
	defer func() {
		for _, w := range some {
			w.done.finish(clientError(err))
		}
	}()
	all := together(some)
	err = p.again(func() *kerr.Error { return p.write(all) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range some {
		if err == nil {
			p.window.Done(w.ID)
		} else {
			p.begin(p.window.Failed(p.leader.now(), w.ID), nil)
		}
	}
	if isFinal(err) || err != nil && some[0].ID == 0 {
		p.discard() // Where it begins must be stored, or the next leader begins elsewhere.
	}
	if err != nil && p.leader.ctx.Err() == nil {
		p.leader.opts.Logger.Warn("the state of a share partition could not be stored", "group", p.key.Group, "topic", p.key.Topic, "partition", p.key.Index, "error", err)
	}
	p.changed()
	p.waiters.wakeAll()
	return true
}

func clientError(err *kerr.Error) *kerr.Error {
	if err == nil {
		return nil
	}
	return window.ClientError(err)
}

// isFinal says of an error of the share coordinator that no later write will do any better:
// there is another leader, the offsets of the group were altered, or group or topic are gone.
func isFinal(err *kerr.Error) bool {
	switch err {
	case kerr.FencedLeaderEpoch, kerr.FencedStateEpoch, kerr.UnknownTopicOrPartition, kerr.GroupIDNotFound, kerr.InvalidRequest:
		return true
	}
	return false
}

// together makes one write of several. Of what is in more than one of them the later counts: a
// record that was delivered once more has the higher count.
func together(some []pending) *window.Write {
	out := *some[0].Write
	for _, w := range some[1:] {
		out.Start, out.Completed = w.Start, w.Completed
		out.Batches = append(out.Batches[:len(out.Batches):len(out.Batches)], w.Batches...)
	}
	return &out
}

// write asks the share coordinator to store something.
func (p *part) write(w *window.Write) *kerr.Error {
	resp, err := p.leader.ask(p.key, p.writeRequest(w))
	if err != nil {
		return kerr.CoordinatorNotAvailable
	}
	topics := resp.(*kmsg.WriteShareGroupStateResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return kerr.UnknownServerError
	}
	if code := topics[0].Partitions[0].ErrorCode; code != 0 {
		return known(code)
	}
	return nil
}

func (p *part) writeRequest(w *window.Write) *kmsg.WriteShareGroupStateRequest {
	req := kmsg.NewPtrWriteShareGroupStateRequest()
	req.Version, req.GroupID = 1, p.key.Group
	topic, to := kmsg.NewWriteShareGroupStateRequestTopic(), kmsg.NewWriteShareGroupStateRequestTopicPartition()
	topic.TopicID, to.Partition = p.key.Topic, p.key.Index
	to.LeaderEpoch, to.StateEpoch, to.StartOffset, to.DeliveryCompleteCount = w.Leader, w.State, w.Start, w.Completed
	for _, b := range w.Batches {
		s := kmsg.NewWriteShareGroupStateRequestTopicPartitionStateBatch()
		s.FirstOffset, s.LastOffset, s.DeliveryState, s.DeliveryCount = b.First, b.Last, int8(b.State), b.Count
		to.StateBatches = append(to.StateBatches, s)
	}
	topic.Partitions = append(topic.Partitions, to)
	req.Topics = append(req.Topics, topic)
	return req
}

// Outcome is what becomes of something that is stored.
type Outcome struct {
	ready chan struct{}
	err   *kerr.Error
}

func newOutcome() *Outcome { return &Outcome{ready: make(chan struct{})} }

// finish tells the outcome. Nil is what no one waits for.
func (o *Outcome) finish(err *kerr.Error) {
	if o != nil {
		o.err = err
		close(o.ready)
	}
}

// Decided is an outcome that is known.
func decided(err *kerr.Error) *Outcome {
	o := newOutcome()
	o.finish(err)
	return o
}

// Ready is closed when the outcome is known.
func (o *Outcome) Ready() <-chan struct{} { return o.ready }

// Known returns the outcome if it is known, and otherwise that it took too long.
func (o *Outcome) Known() *kerr.Error {
	select {
	case <-o.ready:
		return o.err
	default:
		return kerr.RequestTimedOut
	}
}

// Wait returns the outcome. It comes in bounded time: what cannot be stored fails.
func (o *Outcome) Wait() *kerr.Error {
	<-o.ready
	return o.err
}
