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
)

// auditTick is how often the audit log looks whether what was counted is due.
const auditTick = time.Second

var auditJournal = journalKind[audit.Entry]{
	topic: metadata.AuditTopic, name: "audit log", anywhere: true,
	key: func(e *audit.Entry) string { return e.Principal }, at: func(e *audit.Entry) time.Time { return e.Time },
}

// auditLog writes what people did to a topic. Requests do not wait for it: what does
// not fit is left out, and the next entry says how much that was.
type auditLog struct {
	*journalWriter[audit.Entry]

	mu      sync.Mutex
	counter *audit.Counter
	leftOut int
}

func (b *Broker) openAudit() {
	if b.cfg.Bool("muster.audit.enable") {
		b.audit = &auditLog{journalWriter: newJournal(b, auditJournal), counter: audit.NewCounter()}
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
	if cap(a.queue)-len(a.queue) <= reserved(&e, cap(a.queue)) {
		a.b.meters.JournalDropped.Add(1)
		a.leftOut++
		return
	}
	if !a.offer([]audit.Entry{e}) {
		a.leftOut++
		return
	}
	a.leftOut = 0
}

// reserved is how much of the queue an entry must leave free for others: what somebody can
// do as often as they like for logins, and all of these for changes.
func reserved(e *audit.Entry, queue int) int {
	switch {
	case !e.Counted():
		return 0
	case e.Kind == audit.Login || e.Kind == audit.LoginFailed || e.Kind == audit.Logout:
		return queue / 8
	case e.Kind == audit.Denied:
		return queue / 4
	}
	return queue / 2
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
	tick := time.NewTicker(auditTick)
	defer tick.Stop()
	for {
		select {
		case entries := <-a.queue:
			_ = a.write(entries) // It is logged, and the next one is tried.
		case <-tick.C:
			a.due(time.Now(), false)
		case <-ctx.Done():
			err := a.drain(nil)
			a.due(time.Now(), true)
			_ = a.drain(err) // What it says is logged.
			a.end()
			return
		}
	}
}

// end tells of entries that are missing, since there is no further one to say so.
func (a *auditLog) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leftOut > 0 {
		a.b.logger.Warn("audit log left out the last entries", "count", a.leftOut)
	}
}

// drain writes what is queued, and returns the error of the store. Such a store will not be
// back before the broker is gone, so after an error the rest is not tried.
func (a *auditLog) drain(err error) error {
	for {
		select {
		case entries := <-a.queue:
			if err != nil {
				a.lost(entries, err)
			} else {
				err = a.write(entries)
			}
		default:
			return err
		}
	}
}

// write stores entries.
func (a *auditLog) write(entries []audit.Entry) error {
	err := a.store(context.Background(), entries)
	if err != nil {
		a.lost(entries, err)
	}
	return err
}

// lost has entries that cannot be stored be in the broker's own log, so that they are not
// lost without a trace.
func (a *auditLog) lost(entries []audit.Entry, err error) {
	a.mu.Lock()
	for i := range entries {
		a.leftOut += 1 + entries[i].LeftOut // Of those nobody else will tell.
	}
	a.mu.Unlock()
	a.b.meters.JournalDropped.Add(uint64(len(entries)))
	for i := range entries {
		a.b.logger.Warn("audit log could not be written", "error", err, "entry", entries[i].Line())
	}
}
