package state

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Brokers ask: a group coordinator initializes, deletes and asks for a summary, leaders of
// partitions read and write. Each share partition is answered for itself.

// notGiven is an epoch or an offset that a request does not have.
const notGiven = -1

func (x *step) request(r *machine.Request) {
	var resp kmsg.Response
	switch m := r.Msg.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		resp = x.initialize(m)
	case *kmsg.ReadShareGroupStateRequest:
		resp = x.read(m)
	case *kmsg.WriteShareGroupStateRequest:
		resp = x.writeState(m)
	case *kmsg.DeleteShareGroupStateRequest:
		resp = x.remove(m)
	case *kmsg.ReadShareGroupStateSummaryRequest:
		resp = x.summary(m)
	default:
		panic("a request that is not about share group state: " + kmsg.NameForKey(r.Msg.Key()))
	}
	x.out.Replies = append(x.out.Replies, machine.Reply{ID: r.ID, Msg: resp})
}

// find returns a share partition, which must be initialized, of a leader that is not too old.
func (x *step) find(k Key, leaderEpoch int32) (*state, *kerr.Error) {
	if err := x.exists(k); err != nil {
		return nil, err
	}
	p := x.all[k]
	switch {
	case p == nil:
		return nil, kerr.InvalidRequest
	case leaderEpoch != notGiven && leaderEpoch < p.LeaderEpoch:
		return nil, kerr.FencedLeaderEpoch
	}
	return p, nil
}

// exists says whether there may be a share partition.
func (x *step) exists(k Key) *kerr.Error {
	if k.Group == "" || k.Partition < 0 {
		return kerr.InvalidRequest
	}
	if x.image == nil {
		return kerr.UnknownTopicOrPartition
	}
	if t := x.image.TopicByID(k.Topic); t == nil || int(k.Partition) >= len(t.Partitions) {
		return kerr.UnknownTopicOrPartition
	}
	return nil
}

func code(err *kerr.Error) int16 {
	if err == nil {
		return 0
	}
	return err.Code
}

