package broker

import (
	"context"
	"strings"
	"sync"
	"time"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/gate"
	"muster/internal/metadata"
	"muster/internal/watch/writer"
)

// auditTick is how often the audit log looks whether what was counted is due.
const auditTick = time.Second

var auditJournal = writer.Kind[audit.Entry]{
	Topic: metadata.AuditTopic, Name: "audit log", Anywhere: true,
	Key: func(e *audit.Entry) string { return e.Principal }, At: func(e *audit.Entry) time.Time { return e.Time }, Size: (*audit.Entry).Size,
}

// auditLog writes what people did to a topic. Requests do not wait for it: what does
// not fit is left out, and the next entry says how much that was.
type auditLog struct {
	*writer.Journal[audit.Entry]
	b *Broker

	mu      sync.Mutex
	counter *audit.Counter
	leftOut int
}

func newAudit(b *Broker, kind writer.Kind[audit.Entry]) *auditLog {
	a := &auditLog{Journal: newJournal(b, kind), b: b, counter: audit.NewCounter()}
	a.Lost = a.lost
	return a
}

func (b *Broker) openAudit() {
	if b.cfg.Bool("muster.audit.enable") {
		b.audit = newAudit(b, auditJournal)
		for _, g := range b.gates.All() {
			g.OnLogin(b.audit.login)
		}
	}
}

// hooks returns what the handler tells of changes and denials; nil for no log.
func (a *auditLog) hooks() (changed func(audit.Entry), denied func(auth.Request)) {
	if a == nil {
		return nil, nil
	}
	return a.tell, a.denied
}

// denied tells that somebody may not do something.
func (a *auditLog) denied(q auth.Request) {
	a.tell(audit.Entry{
		Time: time.Now().UTC(), Kind: audit.Denied, Via: audit.ViaKafka, Broker: a.b.nodeID(),
		Principal: string(q.Principal), Host: q.Host, Operation: q.Operation.String(),
		Resources: []audit.Resource{{Type: strings.ToLower(q.Type.String()), Name: q.Name}},
	}.Bounded())
}

// login tells of a login.
func (a *auditLog) login(l gate.Attempt) {
	e := audit.Entry{
		Time: time.Now().UTC(), Kind: audit.Login, Via: audit.ViaKafka, Broker: a.b.nodeID(),
		Principal: string(l.Principal), Host: l.Host, Mechanism: l.Mechanism,
	}
	if l.Err != nil {
		e.Kind, e.Reason = audit.LoginFailed, l.Err.Error()
	}
	a.tell(e.Bounded())
}

// tell takes an entry, which is bounded.
func (a *auditLog) tell(e audit.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counter.Add(e) {
		a.put(e)
	}
}

// put queues an entry. The lock is held.
func (a *auditLog) put(e audit.Entry) {
	e.LeftOut = a.leftOut
	if a.Free() <= reserved(&e) {
		a.b.meters.JournalDropped.Add(1)
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
func (a *auditLog) due(now time.Time, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.counter.Due(now, all) {
		a.put(e)
	}
}

// run writes until ctx ends, and then what is still there.
func (a *auditLog) run(ctx context.Context) {
	if a == nil {
		return
	}
	var writing sync.WaitGroup
	writing.Go(func() { a.Run(ctx) })
	tick := time.NewTicker(auditTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			a.due(time.Now(), false)
		case <-ctx.Done():
		}
	}
	writing.Wait()
	a.due(time.Now(), true)
	a.Run(ctx)
	a.end()
}

// end tells of entries that are missing, since there is no further one to say so.
func (a *auditLog) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leftOut > 0 {
		a.b.logger.Warn("audit log left out the last entries", "count", a.leftOut)
	}
}

// lost has entries that cannot be stored be in the broker's own log, so that they are not
// lost without a trace.
func (a *auditLog) lost(entries []audit.Entry, err error) {
	a.mu.Lock()
	for i := range entries {
		a.leftOut += 1 + entries[i].LeftOut // Of those nobody else will tell.
	}
	a.mu.Unlock()
	for i := range entries {
		a.b.logger.Warn("audit log could not be written", "error", err, "entry", entries[i].Line())
	}
}
