package handler

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
	"muster/internal/quota"
)

// usage measures for how long a request is worked on, for a client that has a quota of
// that (request_percentage, KIP-124). The time that it waits does not count: for records,
// for other members, or for a coordinator, whose work is not that of the client's thread
// in Kafka either.
type usage struct {
	share *share
	began time.Time
	idle  atomic.Int64 // nanoseconds; a request may ask several coordinators at once
}

// measure begins to, if the client of a request has a quota. As long as no one has any quota
// that costs one comparison. A login is no client's yet.
func (c *call) measure() {
	if c.image.Quotas == nil || c.origin.Session != nil && c.origin.Principal == "" {
		return
	}
	if s := c.h.findShare(c, quota.Requests); s != nil {
		c.usage = &usage{share: s, began: s.now()}
		c.origin.Conn = &timedConn{c.origin.Conn, c.usage}
	}
}

// charge has the time count that the request took up to now, and the connection not be read
// if that is too much. It returns what the answer says of it, together with what it says of
// another quota already.
func (c *call) charge(millis int32) int32 {
	u := c.usage
	if u == nil {
		return millis
	}
	c.usage = nil // Once.
	var wait time.Duration
	u.share.with(func(b *quota.Bucket, now time.Time) {
		percent := 100 * max(now.Sub(u.began)-time.Duration(u.idle.Load()), 0).Seconds()
		wait = b.Take(percent, now)
		b.Forgive(now)
	})
	// Kafka's rule: for no longer than a window at a time.
	return max(millis, c.throttle(quota.Requests, min(wait, u.share.limit.Window)))
}

// chargeAnswer is charge for an answer that is known.
func (c *call) chargeAnswer(resp kmsg.Response) {
	if c.usage == nil {
		return
	}
	before := int32(0)
	if t, ok := resp.(kmsg.ThrottleResponse); ok {
		before, _ = t.Throttle()
	}
	after := c.charge(before)
	if t, ok := resp.(kmsg.SetThrottleResponse); ok && after > before {
		t.SetThrottle(after)
	}
}

// rests says that the request waits, until the function that it returns is called.
func (u *usage) rests() (done func()) {
	since := u.share.now()
	return func() { u.idle.Add(int64(u.share.now().Sub(since))) }
}

// timedConn does not count the time for which requests are parked.
type timedConn struct {
	Conn
	usage *usage
}

func (t *timedConn) Park(ctx context.Context, bytes int) (parked context.Context, done func(), ok bool) {
	parked, end, ok := t.Conn.Park(ctx, bytes)
	if !ok {
		return parked, end, ok
	}
	over := t.usage.rests()
	return parked, func() { over(); end() }, true
}

// asking returns a coordinator whose work does not count.
func (c *call) asking(from Coordinator) Coordinator {
	if c.usage == nil {
		return from
	}
	return timedCoordinator{from, c.usage}
}

type timedCoordinator struct {
	Coordinator
	usage *usage
}

func (t timedCoordinator) Do(ctx context.Context, id string, from coordinator.Client, req kmsg.Request) kmsg.Response {
	defer t.usage.rests()()
	return t.Coordinator.Do(ctx, id, from, req)
}

func (t timedCoordinator) Each(ctx context.Context, from coordinator.Client, ids []string, part func(ids []string) kmsg.Request, merge func(kmsg.Response)) {
	defer t.usage.rests()()
	t.Coordinator.Each(ctx, from, ids, part, merge)
}

func (t timedCoordinator) All(ctx context.Context, from coordinator.Client, part func() kmsg.Request, merge func(kmsg.Response)) {
	defer t.usage.rests()()
	t.Coordinator.All(ctx, from, part, merge)
}
