package broker

import (
	"time"

	"muster/internal/auth"
	"muster/internal/journal"
	"muster/internal/meter"
	"muster/internal/quota"
)

// countRebalances counts what happened to groups.
func (b *Broker) countRebalances(entries []journal.Entry) {
	groups := &b.meters.Groups
	for i := range entries {
		switch e := &entries[i]; e.Kind {
		case journal.KindStarted, journal.KindEpoch:
			trigger := "unknown"
			if len(e.Triggers) > 0 {
				trigger = string(e.Triggers[0].Kind)
			}
			groups.Began(e.Group, trigger, e.Time)
		case journal.KindSettled:
			countPhases(groups, e)
		case journal.KindDeleted:
			groups.Gone(e.Group)
		}
	}
}

// countPhases counts how long a rebalance took. One that ended because everybody left
// never came to its end.
func countPhases(groups *meter.Groups, e *journal.Entry) {
	switch {
	case e.After == 0:
	case journal.Assigns(e.Type):
		groups.Took(meter.Reconcile, e.Time.Sub(e.Started))
	case e.JoinPhase >= 0 && e.SyncPhase >= 0:
		groups.Took(meter.Join, e.JoinPhase)
		groups.Took(meter.Sync, e.SyncPhase)
	}
}

// throttleKinds are the names of what clients have to wait for.
var throttleKinds = [...]string{quota.Produced: "produce", quota.Fetched: "fetch", quota.Mutations: "mutation", quota.Connections: "connection", quota.Requests: "request"}

// knowThrottled makes all kinds known, so that the first wait is seen as a change.
func (b *Broker) knowThrottled() {
	for _, kind := range throttleKinds {
		b.meters.Throttled.Add(meter.Labels{kind}, 0)
	}
}

// throttled counts how long a client has to wait.
func (b *Broker) throttled(kind quota.Kind, wait time.Duration) {
	b.meters.Throttled.Add(meter.Labels{throttleKinds[kind]}, wait.Seconds())
}

// denied is told what requests are denied.
func (b *Broker) denied(q auth.Request) {
	b.meters.CountDenial(q.Operation.String(), q.Type.String())
	b.audit.Denied(q)
}
