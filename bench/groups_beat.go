package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// beatAnswer is what follows the correlation id in the answer to a heartbeat:
// how long to wait, and the error code.
const beatAnswer = 6

// beatMeasure is a measure with so many groups.
type beatMeasure struct {
	name      string
	rate, cpu metric
}

func newBeatMeasure(groups int) beatMeasure {
	name := fmt.Sprintf("groups heartbeat %d", groups)
	return beatMeasure{
		name: name,
		rate: metric{name, "heartbeats", "1/s", noAim},
		cpu:  metric{name, "per heartbeat, processor time", "CPU-µs", noAim},
	}
}

// beater is a process that is sent heartbeats, over some connections with one
// in flight on each.
type beater struct {
	p      *process
	conns  []net.Conn
	frames [][]byte // the heartbeat of each group
	next   []int    // frame of each connection
	// flexible is for heartbeats of the consumer protocol, whose answers have a byte
	// more before them and may be longer.
	flexible bool
}

func (b *bench) newBeater(p *process, frames [][]byte) (*beater, error) {
	x := &beater{p: p, frames: frames}
	var err error
	x.conns, err = b.peers(p, b.group.connections)
	for i := range x.conns {
		x.next = append(x.next, i%len(frames))
	}
	return x, err
}

// beat beats for a while, in turn for each group, and returns how often.
func (x *beater) beat(d time.Duration) (int, error) {
	var count atomic.Int64
	end := time.Now().Add(d)
	err := together(x.conns, func(i int, c net.Conn) error {
		var frame, buf []byte
		n := 0
		for ; n&15 > 0 || time.Now().Before(end); n++ {
			frame = append(frame[:0], x.frames[x.next[i]]...)
			x.next[i] = (x.next[i] + len(x.conns)) % len(x.frames)
			setCorrelation(frame, int32(n))
			if _, err := c.Write(frame); err != nil {
				return err
			}
			id, body, err := readFrame(c, buf)
			if err != nil {
				return err
			}
			if buf = body; x.flexible && len(body) > beatAnswer {
				body = body[1 : 1+beatAnswer]
			}
			if id != int32(n) || len(body) != beatAnswer {
				return fmt.Errorf("heartbeat %d: answer %d of %d bytes", n, id, len(body))
			}
			if code := int16(binary.BigEndian.Uint16(body[4:])); code != 0 {
				return fmt.Errorf("heartbeat: error %d", code)
			}
		}
		count.Add(int64(n))
		return nil
	})
	return int(count.Load()), err
}

// beats measures heartbeats to brokers with different numbers of groups and to
// a bare program, in turn.
func (b *bench) beats(measures []beatMeasure, beaters []*beater) error {
	p, err := b.startBare("_answer", fmt.Sprint(beatAnswer))
	if err != nil {
		return err
	}
	defer p.kill()
	var plain []*beater
	for _, x := range beaters {
		y, err := b.newBeater(p, x.frames)
		if err != nil {
			return err
		}
		defer closeAll(y.conns) //nolint:gocritic // There are three of them.
		plain = append(plain, y)
	}
	for range b.rounds {
		for i, m := range measures {
			if err := b.beatOnce(m, broker, beaters[i]); err != nil {
				return err
			}
			if err := b.beatOnce(m, bare, plain[i]); err != nil {
				return err
			}
		}
	}
	for _, m := range measures {
		b.say("%s", b.report.line(m.cpu))
	}
	return p.stop()
}

func (b *bench) beatOnce(m beatMeasure, s side, x *beater) error {
	if _, err := x.beat(b.group.time / 10); err != nil { // to warm up
		return err
	}
	n := 0
	spent, err := b.spend(x.p, m.name, func() (err error) {
		n, err = x.beat(b.group.time)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	wall, cpu := spent.micros(n)
	b.report.add(m.rate, s, 1e6/wall)
	b.report.add(m.cpu, s, cpu)
	return nil
}
