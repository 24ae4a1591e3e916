package exact

import (
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

// offsetKey is what an offset is committed for.
type offsetKey struct {
	group, topic string
	partition    int32
}

// offsets is what __consumer_offsets says, read without the code of groups.
type offsets struct {
	w       *world
	visible map[offsetKey][]version
	pending map[int64]map[offsetKey]version
	ended   map[offsetKey]time.Duration // when it was pending last
	team    generation                  // the last of the team in which a member got its partitions
}

// generation is one of a group.
type generation struct {
	number int32
	since  time.Duration
}

// version is a value of an offset.
type version struct {
	value int64
	at    int64         // offset of its record
	since time.Duration // when it became visible, or pending
	of    int           // the attempt that it belongs to, -1 if none
	topic metadata.TopicID
}

func newOffsets(w *world) *offsets {
	return &offsets{w: w, visible: map[offsetKey][]version{}, pending: map[int64]map[offsetKey]version{}, ended: map[offsetKey]time.Duration{}}
}

func (o *offsets) durable(e *entry) {
	pid := e.batch.ProducerID()
	if e.marker != nil {
		o.end(pid, e.marker.Commit)
		return
	}
	o.w.model.eachRecord(e, func(key, value []byte, offset int64) {
		var k kmsg.OffsetCommitKey
		if len(key) < 2 || key[1] > 1 || k.ReadFrom(key) != nil {
			return
		}
		at := offsetKey{k.Group, k.Topic, k.Partition}
		if value == nil {
			o.remove(at, offset)
			return
		}
		var v kmsg.OffsetCommitValue
		if err := v.ReadFrom(value); err != nil {
			o.w.Violated("an offset cannot be read: %v", err)
		}
		got := version{v.Offset, offset, o.w.Now, attemptOf(v.Metadata), v.TopicID}
		if !e.batch.Transactional() {
			o.visible[at] = append(o.visible[at], got)
			return
		}
		if o.pending[pid] == nil {
			o.pending[pid] = map[offsetKey]version{}
		}
		o.pending[pid][at] = got
	})
}

// end is a marker: pending offsets become visible, unless a newer one is, or go.
func (o *offsets) end(pid int64, commit bool) {
	for k, v := range o.pending[pid] {
		o.ended[k] = o.w.Now
		n := len(o.visible[k])
		if commit && (n == 0 || o.visible[k][n-1].at < v.at) {
			v.since = o.w.Now
			o.checkNext(k, v)
			o.visible[k] = append(o.visible[k], v)
			o.w.Count("pending offset became visible")
		}
	}
	delete(o.pending, pid)
}

// remove is a tombstone: the topic of an offset is gone, and what is pending of it
// goes too.
func (o *offsets) remove(k offsetKey, offset int64) {
	if k.topic != sideTopic {
		o.w.Violated("the offset of %v is removed", k)
	}
	o.w.Count("offset removed with its topic")
	for _, pending := range o.pending {
		if _, ok := pending[k]; ok {
			o.w.Count("pending offset removed with its topic")
			o.ended[k] = o.w.Now
			delete(pending, k)
		}
	}
	o.visible[k] = append(o.visible[k], version{value: -1, at: offset, since: o.w.Now, of: -1})
}

// checkTopics: no offset is left of a topic that is gone.
func (o *offsets) checkTopics() {
	for k, list := range o.visible {
		v := list[len(list)-1]
		if k.topic == sideTopic && v.value >= 0 && v.topic != o.w.image().Topic(sideTopic).ID {
			o.w.Violated("%v is %d still, of a topic that is gone", k, v.value)
		}
		if o.pendingNow(k) {
			o.w.Violated("%v is pending in the end", k)
		}
	}
}

// attemptOf reads which attempt an offset belongs to.
func attemptOf(metadata string) int {
	if n, err := strconv.Atoi(metadata); err == nil {
		return n
	}
	return -1
}

// checkNext: a transaction that is committed copied on from where the one before it
// had come, else something is copied twice or never.
func (o *offsets) checkNext(k offsetKey, v version) {
	if k.topic != inputTopic {
		return
	}
	if s := o.w.attempts[v.of].span(k.partition); s.from != max(o.current(k), 0) || s.to != v.value {
		o.w.judge("%v: transaction %d has copied %v, and all up to %d was copied before", k, v.of, s, o.current(k))
	}
}

// synced is told who has got partitions.
func (o *offsets) synced(req *kmsg.SyncGroupRequest, r *kmsg.SyncGroupResponse) {
	switch {
	case r.ErrorCode != 0:
	case req.Generation < o.team.number:
		o.w.Violated("%s gets partitions in generation %d after %d", req.MemberID, req.Generation, o.team.number)
	case req.Generation > o.team.number:
		o.w.Count("generation of the team")
		o.team = generation{req.Generation, o.w.Now}
	}
}

// committed: offsets of a member are taken only in its generation. One before is
// over once a member has got its partitions in the next.
func (o *offsets) committed(c *call, r *kmsg.TxnOffsetCommitResponse) {
	req := c.req.(*kmsg.TxnOffsetCommitRequest)
	if r.Topics[0].Partitions[0].ErrorCode != 0 || req.Generation < 0 {
		return
	}
	o.w.Count("offsets committed by a member")
	if req.Generation < o.team.number && o.team.since < c.arrived {
		o.w.Violated("%s commits offsets in generation %d, after %d", req.MemberID, req.Generation, o.team.number)
	}
}

// pendingNow says whether an offset is pending.
func (o *offsets) pendingNow(k offsetKey) bool {
	for _, p := range o.pending {
		if _, ok := p[k]; ok {
			return true
		}
	}
	return false
}

// pendingSince says since when an offset is pending, never if that is later than any
// time.
func (o *offsets) pendingSince(k offsetKey) time.Duration {
	since := time.Duration(math.MaxInt64)
	for _, p := range o.pending {
		if v, ok := p[k]; ok {
			since = min(since, v.since)
		}
	}
	return since
}

// current is the visible offset, -1 if there is none.
func (o *offsets) current(k offsetKey) int64 {
	if n := len(o.visible[k]); n > 0 {
		return o.visible[k][n-1].value
	}
	return -1
}

// fetched checks the answer to OffsetFetch: a value that was visible at some time
// since the request came, or 88 if something was pending at some time since.
func (o *offsets) fetched(c *call, resp *kmsg.OffsetFetchResponse) {
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				o.check(c, offsetKey{g.Group, t.Topic, p.Partition}, p.Offset, p.ErrorCode)
			}
		}
	}
}

func (o *offsets) check(c *call, k offsetKey, got int64, code int16) {
	w := o.w
	w.Tracef("%v is told to be %d, error %d; it is %v", k, got, code, o.visible[k])
	if code == codeUnstable {
		w.Count("unstable offset")
		if ended, ok := o.ended[k]; !o.pendingNow(k) && (!ok || ended < c.arrived) {
			w.Violated("%v is called unstable, though nothing is pending", k)
		}
		return
	}
	if code != 0 {
		return
	}
	if c.req.(*kmsg.OffsetFetchRequest).RequireStable && o.pendingSince(k) < c.arrived {
		w.Violated("%v is told to be %d, though it is pending", k, got)
	}
	list := o.visible[k]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].value == got {
			return
		}
		if list[i].since < c.arrived {
			w.Violated("%v is told to be %d, should be %d", k, got, list[i].value)
		}
	}
	if got != -1 {
		w.Violated("%v is told to be %d, which was never visible", k, got)
	}
}
