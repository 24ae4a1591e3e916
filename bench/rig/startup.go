package rig

import (
	"fmt"
	"net"
	"path/filepath"
	"time"
)

var startUp = metric{"start-up", "exec to first answer, empty folder", "ms", valueAim(50)}

// startUp measures how long a start on an empty folder takes until the first
// answer: ApiVersions from the broker, a byte from the bare program.
func (b *Bench) startUp() error {
	if !b.Wanted(startUp.group) {
		return nil
	}
	if err := b.InScratch(b.startOften); err != nil {
		return fmt.Errorf("%s: %w", startUp.group, err)
	}
	b.Say("%s", b.Report.line(startUp))
	return nil
}

func (b *Bench) startOften(folder string) error {
	for i := range b.tries {
		p, err := b.StartBroker(filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		if err := b.timed(startUp, broker, p, Greet); err != nil {
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
func (b *Bench) timed(m metric, s Side, p *Process, ready func(net.Conn) error) error {
	defer p.Kill()
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := ready(c); err != nil {
		return fmt.Errorf("%s: %w\n%s", s, err, p.Stderr)
	}
	b.Report.add(m, s, Millis(time.Since(p.Began)))
	return p.Stop()
}

func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ping sends a byte and waits for it to come back.
func ping(c net.Conn) error {
	b := []byte{1}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := c.Read(b)
	return err
}
