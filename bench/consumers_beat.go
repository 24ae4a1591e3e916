package main

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
func (b *bench) consumerBeats() error {
	if !b.wanted(idleBeats) {
		return nil
	}
	err := b.inScratch(func(folder string) error { return b.consumerBeatRounds(filepath.Join(folder, "broker")) })
	if err != nil {
		return fmt.Errorf("%s: %w", idleBeats, err)
	}
	return nil
}

func (b *bench) consumerBeatRounds(data string) error {
	groups := min(1000, b.group.groups[len(b.group.groups)-1])
	p, err := b.startGroups(b.startBroker, data)
	if err != nil {
		return err
	}
	defer p.kill()
	classic, err := b.gather(p, groups)
	if err != nil {
		return err
	}
	var frames [][]byte
	err = b.onePeer(p, func(c net.Conn) (err error) {
		frames, err = b.consumerFrames(c, groups)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.idleRounds(p, classic.frames(), frames); err != nil {
		return err
	}
	return p.stop()
}

func (b *bench) idleRounds(p *process, classic, consumer [][]byte) error {
	m := beatMeasure{
		name: idleBeats,
		rate: metric{idleBeats, "heartbeats", "1/s", noAim},
		cpu:  metric{idleBeats, "per heartbeat, processor time", "CPU-µs", ratioAim(idleAim)},
	}
	old, err := b.newBeater(p, classic)
	if err != nil {
		return err
	}
	defer closeAll(old.conns)
	x, err := b.newBeater(p, consumer)
	if err != nil {
		return err
	}
	defer closeAll(x.conns)
	x.flexible = true
	for range b.rounds {
		if err := b.beatOnce(m, broker, x); err != nil {
			return err
		}
		if err := b.beatOnce(m, bare, old); err != nil {
			return err
		}
	}
	b.say("%s", b.report.line(m.cpu))
	return nil
}

// onePeer does something with a connection of its own.
func (b *bench) onePeer(p *process, fn func(net.Conn) error) error {
	conns, err := b.peers(p, 1)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	return fn(conns[0])
}
