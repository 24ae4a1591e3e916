package rig

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// What the sink does about durability.
const (
	flushFirst = "first" // before it answers, as for acks=all
	flushNever = "never" // as for acks=1
)

// topicFor names the topics by what is produced to them. The names are equally
// long, so that the requests are.
func topicFor(flush string) string { return "bench-" + flush }

// fetchPasses is how many times fetch reads the data. It costs so little that
// once would not be enough to measure.
const fetchPasses = 4

// phase is a measure of moving data: what it is called and how both sides do
// it.
type phase struct {
	name   string
	cpu    metric
	user   metric
	system metric
	speed  metric
	settle bool // work goes on in the background after the last answer
}

func newPhase(name string, settle bool) phase {
	return phase{
		name: name, settle: settle,
		cpu:    metric{name, "processor time", "CPU-s/GB", ratioAim(1.5)},
		user:   metric{name, "of it user", "CPU-s/GB", noAim},
		system: metric{name, "of it system", "CPU-s/GB", noAim},
		speed:  metric{name, "throughput", "MB/s", noAim},
	}
}

var (
	produceAll = newPhase("produce acks=all", false)
	produceOne = newPhase("produce acks=1", true)
	fetchPhase = newPhase("fetch", false)
	loadPeak   = metric{"produce and fetch", "highest memory", "MB", noAim}
)

