package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// planLife has things happen to a client in the chaotic phase.
func (c *client) planLife() {
	w := c.w
	w.Every(w.plan.faults.client, func() {
		if !c.up {
			return
		}
		switch w.Rand.IntN(8) {
		case 0, 1:
			w.Count("client crashed")
			c.stop()
			c.startLater(w.About(c.session))
		case 2:
			w.Count("client crashed for good")
			c.stop()
			c.startLater(3*c.session + c.rebalance)
		case 3, 4:
			c.pause()
		case 5:
			c.leave()
		case 6:
			c.resubscribe()
		case 7:
			c.restart()
		}
	})
}

// pause stops the client for a while, as a long garbage collection does. It
// then goes on as if nothing had happened.
func (c *client) pause() {
	d := c.w.About(c.session)
	if c.w.Rand.IntN(4) == 0 {
		d += 2*c.session + c.rebalance
	}
	c.w.Tracef("%s: pauses for %s", c.name, d)
	c.w.Count("client paused")
	c.pausedUntil = c.w.Now + d
}

// leave ends the client in order. Static members do not take leave.
func (c *client) leave() {
	w := c.w
	if c.instance != nil {
		c.restart()
		return
	}
	w.Count("client left")
	c.phase = leaving
	c.token++
	c.call(c.leaveRequest(), noWait, func(answer) {
		c.stop()
		c.startLater(w.About(10 * time.Second))
	})
}

func (c *client) leaveRequest() kmsg.Request {
	m := kmsg.NewPtrLeaveGroupRequest()
	m.Version, m.Group, m.MemberID = c.versions.leave, c.group.id, c.member
	if m.Version >= 3 {
		e := kmsg.NewLeaveGroupRequestMember()
		e.MemberID, e.InstanceID = c.member, c.instance
		m.Members = append(m.Members, e)
	}
	return m
}

// restart is a quick one, inside of the session timeout.
func (c *client) restart() {
	c.w.Count("client restarted")
	c.stop()
	c.startLater(c.w.Between(10*time.Millisecond, 2*time.Second))
}

// resubscribe changes what the client wants, and has it join again.
func (c *client) resubscribe() {
	if c.phase == leaving {
		return
	}
	c.w.Count("client resubscribed")
	c.nonce++
	if len(c.topics) == 1 {
		c.topics = []string{topicName(0), topicName(1)}
	} else {
		c.topics = []string{topicName(c.w.Rand.IntN(2))}
	}
	c.dirty = true
	c.join("subscription changed")
}