func (x *step) initialize(m *kmsg.InitializeShareGroupStateRequest) kmsg.Response {
	resp := m.ResponseKind().(*kmsg.InitializeShareGroupStateResponse)
	for _, t := range m.Topics {
		out := kmsg.NewInitializeShareGroupStateResponseTopic()
		out.TopicID = t.TopicID
		for i := range t.Partitions {
			p := kmsg.NewInitializeShareGroupStateResponseTopicPartition()
			p.Partition = t.Partitions[i].Partition
			p.ErrorCode = code(x.initializeOne(Key{Group: m.GroupID, Topic: t.TopicID, Partition: p.Partition}, &t.Partitions[i]))
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// initializeOne begins a share partition, or begins it anew under a newer state epoch. Under the
// same one it is there, if no other start is named: a group coordinator that has no answer asks
// again. Nor is another start taken once something was written, which must stay; that is refused,
// since it may be a leader whose epoch this is, see recover. Kafka takes another start then, of
// which a leader that is not fenced hears nothing.
func (x *step) initializeOne(k Key, m *kmsg.InitializeShareGroupStateRequestTopicPartition) *kerr.Error {
	if err := x.exists(k); err != nil {
		return err
	}
	now := x.now.UnixMilli()
	v := &schema.ShareSnapshot{StateEpoch: m.StateEpoch, Start: max(m.StartOffset, notGiven), CreateTimestamp: now, WriteTimestamp: now, Completed: notGiven}
	if v.Start >= 0 {
		v.Completed = 0
	}
	if p := x.all[k]; p != nil {
		switch {
		case m.StateEpoch < p.StateEpoch:
			return kerr.FencedStateEpoch
		case m.StateEpoch == p.StateEpoch && (v.Start == notGiven || v.Start == p.Start):
			return nil
		case m.StateEpoch == p.StateEpoch && p.isInUse():
			return kerr.FencedStateEpoch
		}
		v.SnapshotEpoch, v.LeaderEpoch = p.SnapshotEpoch+1, p.LeaderEpoch
	} else if m.StateEpoch < 0 {
		return kerr.InvalidRequest
	}
	if err := x.room(k, 0); err != nil {
		return err
	}
	return x.store(k, &schema.ShareSnapshotRecord{Group: k.Group, Topic: k.Topic, Partition: k.Partition, Value: v})
}

// isInUse says whether anything was written since it was begun, if only who leads it.
func (p *state) isInUse() bool { return p.updates > 0 || p.WriteTimestamp != p.CreateTimestamp }

// store writes a record of a share partition, if it is not too large.
func (x *step) store(k Key, r schema.Record) *kerr.Error {
	if !x.fits(r) {
		return kerr.MessageTooLarge
	}
	x.write(r)
	if p := x.all[k]; p != nil {
		p.touched = x.now
	}
	return nil
}

// update writes what changed. After so many updates, it writes all instead.
func (x *step) update(k Key, p *state, u *schema.ShareUpdate) *kerr.Error {
	u.SnapshotEpoch = p.SnapshotEpoch
	if p.updates >= x.cfg.Updates {
		if r := x.snapshot(k, changed(p.ShareSnapshot, u)); x.fits(r) {
			return x.store(k, r)
		}
	}
	return x.store(k, &schema.ShareUpdateRecord{Group: k.Group, Topic: k.Topic, Partition: k.Partition, Value: u})
}

// snapshot is the next snapshot of a share partition. It is later than the moment in which the
// share partition was begun, so that one tells it from the first.
func (x *step) snapshot(k Key, v schema.ShareSnapshot) *schema.ShareSnapshotRecord {
	v.SnapshotEpoch++
	v.WriteTimestamp = x.now.UnixMilli()
	v.CreateTimestamp = min(v.CreateTimestamp, v.WriteTimestamp-1)
	return &schema.ShareSnapshotRecord{Group: k.Group, Topic: k.Topic, Partition: k.Partition, Value: &v}
}

func (x *step) writeState(m *kmsg.WriteShareGroupStateRequest) kmsg.Response {
	resp := m.ResponseKind().(*kmsg.WriteShareGroupStateResponse)
	for _, t := range m.Topics {
		out := kmsg.NewWriteShareGroupStateResponseTopic()
		out.TopicID = t.TopicID
		for i := range t.Partitions {
			p := kmsg.NewWriteShareGroupStateResponseTopicPartition()
			p.Partition = t.Partitions[i].Partition
			p.ErrorCode = code(x.writeOne(Key{Group: m.GroupID, Topic: t.TopicID, Partition: p.Partition}, &t.Partitions[i]))
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (x *step) writeOne(k Key, m *kmsg.WriteShareGroupStateRequestTopicPartition) *kerr.Error {
	p, err := x.find(k, m.LeaderEpoch)
	switch {
	case err != nil:
		return err
	case m.StateEpoch != notGiven && m.StateEpoch < p.StateEpoch:
		return kerr.FencedStateEpoch
	case m.StateEpoch > p.StateEpoch && m.StartOffset < 0: // No one was ever told of it.
		return kerr.InvalidRequest
	}
	u := &schema.ShareUpdate{LeaderEpoch: m.LeaderEpoch, Start: m.StartOffset, Completed: m.DeliveryCompleteCount}
	for _, b := range m.StateBatches {
		if b.FirstOffset < 0 || b.FirstOffset > b.LastOffset || b.DeliveryCount < 0 || !isStored(b.DeliveryState) {
			return kerr.InvalidRequest
		}
		u.Runs = append(u.Runs, Run{First: b.FirstOffset, Last: b.LastOffset, State: b.DeliveryState, Count: b.DeliveryCount})
	}
	u.Runs = merge(ordered(u.Runs), nil, u.Start)
	if m.StateEpoch > p.StateEpoch {
		if err := x.room(k, len(u.Runs)); err != nil {
			return err
		}
		return x.recover(k, p, m.StateEpoch, u)
	}
	if err := x.roomForUpdate(k, p, u); err != nil {
		return err
	}
	return x.update(k, p, u)
}

// recover begins a state epoch that a leader knows and the log does not: a store has lost its
// end; or the partition has, and its leader has begun one. What was written before is of an older epoch and void; what the leader does not write is
// delivered again.
func (x *step) recover(k Key, p *state, epoch int32, u *schema.ShareUpdate) *kerr.Error {
	v := p.ShareSnapshot
	v.StateEpoch, v.LeaderEpoch, v.Start, v.Runs, v.Completed = epoch, max(v.LeaderEpoch, u.LeaderEpoch), u.Start, u.Runs, u.Completed
	return x.store(k, x.snapshot(k, v))
}

// isStored says whether a record may be stored in a state: available, acknowledged, archived,
// or archiving, as Kafka has it with a dead letter queue.
func isStored(state int8) bool { return state == 0 || state >= 2 && state <= 4 }

func (x *step) read(m *kmsg.ReadShareGroupStateRequest) kmsg.Response {
	resp := m.ResponseKind().(*kmsg.ReadShareGroupStateResponse)
	for _, t := range m.Topics {
		out := kmsg.NewReadShareGroupStateResponseTopic()
		out.TopicID = t.TopicID
		for _, asked := range t.Partitions {
			out.Partitions = append(out.Partitions, x.readOne(Key{Group: m.GroupID, Topic: t.TopicID, Partition: asked.Partition}, asked.LeaderEpoch))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// readOne answers a leader, which is the one that may write from now on.
func (x *step) readOne(k Key, leaderEpoch int32) kmsg.ReadShareGroupStateResponseTopicPartition {
	out := kmsg.NewReadShareGroupStateResponseTopicPartition()
	out.Partition = k.Partition
	p, err := x.find(k, leaderEpoch)
	if err == nil && leaderEpoch > p.LeaderEpoch {
		err = x.update(k, p, &schema.ShareUpdate{LeaderEpoch: leaderEpoch, Start: notGiven, Completed: notGiven})
	}
	if err != nil {
		out.ErrorCode = err.Code
		return out
	}
	out.StateEpoch, out.StartOffset = p.StateEpoch, p.Start
	for _, r := range p.Runs {
		b := kmsg.NewReadShareGroupStateResponseTopicPartitionStateBatch()
		b.FirstOffset, b.LastOffset, b.DeliveryState, b.DeliveryCount = r.First, r.Last, r.State, r.Count
		out.StateBatches = append(out.StateBatches, b)
	}
	return out
}

// summary answers those who ask for lag. It tells of the leader, and makes no one one.
func (x *step) summary(m *kmsg.ReadShareGroupStateSummaryRequest) kmsg.Response {
	resp := m.ResponseKind().(*kmsg.ReadShareGroupStateSummaryResponse)
	for _, t := range m.Topics {
		out := kmsg.NewReadShareGroupStateSummaryResponseTopic()
		out.TopicID = t.TopicID
		for _, asked := range t.Partitions {
			one := kmsg.NewReadShareGroupStateSummaryResponseTopicPartition()
			one.Partition = asked.Partition
			p, err := x.find(Key{Group: m.GroupID, Topic: t.TopicID, Partition: asked.Partition}, asked.LeaderEpoch)
			if one.ErrorCode = code(err); err == nil {
				one.StateEpoch, one.LeaderEpoch, one.StartOffset, one.DeliveryCompleteCount = p.StateEpoch, p.LeaderEpoch, p.Start, p.Completed
			}
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// remove deletes share partitions. One that is not there is deleted: who has no answer asks
// again.
func (x *step) remove(m *kmsg.DeleteShareGroupStateRequest) kmsg.Response {
	resp := m.ResponseKind().(*kmsg.DeleteShareGroupStateResponse)
	for _, t := range m.Topics {
		out := kmsg.NewDeleteShareGroupStateResponseTopic()
		out.TopicID = t.TopicID
		for _, asked := range t.Partitions {
			one := kmsg.NewDeleteShareGroupStateResponseTopicPartition()
			one.Partition = asked.Partition
			k := Key{Group: m.GroupID, Topic: t.TopicID, Partition: asked.Partition}
			if one.ErrorCode = code(x.exists(k)); one.ErrorCode == 0 {
				x.tombstone(k)
			}
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (x *step) tombstone(k Key) {
	if x.all[k] != nil {
		x.write(&schema.ShareSnapshotRecord{Group: k.Group, Topic: k.Topic, Partition: k.Partition})
	}
}

// forget deletes what is of topics that are gone. A topic of the same name is another.
func (x *step) forget() {
	if x.image == nil {
		return
	}
	for _, k := range x.keys() {
		if x.image.TopicByID(k.Topic) == nil {
			x.tombstone(k)
		}
	}
}