// data measures produce and fetch.
func (b *Bench) data() error {
	if !b.Wanted(produceAll.name) && !b.Wanted(produceOne.name) && !b.Wanted(fetchPhase.name) {
		return nil
	}
	for round := range b.Rounds {
		err := b.InScratch(func(folder string) error { return b.round(round, folder) })
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}

// round measures each phase once, on both sides in turn. Who comes first
// changes from round to round.
func (b *Bench) round(round int, folder string) error {
	if err := b.Touch(folder, 4.5*b.Size); err != nil {
		return err
	}
	r := &dataRound{Bench: b, folder: folder, number: round + 1}
	var err error
	if r.broker, err = b.StartBroker(filepath.Join(folder, "broker")); err != nil {
		return err
	}
	defer r.broker.Kill()
	steps := []struct {
		phase
		broker, bare func(phase) error
		needed       bool
	}{
		{produceAll, r.brokerProduce(flushFirst, -1), r.bareProduce(flushFirst), b.Wanted(fetchPhase.name)},
		{fetchPhase, r.brokerFetch, r.bareFetch, false},
		{produceOne, r.brokerProduce(flushNever, 1), r.bareProduce(flushNever), false},
	}
	for _, s := range steps {
		if !b.Wanted(s.name) && !s.needed {
			continue
		}
		both := []func(phase) error{s.broker, s.bare}
		for i := range both {
			if err := both[(i+round)%2](s.phase); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	peak, err := r.broker.Status("VmHWM")
	if err != nil {
		return err
	}
	b.Report.add(loadPeak, broker, peak)
	return r.broker.Stop()
}

// Touch makes the system use as much memory for files as the round will need,
// and give it back. On a virtual machine the first use of memory costs several
// times as much as what is to be measured, for the side that comes first. Reading an
// empty file fills the page cache without the disk.
func (b *Bench) Touch(folder string, gb float64) error {
	f, err := os.Create(filepath.Join(folder, "touch"))
	if err != nil {
		return err
	}
	err = f.Truncate(int64(gb * 1e9))
	piece := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Read(piece)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// dataRound is one round of produce and fetch.
type dataRound struct {
	*Bench
	number int
	folder string
	broker *Process
}

// requests is how many requests carry the data of a phase.
func (r *dataRound) requests(l *Load) int {
	return max(int(r.Size*1e9)/l.Bytes(), 2*Connections*InFlight)
}

// measure runs fn, which makes p move some bytes, and notes what it cost.
func (r *dataRound) measure(ph phase, s Side, p *Process, fn func() (int64, error)) error {
	before, err := p.CPU()
	if err != nil {
		return err
	}
	began := time.Now()
	var took time.Duration
	var n int64
	err = r.Profile(p, ph.name, func() error {
		n, err = fn()
		took = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	after, err := p.CPU()
	if ph.settle {
		after, err = r.Settle(p)
	}
	if err != nil {
		return err
	}
	used, gb := after.Sub(before), float64(n)/1e9
	if r.Wanted(ph.name) {
		r.Report.add(ph.cpu, s, used.Total().Seconds()/gb)
		r.Report.add(ph.user, s, used.user.Seconds()/gb)
		r.Report.add(ph.system, s, used.system.Seconds()/gb)
		r.Report.add(ph.speed, s, 1000*gb/took.Seconds())
	}
	r.Say("round %d, %s, %s: %.2f GB, %.2f CPU-s/GB, %.0f MB/s", r.number, ph.name, s, gb, used.Total().Seconds()/gb, 1000*gb/took.Seconds())
	return nil
}

// Settle waits until the process has been at rest for longer than a second, so
// that what it does in the background counts too, and returns its processor
// time.
func (b *Bench) Settle(p *Process) (cpu, error) {
	last, err := p.CPU()
	for quiet := 0; quiet < 5 && err == nil; quiet++ {
		time.Sleep(b.Rest)
		var now cpu
		if now, err = p.CPU(); now.Total()-last.Total() > time.Second/Ticks {
			quiet = -1
		}
		last = now
	}
	return last, err
}

// brokerProduce produces to the broker.
func (r *dataRound) brokerProduce(flush string, acks int16) func(phase) error {
	return func(ph phase) error {
		l := newLoad(topicFor(flush), acks)
		conns, err := r.Connect(r.broker, Connections)
		if err != nil {
			return err
		}
		defer CloseAll(conns)
		if err := createTopic(conns[0], topicFor(flush), Partitions); err != nil {
			return err
		}
		check := func(body []byte) error {
			if len(body) == 0 || body[0] != 0 {
				return fmt.Errorf("tags in the header of a Produce answer")
			}
			return checkProduced(body[1:], 12, Partitions)
		}
		n, err := r.produce(ph, broker, r.broker, l, conns, check)
		if err != nil {
			return err
		}
		return CheckEnds(conns[0], topicFor(flush), Partitions, int64(n*BatchRecords))
	}
}

// bareProduce does the same with the bare program.
func (r *dataRound) bareProduce(flush string) func(phase) error {
	return func(ph phase) error {
		folder := filepath.Join(r.folder, "bare-"+flush)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		p, err := r.startBare("_sink", folder, flush)
		if err != nil {
			return err
		}
		defer p.Kill()
		conns, err := r.Connect(p, Connections)
		if err != nil {
			return err
		}
		defer CloseAll(conns)
		l := newLoad(topicFor(flush), -1)
		n, err := r.produce(ph, bare, p, l, conns, func([]byte) error { return nil })
		if err != nil {
			return fmt.Errorf("%w\n%s", err, p.Stderr)
		}
		if err := checkSizes(folder, int64(n*l.BatchSize)); err != nil {
			return err
		}
		return p.Stop()
	}
}

// produce sends a little to warm up and then what is measured, and returns how
// many requests that was in all.
func (r *dataRound) produce(ph phase, s Side, p *Process, l *Load, conns []net.Conn, check func([]byte) error) (int, error) {
	n := r.requests(l)
	warm := n / 20
	if err := l.Pump(conns, warm, s == broker, check); err != nil {
		return 0, err
	}
	err := r.measure(ph, s, p, func() (int64, error) {
		return int64(n * l.Bytes()), l.Pump(conns, n, s == broker, check)
	})
	return warm + n, err
}

// checkSizes checks that the bare program has written everything.
func checkSizes(folder string, want int64) error {
	for i := range Partitions {
		info, err := os.Stat(filepath.Join(folder, fmt.Sprintf("%d.log", i)))
		if err != nil {
			return err
		}
		if info.Size() != want {
			return fmt.Errorf("the bare program wrote %d bytes to %s, expected %d", info.Size(), info.Name(), want)
		}
	}
	return nil
}

func (b *Bench) Connect(p *Process, n int) ([]net.Conn, error) {
	var conns []net.Conn
	for range n {
		c, err := p.Dial(b.Context)
		if err != nil {
			CloseAll(conns)
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func CloseAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}
