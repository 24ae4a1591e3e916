package rig

import (
	"fmt"
	"net"
	"path/filepath"
)

const idleBeats = "groups heartbeat consumer"

// idleAim is how much dearer an idle heartbeat of the consumer protocol may be than
// a classic one.
const idleAim = 1.3

// consumerBeats measures what an idle heartbeat of the consumer protocol costs. Bare is
// a classic one, to the same broker with as many groups.
func (b *Bench) consumerBeats() error {
	if !b.Wanted(idleBeats) {
		return nil
	}
	err := b.InScratch(func(folder string) error { return b.consumerBeatRounds(filepath.Join(folder, "broker")) })
	if err != nil {
		return fmt.Errorf("%s: %w", idleBeats, err)
	}
	return nil
}

func (b *Bench) consumerBeatRounds(data string) error {
	groups := min(1000, b.Group.groups[len(b.Group.groups)-1])
	p, err := b.startGroups(b.StartBroker, data)
	if err != nil {
		return err
	}
	defer p.Kill()
	classic, err := b.Gather(p, groups)
	if err != nil {
		return err
	}
	var frames [][]byte
	err = b.onePeer(p, func(c net.Conn) (err error) {
		frames, err = b.ConsumerFrames(c, groups)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.idleRounds(p, classic.Frames(), frames); err != nil {
		return err
	}
	return p.Stop()
}

func (b *Bench) idleRounds(p *Process, classic, consumer [][]byte) error {
	m := beatMeasure{
		name: idleBeats,
		rate: metric{idleBeats, "heartbeats", "1/s", noAim},
		cpu:  metric{idleBeats, "per heartbeat, processor time", "CPU-µs", ratioAim(idleAim)},
	}
	old, err := b.NewBeater(p, classic)
	if err != nil {
		return err
	}
	defer CloseAll(old.Conns)
	x, err := b.NewBeater(p, consumer)
	if err != nil {
		return err
	}
	defer CloseAll(x.Conns)
	x.Flexible = true
	for range b.Rounds {
		if err := b.beatOnce(m, broker, x); err != nil {
			return err
		}
		if err := b.beatOnce(m, bare, old); err != nil {
			return err
		}
	}
	b.Say("%s", b.Report.line(m.cpu))
	return nil
}

// onePeer does something with a connection of its own.
func (b *Bench) onePeer(p *Process, fn func(net.Conn) error) error {
	conns, err := b.Peers(p, 1)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	return fn(conns[0])
}
