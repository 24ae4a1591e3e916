// Fetch (key 1) reads record batches.
//
//	v4   isolation level     v11  rack               v15  replica state
//	v5   log start offset    v12  flexible, epochs   v16-18 fields for
//	v7   fetch sessions      v13  topic ids               followers; v16 also
//	                                                      has leader hints
//
// Left out: following replicas, preferred read replicas.

package handler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/coordinator"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/quota"
	"muster/internal/store"
)

// fetchRead is the work of one fetch.
type fetchRead struct {
	h         *Handler
	c         *call
	parts     []fetchPart
	maxBytes  int // at most
	limit     int // now
	inMemory  int // of what was read, if the store is far away
	minBytes  int
	maxWait   time.Duration
	committed bool
	byID      bool
	hints     bool   // the answer has a place for leader hints
	listener  string // that they are for
	from      coordinator.Client
	conn      Conn
	fetcher   fetcher
}

// longestWait bounds how long a fetch waits, whatever it asks for. Clients ask
// for less than their request timeout, which is half a minute mostly.
const longestWait = 5 * time.Minute

func (h *Handler) fetch(ctx context.Context, c *call) (*protocol.Response, error) {
	decoded, err := c.Decode()
	if err != nil {
		return nil, err
	}
	req := decoded.(*kmsg.FetchRequest)
	c.Body = nil // There are no bytes in the request that still lie in the frame.
	c.origin.Conn.Release()
	s, err := h.sessions.begin(req, c.origin.Conn, c.principal())
	if err != nil {
		var code *kerr.Error
		if errors.As(err, &code) {
			return c.EncodeFetch(&protocol.FetchResponse{ErrorCode: code.Code, ThrottleMillis: c.charge(0)})
		}
		return nil, err
	}
	f := &fetchRead{
		h: h, c: c, parts: s.parts, byID: req.Version >= 13, hints: req.Version >= 16, listener: c.origin.Listener,
		maxBytes: min(int(req.MaxBytes), int(c.image.Config.Int("fetch.max.bytes"))),
		minBytes: int(req.MinBytes), committed: req.IsolationLevel == 1,
		maxWait: min(time.Duration(req.MaxWaitMillis)*time.Millisecond, longestWait),
		conn:    c.origin.Conn, fetcher: h.fetched.by(c.ClientID, c.origin.Host),
	}
	if h.opts.Native != nil {
		f.from = c.client()
	}
	share := h.share(c, quota.Fetched)
	if wait := f.runWithin(ctx, share); wait > 0 {
		return c.EncodeFetch(&protocol.FetchResponse{ThrottleMillis: c.charge(c.throttle(quota.Fetched, wait)), SessionID: s.withdraw()})
	}
	resp := &protocol.FetchResponse{SessionID: s.id}
	granted := f.bytes(share)
	f.count()
	s.finish(f.parts, func(p *fetchPart) { f.add(resp, p) })
	resp.ThrottleMillis = c.charge(0)
	out, err := c.EncodeFetch(resp)
	if share != nil && err == nil {
		share.take(out.Size() - granted)
	}
	switch {
	case f.inMemory == 0:
	case err != nil:
		h.records.give(f.inMemory)
	default:
		out.OnRelease(func() { h.records.give(f.inMemory) })
	}
	return out, err
}

// run reads, and if there is too little waits for more, until there is enough,
// something is wrong, the time is up, or the client has gone. If there is no room
// for it to wait the answer is what there is.
func (f *fetchRead) run(ctx context.Context) {
	if f.read(ctx) || f.maxWait <= 0 {
		return
	}
	parked, done, ok := f.conn.Park(ctx, len(f.parts)*fetchPartSize)
	if !ok {
		return
	}
	defer done()
	w := partition.NewWaiter()
	var watched []*partition.Partition
	for i := range f.parts {
		if p := f.parts[i].part; p != nil {
			if f.committed {
				p.WatchCommitted(w)
			} else {
				p.Watch(w)
			}
			watched = append(watched, p)
		}
	}
	defer func() {
		for _, p := range watched {
			p.Unwatch(w)
		}
	}()
	timeout := time.NewTimer(f.maxWait)
	defer timeout.Stop()
	// What came between the first look and the watch has woken no one.
	for !f.read(ctx) {
		select {
		case <-w.C:
		case <-timeout.C:
			return
		case <-parked.Done():
			return
		}
	}
}

// read reads all partitions once; true says that the answer can go out.
func (f *fetchRead) read(ctx context.Context) bool {
	image := f.h.opts.Controller.Image()
	total, enough := 0, len(f.parts) == 0
	f.again()
	f.look(image)
	for i := 0; i < len(f.parts); {
		n := f.together(i, f.limit-total)
		f.readSome(ctx, image, f.parts[i:i+n], f.limit-total, total == 0)
		for ; n > 0; n-- {
			r := &f.parts[i].result
			total += r.Records.Len
			enough = enough || r.Err != nil || r.Diverging != nil
			i++
		}
	}
	if f.h.opts.RemoteStore {
		f.h.records.give(f.limit - total)
		f.inMemory = total
	}
	scarce := f.limit < f.maxBytes && total > 0
	return enough || scarce || total >= f.minBytes
}

