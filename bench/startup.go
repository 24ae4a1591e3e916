package main

import (
	"fmt"
	"net"
	"path/filepath"
	"time"
)

var startUp = metric{"start-up", "exec to first answer, empty folder", "ms", valueAim(50)}

// startUp measures how long a start on an empty folder takes until the first
// answer: ApiVersions from the broker, a byte from the bare program.
func (b *bench) startUp() error {
	if !b.wanted(startUp.group) {
		return nil
	}
	if err := b.inScratch(b.startOften); err != nil {
		return fmt.Errorf("%s: %w", startUp.group, err)
	}
	b.say("%s", b.report.line(startUp))
	return nil
}

func (b *bench) startOften(folder string) error {
	for i := range b.tries {
		p, err := b.startBroker(filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		if err := b.timed(startUp, broker, p, greet); err != nil {
			return err
		}
		if p, err = b.startBare("_echo"); err != nil {
			return err
		}
		if err := b.timed(startUp, bare, p, ping); err != nil {
			return err
		}
	}
	return nil
}

// timed notes how long it is from exec until ready has had its answer, and
// stops the process.
func (b *bench) timed(m metric, s side, p *process, ready func(net.Conn) error) error {
	defer p.kill()
	c, err := p.dial(b.ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := ready(c); err != nil {
		return fmt.Errorf("%s: %w\n%s", s, err, p.stderr)
	}
	b.report.add(m, s, millis(time.Since(p.began)))
	return p.stop()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ping sends a byte and waits for it to come back.
func ping(c net.Conn) error {
	b := []byte{1}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := c.Read(b)
	return err
}
