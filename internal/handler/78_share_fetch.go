// ShareFetch (key 78) gives records to a member of a share group (KIP-932), and takes what it
// says of earlier ones.
//
//	v1 the first that is stable; v2 acquire modes (KIP-1206), renewal (KIP-1222)
//
// Records are sent from where they lie, as those of Fetch: an acquired range costs no copy.
//
// Left out: a fetch waits for the first record, whatever MinBytes says; what was acquired
// would be locked while it waits for more.

package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/quota"
	"muster/internal/share/leader"
	shared "muster/internal/share/session"
	"muster/internal/share/window"
)

// shareFetch is the work of one.
type shareFetch struct {
	sharing
	req     *kmsg.ShareFetchRequest
	parts   []sharePart
	maxWait time.Duration
	bytes   int // that it may still have
	limit   int // that it may have in all
	held    int // of the memory for records of a store far away
}

// sharePart is a partition that is fetched.
type sharePart struct {
	shared.Part
	topic string
	err   *kerr.Error
	got   leader.Acquired
}

func (h *Handler) shareFetch(ctx context.Context, c *call) (*protocol.Response, error) {
	decoded, err := c.Decode()
	if err != nil {
		return nil, err
	}
	req := decoded.(*kmsg.ShareFetchRequest)
	c.Body = nil // There are no bytes in the request that still lie in the frame.
	c.origin.Conn.Release()
	if err := c.admit(req.GroupID, req.MemberID); err != nil {
		return c.shareFetchFailed(err)
	}
	f := &shareFetch{req: req, maxWait: min(time.Duration(req.MaxWaitMillis)*time.Millisecond, longestWait)}
	f.sharing = sharing{h: h, c: c, group: *req.GroupID, member: *req.MemberID, epoch: req.ShareSessionEpoch, renew: req.IsRenewAck}
	forget, ok := f.read()
	if !ok {
		return nil, protocol.ErrMemory
	}
	parts, refused := f.begin(forget)
	if refused != nil {
		if refused == kerr.ShareSessionLimitReached {
			f.pause(ctx, f.maxWait)
		}
		return c.shareFetchFailed(refused)
	}
	if !c.origin.Conn.Hold(len(parts) * shareWork) {
		return nil, protocol.ErrMemory
	}
	for _, p := range parts {
		f.parts = append(f.parts, sharePart{Part: p})
	}
	f.acknowledge()
	f.release()
	f.req.Topics, f.req.ForgottenTopicsData = nil, nil
	wait := f.fetchWithin(ctx)
	f.settle(ctx)
	return f.encode(wait)
}

func (c *call) shareFetchFailed(err *kerr.Error) (*protocol.Response, error) {
	return c.EncodeShareFetch(&protocol.ShareFetchResponse{ErrorCode: err.Code, ThrottleMillis: c.charge(0)})
}

// read takes what the request names; false says that there is no room for it.
func (f *shareFetch) read() (forget []shared.Place, ok bool) {
	named := 0
	for i := range f.req.Topics {
		named += len(f.req.Topics[i].Partitions)
	}
	forgotten := 0
	for i := range f.req.ForgottenTopicsData {
		forgotten += len(f.req.ForgottenTopicsData[i].Partitions)
	}
	if !f.c.origin.Conn.Hold((named + forgotten) * shareWork) {
		return nil, false
	}
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		for j := range t.Partitions {
			var acks []window.Acknowledgement
			for k := range t.Partitions[j].AcknowledgementBatches {
				b := &t.Partitions[j].AcknowledgementBatches[k]
				acks = append(acks, window.Acknowledgement{First: b.FirstOffset, Last: b.LastOffset, Types: b.AcknowledgeTypes})
			}
			f.name(t.TopicID, t.Partitions[j].Partition, acks)
		}
	}
	forget = make([]shared.Place, 0, forgotten)
	for i := range f.req.ForgottenTopicsData {
		t := &f.req.ForgottenTopicsData[i]
		for _, index := range t.Partitions {
			forget = append(forget, shared.Place{Topic: t.TopicID, Index: index})
		}
	}
	return forget, true
}

