package rig

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
	p      *Process
	Conns  []net.Conn
	frames [][]byte // the heartbeat of each group
	next   []int    // frame of each connection
	// Flexible is for heartbeats of the consumer protocol, whose answers have a byte
	// more before them and may be longer.
	Flexible bool
}

func (b *Bench) NewBeater(p *Process, frames [][]byte) (*beater, error) {
	x := &beater{p: p, frames: frames}
	var err error
	x.Conns, err = b.Peers(p, b.Group.Connections)
	for i := range x.Conns {
		x.next = append(x.next, i%len(frames))
	}
	return x, err
}

// Beat beats for a while, in turn for each group, and returns how often.
func (x *beater) Beat(d time.Duration) (int, error) {
	var count atomic.Int64
	end := time.Now().Add(d)
	err := Together(x.Conns, func(i int, c net.Conn) error {
		var frame, buf []byte
		n := 0
		for ; n&15 > 0 || time.Now().Before(end); n++ {
			frame = append(frame[:0], x.frames[x.next[i]]...)
			x.next[i] = (x.next[i] + len(x.Conns)) % len(x.frames)
			SetCorrelation(frame, int32(n))
			if _, err := c.Write(frame); err != nil {
				return err
			}
			id, body, err := ReadFrame(c, buf)
			if err != nil {
				return err
			}
			if buf = body; x.Flexible && len(body) > beatAnswer {
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
func (b *Bench) beats(measures []beatMeasure, beaters []*beater) error {
	p, err := b.startBare("_answer", fmt.Sprint(beatAnswer))
	if err != nil {
		return err
	}
	defer p.Kill()
	var plain []*beater
	for _, x := range beaters {
		y, err := b.NewBeater(p, x.frames)
		if err != nil {
			return err
		}
		defer CloseAll(y.Conns) //nolint:gocritic // All of them, three at most, are needed until the end.
		plain = append(plain, y)
	}
	for range b.Rounds {
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
		b.Say("%s", b.Report.line(m.cpu))
	}
	return p.Stop()
}

func (b *Bench) beatOnce(m beatMeasure, s Side, x *beater) error {
	if _, err := x.Beat(b.Group.Time / 10); err != nil { // to warm up
		return err
	}
	n := 0
	spent, err := b.spend(x.p, m.name, func() (err error) {
		n, err = x.Beat(b.Group.Time)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	wall, cpu := spent.micros(n)
	b.Report.add(m.rate, s, 1e6/wall)
	b.Report.add(m.cpu, s, cpu)
	return nil
}
