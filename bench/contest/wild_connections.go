package contest

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

	"muster/bench/rig"
)

const crowdName = "wild connections"

// spareFiles is how many files this program may need besides connections.
const spareFiles = 1000

// crowdSize is how many connections there can be.
func (x *session) crowdSize() (int, error) {
	want := x.o.wild.connections
	limit, err := rig.OpenFiles()
	if err != nil {
		return 0, err
	}
	if limit < uint64(want+spareFiles) {
		want = max(1, int(limit)-spareFiles)
		x.leaveOut("%s connections instead of %s, since only %d files may be open", rig.Thousands(want), rig.Thousands(x.o.wild.connections), limit)
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
	err = x.withConn(func(c net.Conn) error { return x.NewTopic(c, "wild-crowd", rig.Partitions) })
	if err != nil {
		return err
	}
	if err := x.greetOften(min(n, 500)); err != nil { // to warm up
		return err
	}
	time.Sleep(x.o.idle)
	before, err := x.p.Status("VmRSS")
	if err != nil {
		return err
	}
	conns := make([]net.Conn, n)
	defer func() { closeCrowd(conns) }()
	here, err := x.arrive(conns, crowdAtOnce, func(c net.Conn) error {
		if err := rig.Greet(c); err != nil {
			return err
		}
		return rig.CheckMetadata(c, rig.Partitions)
	})
	if err != nil || here < n {
		return fmt.Errorf("%d of %d connections came: %w", here, n, err)
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
	_, err := x.arrive(conns, crowdAtOnce, rig.Greet)
	return err
}

// atRest notes what connections cost that do nothing.
func (x *session) atRest(n int, before float64) error {
	time.Sleep(x.o.idle)
	after, err := x.p.Status("VmRSS")
	if err != nil {
		return err
	}
	of := fmt.Sprintf(" of %s", rig.Thousands(n))
	x.note(pairMetric{group: crowdName, name: "memory per idle connection" + of, unit: "KB"}, 1000*(after-before)/float64(n))
	x.note(pairMetric{group: crowdName, name: "memory with all of them", unit: "MB"}, after)
	used, err := rig.ProcessorTime(x.p.Cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(x.o.wild.time)
	now, err := rig.ProcessorTime(x.p.Cmd.Process.Pid)
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
	var here int
	s, err := x.cost(crowdName+" "+how, func() (err error) {
		here, err = x.arrive(conns, atOnce, rig.Greet)
		return err
	})
	if err != nil {
		return err
	}
	if here < len(conns) {
		x.leaveOut("of %s connections to %s that came again %s, %s had their answer when this was given up",
			rig.Thousands(len(conns)), x.side, how, rig.Thousands(here))
	}
	x.note(pairMetric{group: crowdName, name: "all come again, " + how + ", to the last answer", unit: "ms"}, rig.Millis(s.Wall))
	x.note(pairMetric{group: crowdName, name: "all come again, " + how + ", processor time", unit: "CPU-ms"}, rig.Millis(s.CPU))
	return nil
}

// How long all connections may take to arrive, and how long a client waits for one
// before it tries again, which is what Java's does by default.
const (
	arriveTimeout = 90 * time.Second
	helloTimeout  = 10 * time.Second
)

// arrive fills conns with connections that have had their answers, so many at a time,
// and returns how many there are when all came or time is up. One that is turned away
// tries again, as clients do.
func (x *session) arrive(conns []net.Conn, atOnce int, hello func(net.Conn) error) (int, error) {
	ctx, cancel := context.WithTimeout(x.Context, arriveTimeout)
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
		x.Say("%d connections were turned away and tried again", n)
	}
	here := 0
	for _, c := range conns {
		if c != nil {
			here++
		}
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return here, err // One is enough to know.
		}
	}
	return here, x.Context.Err()
}

// arriveOne connects, as often as it takes until time is up.
func (x *session) arriveOne(ctx context.Context, again *atomic.Int64, hello func(net.Conn) error) (net.Conn, error) {
	for {
		c, err := x.arriveOnce(ctx, hello)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !turnedAway(err) {
			return nil, err
		}
		again.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
}

func (x *session) arriveOnce(ctx context.Context, hello func(net.Conn) error) (net.Conn, error) {
	deadline := time.Now().Add(helloTimeout)
	if last, ok := ctx.Deadline(); ok && last.Before(deadline) {
		deadline = last
	}
	d := net.Dialer{Deadline: deadline}
	c, err := d.DialContext(ctx, "tcp", x.p.Addr)
	if err != nil {
		return nil, err
	}
	if err = errors.Join(c.SetDeadline(deadline), hello(c), c.SetDeadline(time.Time{})); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// turnedAway says whether a client may try again: its connection was closed, or the
// system has dropped it.
func turnedAway(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &timeout) && timeout.Timeout()
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