// again gives up what was read before, and finds out how much may be read now.
func (f *fetchRead) again() {
	f.drop()
	f.limit = f.maxBytes
	if f.h.opts.RemoteStore {
		f.limit = f.h.records.take(f.maxBytes)
	}
}

// together says how many partitions from one on can be read at the same time
// without exceeding what is left. Only a store that is far away makes it worth it.
func (f *fetchRead) together(from, left int) int {
	n := 1
	if !f.h.opts.RemoteStore {
		return n
	}
	left -= f.parts[from].spec.MaxBytes
	for from+n < len(f.parts) && n < farReads && left >= f.parts[from+n].spec.MaxBytes {
		left -= f.parts[from+n].spec.MaxBytes
		n++
	}
	return n
}

// farReads is how many partitions of a store far away are read at once.
const farReads = 32

// readSome reads partitions, at the same time if they are several.
func (f *fetchRead) readSome(ctx context.Context, image *metadata.Image, parts []fetchPart, left int, minOne bool) {
	one := func(p *fetchPart) {
		spec := p.spec
		spec.MaxBytes, spec.MinOne, spec.Committed = min(spec.MaxBytes, left), minOne, f.committed
		p.result = f.readPart(ctx, image, p, spec)
	}
	if len(parts) == 1 {
		one(&parts[0])
		return
	}
	var reading beside
	for i := range parts {
		reading.Go(func() { one(&parts[i]) })
	}
	reading.Wait()
}

func (f *fetchRead) readPart(ctx context.Context, image *metadata.Image, p *fetchPart, spec partition.Fetch) partition.Fetched {
	err := p.refused
	if err == nil {
		p.part, err = f.h.find(image, p.topic, p.index)
	}
	if err != nil {
		return partition.Fetched{Err: err, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1}
	}
	f.fetcher.note(p.topic, p.index)
	if n := f.h.opts.Native; n != nil {
		n.Fetching(f.from, store.TopicPartition{Topic: p.topic, Partition: p.index}, spec.Offset)
	}
	return p.part.Read(ctx, spec)
}

// look finds out which topics the partitions are of, and whether they may be read. It
// goes by the newest rules each time: who loses a right reads no more from then on, in
// a session, and in a fetch that waits.
func (f *fetchRead) look(image *metadata.Image) {
	f.c.image = image
	for i := range f.parts {
		p := &f.parts[i]
		p.refused = nil
		if f.byID {
			if p.topic, p.refused = fetchedTopic(image, p); p.topic == "" {
				continue
			}
		}
		if !f.c.may(auth.Read, auth.Topic, p.topic) {
			p.refused = kerr.TopicAuthorizationFailed
		}
	}
}

// fetchedTopic returns the name of a topic that is named by its id. A session
// remembers the name, by which Kafka tells whether the topic is gone or another
// one is in its place: clients then ask for metadata again.
func fetchedTopic(image *metadata.Image, p *fetchPart) (string, *kerr.Error) {
	name, ok := topicName(image, p.topicID)
	switch {
	case ok:
		return name, nil
	case p.topic == "":
		return "", kerr.UnknownTopicID
	case image.Topic(p.topic) != nil:
		return p.topic, kerr.InconsistentTopicID
	}
	return p.topic, kerr.UnknownTopicOrPartition
}

// add puts a partition's result into the response, under its topic. Partitions
// of a topic come together, mostly.
func (f *fetchRead) add(resp *protocol.FetchResponse, p *fetchPart) {
	n := len(resp.Topics)
	if n == 0 || resp.Topics[n-1].Topic != p.topic || resp.Topics[n-1].TopicID != p.topicID {
		resp.Topics = append(resp.Topics, protocol.FetchTopic{Topic: p.topic, TopicID: p.topicID})
		n++
	}
	out := protocol.FetchPartition{
		Index: p.index, ErrorCode: errCode(p.result.Err),
		HighWatermark: p.result.HighWatermark, LastStableOffset: p.result.LastStableOffset, LogStartOffset: p.result.LogStartOffset,
		NoAborted: !f.committed, Aborted: p.result.Aborted, Records: p.result.Records,
	}
	if d := p.result.Diverging; d != nil {
		out.Diverging = &protocol.DivergingEpoch{Epoch: d.Epoch, EndOffset: d.EndOffset}
	}
	if f.hints {
		f.addHint(resp, &out, p)
	}
	p.result.Records = store.Records{} // The response owns them now.
	resp.Topics[n-1].Partitions = append(resp.Topics[n-1].Partitions, out)
}

// addHint tells who leads a partition instead of this broker.
func (f *fetchRead) addHint(resp *protocol.FetchResponse, out *protocol.FetchPartition, p *fetchPart) {
	hint, ok := f.h.hint(f.listener, p.topic, p.index, p.result.Err)
	if !ok {
		return
	}
	out.Leader = &protocol.LeaderHint{ID: hint.Leader, Epoch: hint.LeaderEpoch}
	if !slices.ContainsFunc(resp.Brokers, func(b protocol.FetchBroker) bool { return b.ID == hint.Leader }) {
		resp.Brokers = append(resp.Brokers, protocol.FetchBroker{ID: hint.Leader, Host: hint.endpoint.Host, Port: hint.endpoint.Port, Rack: hint.broker.Rack})
	}
}
