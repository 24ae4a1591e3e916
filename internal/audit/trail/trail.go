// Package trail writes the audit log to its topic: what people changed, what they were denied,
// and who logged in. Requests do not wait for it: what does not fit is left out, and the
// next entry says how much that was. What anyone can do as often as they like is counted
// together, and leaves room for the rest.
package trail

import (
	"context"
	"strings"
	"sync"
	"time"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/watch/writer"
)

// tick is how often it is looked whether what was counted is due.
const tick = time.Second

var kind = writer.Kind[audit.Entry]{
	Topic: metadata.AuditTopic, Name: "audit log", Anywhere: true,
	Key: func(e *audit.Entry) string { return e.Principal }, At: func(e *audit.Entry) time.Time { return e.Time }, Size: (*audit.Entry).Size,
}

// Options say where entries go.
type Options struct {
	Writer writer.Options
	Node   func() int32
}

// Trail is the audit log of a broker. A nil one takes nothing.
type Trail struct {
	*writer.Journal[audit.Entry]
	opts Options

	mu      sync.Mutex
	counter *audit.Counter
	leftOut int
}

// New returns an audit log that has nothing to write.
func New(opts Options) *Trail {
	a := &Trail{Journal: writer.New(opts.Writer, kind), opts: opts, counter: audit.NewCounter()}
	a.Lost = a.lost
	return a
}

// Changed returns what the handler tells of changes; nil for no log.
func (a *Trail) Changed() func(audit.Entry) {
	if a == nil {
		return nil
	}
	return a.tell
}

// Denied tells that someone may not do something.
func (a *Trail) Denied(q auth.Request) {
	if a == nil {
		return
	}
	a.tell(audit.Entry{
		Time: time.Now().UTC(), Kind: audit.Denied, Via: audit.ViaKafka, Broker: a.opts.Node(),
		Principal: string(q.Principal), Host: q.Host, Operation: q.Operation.String(),
		Resources: []audit.Resource{{Type: strings.ToLower(q.Type.String()), Name: q.Name}},
	}.Bounded())
}

// HTTP tells of what came over HTTP.
func (a *Trail) HTTP(e audit.Entry) {
	if a == nil {
		return
	}
	e.Time, e.Via, e.Broker = time.Now().UTC(), audit.ViaHTTP, a.opts.Node()
	a.tell(e.Bounded())
}

// Login tells of a login at a Kafka listener, and why it failed if it did.
func (a *Trail) Login(who auth.Principal, host, mechanism string, failed error) {
	e := audit.Entry{
		Time: time.Now().UTC(), Kind: audit.Login, Via: audit.ViaKafka, Broker: a.opts.Node(),
		Principal: string(who), Host: host, Mechanism: mechanism,
	}
	if failed != nil {
		e.Kind, e.Reason = audit.LoginFailed, failed.Error()
	}
	a.tell(e.Bounded())
}

// tell takes an entry, which is bounded.
func (a *Trail) tell(e audit.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counter.Add(e) {
		a.put(e)
	}
}

// put queues an entry. The lock is held.
func (a *Trail) put(e audit.Entry) {
	e.LeftOut = a.leftOut
	if a.Free() <= reserved(&e) {
		a.opts.Writer.Dropped(1)
		a.leftOut++
		return
	}
	if !a.Offer([]audit.Entry{e}) {
		a.leftOut++
		return
	}
	a.leftOut = 0
}

// reserved is which part of the room an entry must leave free for others: what anyone can
// do as often as they like for logins, and all of these for changes.
func reserved(e *audit.Entry) float64 {
	switch {
	case !e.Counted():
		return 0
	case e.Kind == audit.Login || e.Kind == audit.LoginFailed || e.Kind == audit.Logout:
		return 1. / 8
	case e.Kind == audit.Denied:
		return 1. / 4
	}
	return 1. / 2
}

// due queues the entries of what was counted.
func (a *Trail) due(now time.Time, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.counter.Due(now, all) {
		a.put(e)
	}
}

// Run writes until ctx ends, and then what is still there.
func (a *Trail) Run(ctx context.Context) {
	if a == nil {
		return
	}
	var writing sync.WaitGroup
	writing.Go(func() { a.Journal.Run(ctx) })
	every := time.NewTicker(tick)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-every.C:
			a.due(time.Now(), false)
		case <-ctx.Done():
		}
	}
	writing.Wait()
	a.due(time.Now(), true)
	a.Journal.Run(ctx)
	a.end()
}

// end tells of entries that are missing, since there is no further one to say so.
func (a *Trail) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leftOut > 0 {
		a.opts.Writer.Logger.Warn("audit log left out the last entries", "count", a.leftOut)
	}
}

// lost has entries that cannot be stored be in the broker's own log, so that they are not
// lost without a trace.
func (a *Trail) lost(entries []audit.Entry, err error) {
	a.mu.Lock()
	for i := range entries {
		a.leftOut += 1 + entries[i].LeftOut // Of those no one else will tell.
	}
	a.mu.Unlock()
	for i := range entries {
		a.opts.Writer.Logger.Warn("audit log could not be written", "error", err, "entry", entries[i].Line())
	}
}
