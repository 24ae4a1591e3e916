package leader

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/share/window"
)

// Reset says where a share partition begins that no one has fetched (share.auto.offset.reset).
type Reset struct {
	Kind ResetKind
	Age  time.Duration // with ByDuration
}

// ResetKind is a kind of Reset.
type ResetKind int8

// The kinds. Latest is Kafka's default.
const (
	Latest ResetKind = iota
	Earliest
	ByDuration
)

// failure is why a share partition could not be loaded; nil for nothing that is the client's
// business.
type failure struct{ err *kerr.Error }

// Requests to the share coordinator are tried for so long, with pauses that grow.
const (
	tryFor     = 10 * time.Second
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
	askFor     = 5 * time.Second // each
)

// again tries something until it is not for the state of the share coordinator that it fails. A
// coordinator that does not know the topic may have metadata that is older than what this
// broker has, as long as the share partition is not dropped.
func (p *part) again(try func() *kerr.Error) *kerr.Error {
	began, pause := time.Now(), firstPause
	for {
		err := try()
		switch err {
		case kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress:
		case kerr.UnknownTopicOrPartition:
			if p.isDropped() {
				return err
			}
		default:
			return err
		}
		if time.Since(began)+pause > tryFor {
			return err
		}
		select {
		case <-p.leader.ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

func (p *part) isDropped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// ask asks the share coordinator.
func (l *Leader) ask(k Key, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(l.ctx, askFor)
	defer cancel()
	return l.opts.Ask(ctx, k, req)
}

// load reads what is stored, and begins.
func (p *part) load() {
	l := p.leader
	defer p.leave()
	var w *window.Partition
	var first *window.Write
	err := p.again(func() (err *kerr.Error) {
		select {
		case l.loads <- struct{}{}:
			defer func() { <-l.loads }()
		case <-l.ctx.Done():
		}
		w, first, err = p.read()
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped {
		return
	}
	if err != nil {
		p.failure = &failure{told(err)}
		p.waiters.wakeAll()
		p.forgetFailure()
		return
	}
	p.window = w
	p.begin(first, nil)
	p.changed()
	p.waiters.wakeAll()
}

// forgetFailure drops a share partition that could not be loaded if no one waits to be told.
func (p *part) forgetFailure() {
	if p.failure != nil && p.waiters.none() {
		p.discard()
	}
}

// told is what clients are told of why a share partition could not be loaded. As long as it is
// only that the share coordinator is not there, they are told that there are no records: they
// know no error that would have them try again.
func told(err *kerr.Error) *kerr.Error {
	switch err = window.ClientError(err); err {
	case kerr.CoordinatorNotAvailable:
		return nil
	case kerr.GroupIDNotFound:
		return kerr.UnknownServerError
	}
	return err
}

// read asks the share coordinator for a window. Where a new one begins is stored at once: the
// next leader would look for it anew, and by latest would pass over what came meanwhile.
func (p *part) read() (*window.Partition, *window.Write, *kerr.Error) {
	l := p.leader
	req := kmsg.NewPtrReadShareGroupStateRequest()
	req.GroupID = p.key.Group
	topic, asked := kmsg.NewReadShareGroupStateRequestTopic(), kmsg.NewReadShareGroupStateRequestTopicPartition()
	topic.TopicID, asked.Partition, asked.LeaderEpoch = p.key.Topic, p.key.Index, p.log.LeaderEpoch()
	topic.Partitions = append(topic.Partitions, asked)
	req.Topics = append(req.Topics, topic)
	resp, err := l.ask(p.key, req)
	if err != nil {
		return nil, nil, kerr.CoordinatorNotAvailable
	}
	topics := resp.(*kmsg.ReadShareGroupStateResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return nil, nil, kerr.UnknownServerError
	}
	got := &topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		return nil, nil, known(got.ErrorCode)
	}
	set, epochs := l.opts.Settings(p.key.Group), window.Epochs{Leader: p.log.LeaderEpoch(), State: got.StateEpoch}
	var batches []window.StateBatch
	for _, b := range got.StateBatches {
		batches = append(batches, window.StateBatch{First: b.FirstOffset, Last: b.LastOffset, State: window.State(b.DeliveryState), Count: b.DeliveryCount})
	}
	end, lost := p.endBefore(l.ctx, got.StartOffset, batches)
	if lost != nil {
		return nil, nil, lost
	}
	start, batches, cut := clamp(got.StartOffset, batches, end)
	var first *window.Write
	if start < 0 {
		var err *kerr.Error
		if start, err = p.begins(l.ctx, set); err != nil {
			return nil, nil, err
		}
		first = &window.Write{Epochs: epochs, Start: start}
	}
	if !cut {
		return window.Load(set.Settings, epochs, p.sparse, start, batches), first, nil
	}
	epochs.State++ // By an older one nothing that is stored is taken back.
	w := window.Load(set.Settings, epochs, p.sparse, start, batches)
	return w, nil, p.write(&window.Write{Epochs: epochs, Start: w.StartOffset(), Completed: w.Completed(), Batches: batches})
}

// endBefore is where the log ends, if what is stored goes beyond: the log may have lost its end.
func (p *part) endBefore(ctx context.Context, start int64, batches []window.StateBatch) (int64, *kerr.Error) {
	for _, b := range batches {
		start = max(start, b.Last+1)
	}
	if end := p.log.LogEndOffset(); start <= end {
		return end, nil
	}
	if err := p.log.Freshen(ctx); err != nil { // Others may have added to it.
		return 0, err
	}
	return p.log.LogEndOffset(), nil
}

// clamp is what is stored as far as the log goes, and whether that is less. What comes in the
// place of what was lost is other records, so it is to be stored before there are any: the next
// leader could not tell.
func clamp(start int64, batches []window.StateBatch, end int64) (from int64, kept []window.StateBatch, cut bool) {
	for _, b := range batches {
		cut = cut || b.Last >= end
		if b.Last = min(b.Last, end-1); b.First <= b.Last {
			kept = append(kept, b)
		}
	}
	return min(start, end), kept, cut || start > end
}

// begins says where a share partition begins that no one has fetched.
func (p *part) begins(ctx context.Context, set Settings) (int64, *kerr.Error) {
	end := p.log.HighWatermark()
	switch set.Reset.Kind {
	case Earliest:
		return p.log.LogStartOffset(), nil
	case ByDuration:
		hit, ok, err := p.log.OffsetForTimestamp(ctx, time.Now().Add(-set.Reset.Age).UnixMilli(), end)
		if err != nil || ok {
			return hit.Offset, err
		}
		return end, nil // All that there is is older, and what comes is not.
	}
	if err := p.log.Freshen(ctx); err != nil {
		return 0, err
	}
	return p.log.HighWatermark(), nil
}

// known is the error that a code stands for.
func known(code int16) *kerr.Error {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err
	}
	return kerr.UnknownServerError
}
