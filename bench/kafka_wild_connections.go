package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const crowdName = "wild connections"

// spareFiles is how many files this program may need besides connections.
const spareFiles = 1000

// crowdSize is how many connections there can be.
func (x *session) crowdSize() (int, error) {
	want := x.o.wild.connections
	limit, err := openFiles()
	if err != nil {
		return 0, err
	}
	if limit < uint64(want+spareFiles) {
		want = max(1, int(limit)-spareFiles)
		x.leaveOut("%s connections instead of %s, since only %d files may be open", thousands(want), thousands(x.o.wild.connections), limit)
	}
	return want, nil
}

// connections measures what many connections cost: memory and processor time while
// they rest, and how long it takes when all close and come again.
func (x *session) connections() error {
	n, err := x.crowdSize()
	if err != nil {
		return err
	}
	err = x.withConn(func(c net.Conn) error { return x.newTopic(c, "wild-crowd", partitions) })
	if err != nil {
		return err
	}
	if err := x.greetOften(min(n, 500)); err != nil { // to warm up
		return err
	}
	time.Sleep(x.o.idle)
	before, err := x.p.status("VmRSS")
	if err != nil {
		return err
	}
	conns := make([]net.Conn, n)
	defer func() { closeCrowd(conns) }()
	err = x.arrive(conns, crowdAtOnce, func(c net.Conn) error {
		if err := greet(c); err != nil {
			return err
		}
		return checkMetadata(c, partitions)
	})
	if err != nil {
		return err
	}
	if err := x.atRest(n, before); err != nil {
		return err
	}
	for _, storm := range []struct {
		name   string
		atOnce int
	}{{fmt.Sprintf("%d at a time", crowdAtOnce), crowdAtOnce}, {"all at once", n}} {
		if err := x.storm(conns, storm.name, storm.atOnce); err != nil {
			return fmt.Errorf("come again, %s: %w", storm.name, err)
		}
	}
	return nil
}

// crowdAtOnce is how many connect at a time if not all do.
const crowdAtOnce = 64

// greetOften lets some connections come and go.
func (x *session) greetOften(n int) error {
	conns := make([]net.Conn, n)
	defer func() { closeCrowd(conns) }()
	return x.arrive(conns, crowdAtOnce, greet)
}

// atRest notes what connections cost that do nothing.
func (x *session) atRest(n int, before float64) error {
	time.Sleep(x.o.idle)
	after, err := x.p.status("VmRSS")
	if err != nil {
		return err
	}
	of := fmt.Sprintf(" of %s", thousands(n))
	x.note(pairMetric{group: crowdName, name: "memory per idle connection" + of, unit: "KB"}, 1000*(after-before)/float64(n))
	x.note(pairMetric{group: crowdName, name: "memory with all of them", unit: "MB"}, after)
	used, err := processorTime(x.p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(x.o.wild.time)
	now, err := processorTime(x.p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	share := (now - used).Seconds() / time.Since(began).Seconds()
	x.note(pairMetric{group: crowdName, name: "processor time at rest", unit: "% of a core"}, 100*share)
	return nil
}

// storm closes all connections, and has them come again at once.
func (x *session) storm(conns []net.Conn, how string, atOnce int) error {
	closeCrowd(conns)
	s, err := x.cost(crowdName+" "+how, func() error { return x.arrive(conns, atOnce, greet) })
	if err != nil {
		return err
	}
	x.note(pairMetric{group: crowdName, name: "all come again, " + how + ", to the last answer", unit: "ms"}, millis(s.wall))
	x.note(pairMetric{group: crowdName, name: "all come again, " + how + ", processor time", unit: "CPU-ms"}, millis(s.cpu))
	return nil
}

// arriveTimeout is how long all connections may take to arrive.
const arriveTimeout = 2 * time.Minute

// arrive fills conns with connections that have had their answers, so many at a time.
// One that is turned away tries again, as clients do.
func (x *session) arrive(conns []net.Conn, atOnce int, hello func(net.Conn) error) error {
	ctx, cancel := context.WithTimeout(x.ctx, arriveTimeout)
	defer cancel()
	var next, again atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, min(atOnce, len(conns)))
	for w := range errs {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(conns) && errs[w] == nil; i = int(next.Add(1)) - 1 {
				conns[i], errs[w] = x.arriveOne(ctx, &again, hello)
			}
		})
	}
	running.Wait()
	if n := again.Load(); n > 0 {
		x.say("%d connections were turned away and tried again", n)
	}
	return errors.Join(errs...)
}

func (x *session) arriveOne(ctx context.Context, again *atomic.Int64, hello func(net.Conn) error) (net.Conn, error) {
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", x.p.addr)
		if err == nil {
			deadline, _ := ctx.Deadline()
			if err = errors.Join(c.SetDeadline(deadline), hello(c)); err == nil {
				return c, nil
			}
			c.Close()
		}
		turned := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
		if !turned || ctx.Err() != nil {
			return nil, err
		}
		again.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
}

// closeCrowd closes what is there.
func closeCrowd(conns []net.Conn) {
	for i, c := range conns {
		if c != nil {
			c.Close()
			conns[i] = nil
		}
	}
}
