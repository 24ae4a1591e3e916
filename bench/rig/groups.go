package rig

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GroupSizes says how much the measures of consumer groups do.
type GroupSizes struct {
	members     []int         // of the groups that are formed, the smallest first
	groups      []int         // of one member each, that beat; the last number is also measured and loaded
	offsets     int           // that each group commits before it is loaded
	loads       int           // starts after a clean stop, and as many after a kill
	Connections int           // that beat and commit
	Makers      int           // connections that make groups
	Time        time.Duration // to beat and to commit for
}

func DefaultGroupSizes() GroupSizes {
	return GroupSizes{
		members: []int{10, 100, 1000, 5000}, groups: []int{1, 1000, 100_000}, offsets: 10,
		loads: 2, Connections: 64, Makers: 1000, Time: 1500 * time.Millisecond,
	}
}

// NoDelay lets a group's first rebalance begin with the first member.
const NoDelay = "group.initial.rebalance.delay.ms=0"

// flat is how much dearer something may be per piece, with many, to be said to
// cost the same. It is what two runs of the same differ by on a busy machine.
const flat = 1.25

// groups measures how consumer groups grow.
func (b *Bench) groups() error {
	if len(b.Group.members) == 0 {
		return nil
	}
	if err := EnoughFiles(uint64(slices.Max(b.Group.members) + 1000)); err != nil {
		return err
	}
	for _, measure := range []func() error{b.joins, b.commits, b.manyGroups, b.consumerBeats, b.consumerGrowth} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// EnoughFiles checks that as many files may be open. Go's runtime has raised the
// limit as far as it may, here and in the broker.
func EnoughFiles(want uint64) error {
	limit, err := OpenFiles()
	if err == nil && limit < want {
		err = fmt.Errorf("groups: %d files may be open, which is less than the %d connections need: raise ulimit -n", limit, want)
	}
	return err
}

// startGroups starts a broker with a coordinator.
func (b *Bench) startGroups(start func(data string, set ...string) (*Process, error), data string) (*Process, error) {
	p, err := start(data, NoDelay)
	if err != nil {
		return nil, err
	}
	c, err := p.Dial(b.Context)
	if err == nil {
		defer c.Close()
		err = FindCoordinator(c)
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, p.Stderr)
	}
	return p, nil
}

// FindCoordinator has the broker make its coordinator, and waits for it.
func FindCoordinator(c net.Conn) error {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorKey = 2, "bench"
	for {
		resp, err := Ask(c, req)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(resp.(*kmsg.FindCoordinatorResponse).ErrorCode)
		if err == nil {
			break
		}
		if !errors.Is(err, kerr.CoordinatorNotAvailable) {
			return fmt.Errorf("find coordinator: %w", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for {
		list, err := listGroups(c)
		if err != nil || list != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// listGroups returns the state of each group, nil while they are loaded.
func listGroups(c net.Conn) (map[string]string, error) {
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 4
	answer, err := Ask(c, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.ListGroupsResponse)
	err = kerr.ErrorForCode(resp.ErrorCode)
	if errors.Is(err, kerr.CoordinatorLoadInProgress) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	list := make(map[string]string, len(resp.Groups))
	for _, g := range resp.Groups {
		list[g.Group] = g.GroupState
	}
	return list, nil
}

// peer is a connection that reads through a buffer, so that an answer costs the
// load generator one system call.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (p *peer) Read(b []byte) (int, error) { return p.in.Read(b) }

func (b *Bench) Peers(p *Process, n int) ([]net.Conn, error) {
	conns, err := b.Connect(p, n)
	for i, c := range conns {
		conns[i] = &peer{c, bufio.NewReaderSize(c, 512)}
	}
	return conns, err
}

// Together runs fn for each connection at the same time. When one fails, all
// connections are closed, so that no one waits for it.
func Together(conns []net.Conn, fn func(i int, c net.Conn) error) error {
	var once sync.Once
	var first error
	var running sync.WaitGroup
	for i, c := range conns {
		running.Go(func() {
			if err := fn(i, c); err != nil {
				once.Do(func() {
					first = err
					CloseAll(conns)
				})
			}
		})
	}
	running.Wait()
	return first
}

// Spent is what something took.
type Spent struct{ Wall, CPU time.Duration }

func (s Spent) micros(n int) (wall, cpu float64) {
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(n) }
	return per(s.Wall), per(s.CPU)
}

// spend runs fn and returns what it took, with what p does in the background
// just after it.
func (b *Bench) spend(p *Process, profile string, fn func() error) (Spent, error) {
	before, err := p.CPU()
	if err != nil {
		return Spent{}, err
	}
	began := time.Now()
	var s Spent
	err = b.Profile(p, profile, func() error {
		err := fn()
		s.Wall = time.Since(began)
		time.Sleep(b.Rest)
		return err
	})
	if err != nil {
		return s, fmt.Errorf("%w\n%s", err, p.Stderr)
	}
	after, err := p.CPU()
	s.CPU = after.Sub(before).Total()
	return s, err
}

// compare notes how many times more something is with many than with few, in
// each round.
func (b *Bench) compare(m metric, few, many metric) {
	x, y := b.Report.row(few), b.Report.row(many)
	note := func(s Side, x, y []float64) {
		for i := range min(len(x), len(y)) {
			if x[i] > 0 {
				b.Report.add(m, s, y[i]/x[i])
			}
		}
	}
	note(broker, x.Broker, y.Broker)
	note(bare, x.Bare, y.Bare)
}

// Thousands writes a number as people do.
func Thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}