// begin goes on in the session, begins one, or ends it.
func (f *shareFetch) begin(forget []shared.Place) ([]shared.Part, *kerr.Error) {
	req := f.req
	if req.IsRenewAck && (req.MaxBytes != 0 || req.MinBytes != 0 || req.MaxRecords != 0 || req.MaxWaitMillis != 0) {
		return nil, kerr.InvalidRequest
	}
	if mode := window.Mode(req.ShareAcquireMode); mode != window.ByBatch && mode != window.ByRecord {
		return nil, kerr.InvalidRequest
	}
	r := f.request()
	r.Add, r.Forget = f.places, forget
	switch f.epoch {
	case shared.Initial:
		for _, acks := range f.acks {
			if len(acks) > 0 {
				return nil, kerr.InvalidRequest
			}
		}
		parts, err := f.h.opts.Shares.Sessions.Open(r)
		if err == nil {
			f.h.opts.Shares.Refresh(f.group)
		}
		return parts, err
	case shared.Final:
		return nil, f.h.opts.Shares.Sessions.End(r)
	}
	return f.h.opts.Shares.Sessions.Next(r)
}

// fetchWithin fetches no more than the client may have. If it may have nothing, it gets
// nothing, and has to wait: none of it is locked for a client that does not get it.
func (f *shareFetch) fetchWithin(ctx context.Context) (wait time.Duration) {
	f.limit = min(int(f.req.MaxBytes), int(f.c.image.Config.Int("fetch.max.bytes")))
	if f.epoch == shared.Final || f.renew || f.req.MaxRecords <= 0 || f.limit <= 0 {
		f.locateAll()
		return 0
	}
	s := f.h.share(f.c, quota.Fetched)
	if s != nil {
		if f.limit, wait = s.room(f.limit); wait > 0 {
			return wait
		}
	}
	f.run(ctx)
	if s != nil {
		n := 0
		for i := range f.parts {
			n += f.parts[i].got.Records.Len
		}
		s.take(n)
	}
	return 0
}

// locateAll finds out what is wrong with partitions, and fetches none.
func (f *shareFetch) locateAll() {
	for i := range f.parts {
		_, f.parts[i].topic, f.parts[i].err = f.locate(f.c.image, f.parts[i].Place)
	}
}

// run fetches, and if there is nothing waits until there is, the time is up, or the client has
// gone.
func (f *shareFetch) run(ctx context.Context) {
	if f.look(ctx, nil) || f.maxWait <= 0 {
		return
	}
	parked, done, ok := f.c.origin.Conn.Park(ctx, len(f.parts)*shareWork)
	if !ok {
		return
	}
	defer done()
	w := leader.NewWait()
	defer w.End()
	timeout := time.NewTimer(f.maxWait)
	defer timeout.Stop()
	// What came between the first look and this one has woken no one.
	for !f.look(ctx, w) {
		select {
		case <-w.C:
		case <-timeout.C:
			return
		case <-parked.Done():
			return
		}
	}
}

// look acquires what there is, in one pass over the partitions; true says that there was
// something to tell.
func (f *shareFetch) look(ctx context.Context, w *leader.Wait) (enough bool) {
	image := f.h.opts.Controller.Image()
	f.c.image, f.bytes = image, f.limit
	if f.h.opts.RemoteStore {
		f.held = f.h.records.take(f.limit)
		f.bytes = f.held
	}
	left := int64(f.req.MaxRecords)
	var total int
	for i := range f.parts {
		p := &f.parts[i]
		if left > 0 {
			f.acquire(ctx, image, p, left, (f.bytes-total)/(len(f.parts)-i), total == 0, w)
			left -= p.got.Count
			total += p.got.Records.Len
		}
		enough = enough || p.err != nil || p.got.Count > 0
	}
	if f.h.opts.RemoteStore {
		f.h.records.give(max(f.held-total, 0))
		f.held = min(f.held, total)
	}
	return enough || len(f.parts) == 0
}

