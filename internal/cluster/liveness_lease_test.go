package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/store/mem"
)

// scriptedLease is a lease whose store takes its time, or has it lost.
type scriptedLease struct {
	testLease
	wait  func() // for the answer
	lost  bool
	asked func() // when it is asked who lives
}

func (l *scriptedLease) Renew(context.Context) (bool, error) {
	if l.lost {
		return false, nil
	}
	if l.wait != nil {
		l.wait()
	}
	return true, nil
}

func (l *scriptedLease) Acquire(context.Context) error {
	if l.wait != nil {
		l.wait()
	}
	return nil
}

func (l *scriptedLease) Live(context.Context, []int32) (map[int32]bool, error) {
	if l.asked != nil {
		l.asked()
	}
	return nil, nil
}

// withLease is a controller whose image has this broker and another, and which has a lease.
// Its log is of its own.
func withLease(t *testing.T, l *scriptedLease) *Controller {
	c := open(t, mem.New(), false)
	c.opts.Lease, c.epoch = l, time.Now()
	c.believe(0)
	c.put(metadata.Broker{ID: 2, Incarnation: "first"})
	return c
}

func (c *Controller) put(b metadata.Broker) {
	edit := c.image.Load().Edit()
	edit.PutBroker(b)
	c.image.Store(edit.Image())
}

// The store counts a lease from when it hears of it, which may be as soon as it was asked.
// A broker that counts from the answer believes for too long.
func TestALeaseCountsFromTheQuestion(t *testing.T) {
	for name, lost := range map[string]bool{"renewed": false, "taken again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &scriptedLease{wait: func() { time.Sleep(600 * time.Millisecond) }, lost: lost}
				c := withLease(t, l)
				time.Sleep(2 * l.TTL())
				c.renew(t.Context())
				time.Sleep(300 * time.Millisecond)
				assert.True(t, c.Alive(), "a lease that was asked for 0.9 s ago and lasts for 1 s has ended")
				time.Sleep(200 * time.Millisecond)
				assert.False(t, c.Alive(), "a lease that was asked for 1.1 s ago and lasts for 1 s is believed in")
			})
		})
	}
}

// A store that was away was away for everybody: who has just reached it again gives the
// others as long as a lease lasts.
func TestNobodyIsBuriedBeforeTheStoreWasThereForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &scriptedLease{}
		c := withLease(t, l)
		var asked []time.Duration
		l.asked = func() { asked = append(asked, c.clock()) }
		ctx, stop := context.WithCancel(t.Context())
		c.ended.Go(func() { c.watch(ctx) })
		time.Sleep(5 * time.Second) // The lease is not renewed meanwhile.
		assert.True(t, c.Image().Broker(2) != nil && len(asked) == 0, "asked who lives at %v, without a lease", asked)
		began := c.clock()
		c.ended.Go(func() { c.beat(ctx) })
		time.Sleep(5 * time.Second)
		stop()
		c.ended.Wait()
		assert.True(t, len(asked) != 0 && asked[0] >= began+l.TTL(), "asked who lives at %v, the store is there since %v", asked, began)
		assert.True(t, c.Image().Broker(2) == nil, "the dead broker is still there")
	})
}

// A broker whose lease has run out, while it waits for the store's answer, may be the one that
// is gone for the others; and one that has lost it begins anew.
func TestWhoHasNoLeaseIsNotSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &scriptedLease{}
		c := withLease(t, l)
		const most = 600 * time.Millisecond // of the second that a lease lasts
		renewed := func(steady bool) {
			t.Helper()
			time.Sleep(most)
			c.renew(t.Context())
			assert.Equal(t, c.isSteady(), steady, "steady after %v", c.clock())
		}
		renewed(false)
		renewed(false)
		renewed(true)
		time.Sleep(2 * most)
		assert.False(t, c.isSteady(), "steady without a lease: the last was asked for 1.2 s ago")
		renewed(true) // It was not lost.
		l.lost = true
		renewed(false)
		l.lost = false
		renewed(false)
		renewed(true)
	})
}
