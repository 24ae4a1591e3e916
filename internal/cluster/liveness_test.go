package cluster

import (
	"context"
	"sync"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/redistest"
)

// freeze has a broker do nothing any more, and its lease run out. It still has the
// image that it had.
func (f *fleet) freeze(c *Controller) {
	c.stop()
	c.ended.Wait()
	f.leases.set(c.opts.Self.ID, false)
}

// wantNotFooled fails if a broker believes that it leads what others lead under a
// higher epoch.
func (f *fleet) wantNotFooled(c, other *Controller, topic string) {
	f.Helper()
	self := c.opts.Self.ID
	now, own := other.Image().Topic(topic).Partitions, c.Image().Topic(topic).Partitions
	if !c.Alive() { // Asked last: its lease may run out at any time.
		return
	}
	for i, p := range own {
		if p.Leader == self && p.LeaderEpoch < now[i].LeaderEpoch {
			f.Errorf("broker %d acts as the leader of partition %d by %+v, which is %+v now", self, i, p, now[i])
		}
	}
}

// TestABrokerThatWakesUpDoesNotLeadByWhatItKnewBefore has a broker renew its lease
// before it hears that others have taken over.
func TestABrokerThatWakesUpDoesNotLeadByWhatItKnewBefore(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(b, "orders")
	f.agreed(a, b)
	f.freeze(a)
	redistest.Eventually(t, "the other broker to take over", func() bool { return b.Image().Broker(1) == nil })

	// At first it gets as far as the lease.
	ended, end := context.WithCancel(t.Context())
	end()
	a.renew(ended)
	f.wantNotFooled(a, b, "orders")
	a.renew(t.Context())
	f.wantNotFooled(a, b, "orders")
	redistest.Eventually(t, "the broker to lead again", func() bool {
		a.renew(t.Context())
		return a.Alive() && a.registered()
	})
}

// A broker that has left gives its lease back, and must not act on what it led, though the
// lease would have gone on for a while.
func TestABrokerThatHasLeftIsNotAlive(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(b, "orders")
	f.agreed(a, b)
	a.stop()
	a.ended.Wait()
	a.believe(a.clock() + time.Hour)
	must(t, a.Leave(t.Context()))
	assert.False(t, a.Alive(), "it acts by a lease that it has given back")
	if live, _ := f.leases.live([]int32{1}); live[1] {
		t.Error("it has kept its lease, so that none may take its node id")
	}
}

// TestABrokerThatWakesUpIsNotBuriedByWhoSawItGoneBefore has a broker come back just
// when another has seen that its lease had run out, and is about to say so.
func TestABrokerThatWakesUpIsNotBuriedByWhoSawItGoneBefore(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(b, "orders")
	f.agreed(a, b)
	var once sync.Once
	woken := make(chan struct{})
	f.leases.mu.Lock()
	f.leases.looked = func(by int32) {
		f.leases.mu.Lock()
		gone := !f.leases.held[1]
		f.leases.mu.Unlock()
		if by == 2 && gone {
			once.Do(func() {
				a.renew(context.WithoutCancel(t.Context()))
				close(woken)
			})
		}
	}
	f.leases.mu.Unlock()
	f.freeze(a)
	<-woken
	// The next change comes behind whatever was to be said of the broker.
	must(t, create(t, b, metadata.NewTopic{Name: "later", Partitions: 1, Replication: 1}))
	f.wantNotFooled(a, b, "orders")
	assert.False(t, b.Image().Broker(1) == nil && a.Alive(), "a broker whose lease is held was taken out of the metadata")
}