// acquire acquires records of a partition.
func (f *shareFetch) acquire(ctx context.Context, image *metadata.Image, p *sharePart, records int64, bytes int, minOne bool, w *leader.Wait) {
	var in leader.In
	if in, p.topic, p.err = f.locate(image, p.Place); p.err != nil {
		return
	}
	p.got = f.h.opts.Shares.Acquire(ctx, in, leader.Fetch{
		Member: f.member, Mode: window.Mode(f.req.ShareAcquireMode), MaxRecords: records, BatchSize: int64(max(f.req.BatchSize, 1)),
		MaxBytes: bytes, MinOne: minOne, Wait: w,
	})
	p.err = p.got.Err
}

// encode makes the answer, of the partitions that have something to tell.
func (f *shareFetch) encode(wait time.Duration) (*protocol.Response, error) {
	resp := &protocol.ShareFetchResponse{LockMillis: int32(f.h.opts.Shares.Settings(f.group).Lock.Milliseconds())}
	acked := map[shared.Place]*kerr.Error{}
	for _, a := range f.said {
		acked[a.Place] = a.err
	}
	for i := range f.parts {
		p := &f.parts[i]
		err, said := acked[p.Place]
		delete(acked, p.Place)
		if p.Fresh || said || p.err != nil || p.got.Count > 0 {
			f.add(resp, p, err)
		}
	}
	for _, a := range f.said { // Of partitions that are fetched no more.
		if err, ok := acked[a.Place]; ok {
			f.add(resp, &sharePart{Part: shared.Part{Place: a.Place}}, err)
		}
	}
	f.countShared()
	resp.ThrottleMillis = f.c.charge(f.c.throttle(quota.Fetched, wait))
	out, err := f.c.EncodeShareFetch(resp)
	switch {
	case f.held == 0:
	case err != nil:
		f.h.records.give(f.held)
	default:
		out.OnRelease(func() { f.h.records.give(f.held) })
	}
	return out, err
}

// add puts a partition into the answer, under its topic. Its records are the answer's then.
func (f *shareFetch) add(resp *protocol.ShareFetchResponse, p *sharePart, acked *kerr.Error) {
	n := len(resp.Topics)
	if n == 0 || resp.Topics[n-1].TopicID != p.Topic {
		resp.Topics = append(resp.Topics, protocol.ShareFetchTopic{TopicID: p.Topic})
		n++
	}
	out := protocol.ShareFetchPartition{Index: p.Index, ErrorCode: errCode(p.err), AcknowledgeErrorCode: errCode(acked), Records: p.got.Records}
	why := p.err
	if why == nil {
		why = acked
	}
	topic, _ := topicName(f.c.image, p.Topic)
	hint, broker := f.shareHint(topic, p.Index, why)
	if out.Leader = hint; broker != nil {
		known := false
		for i := range resp.Brokers {
			known = known || resp.Brokers[i].NodeID == broker.NodeID
		}
		if !known {
			resp.Brokers = append(resp.Brokers, *broker)
		}
	}
	for _, r := range p.got.Ranges {
		a := kmsg.NewShareFetchResponseTopicPartitionAcquiredRecord()
		a.FirstOffset, a.LastOffset, a.DeliveryCount = r.First, r.Last, r.Count
		out.Acquired = append(out.Acquired, a)
	}
	resp.Topics[n-1].Partitions = append(resp.Topics[n-1].Partitions, out)
}

// countShared counts what was fetched.
func (f *shareFetch) countShared() {
	if f.h.opts.Topics == nil {
		return
	}
	for i := range f.parts {
		p := &f.parts[i]
		if t := f.c.image.Topic(p.topic); t != nil && (p.err != nil || p.got.Count > 0) {
			failed := 0
			if p.err != nil {
				failed = 1
			}
			f.h.opts.Topics.Of(t.Name).Fetched(f.c.origin.Number, 1, failed, p.got.Records.Len)
		}
	}
}
