package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// buildOptions are the flags of "bench builds".
type buildOptions struct {
	*Options
	before, after string
	pairs         int
	groups        int
	burst         float64 // how much is done at a time, 1 for what the flags have
}

const buildsUsage = `Usage: go -C bench run . builds -before PROGRAM [flags]

Measures what two builds of the broker take of the processor for the same work.
Both run at once and work in turn, for some hundredths of a second each, so that
whatever else the machine does hits both; who comes first changes. What a build
does in the background counts too. Each round starts both anew: where their memory
and their files lie makes more of a difference than most changes to the program.

To compare the tree with an older commit:
  git worktree add bin/old COMMIT && go build -C bin/old -o ../before ./cmd/muster
  go -C bench run . builds -before bin/before

Measures (for -only): produce 64 KB, produce 1 KB, durable produce 64 KB, fetch
1 MB, fetch 1 KB, heartbeat. Sizes are of a partition in a request.

`

func ParseBuilds(args []string, stderr io.Writer) (*buildOptions, error) {
	o := &buildOptions{Options: &Options{Group: DefaultGroupSizes(), Rest: 250 * time.Millisecond}, burst: 1}
	f := flag.NewFlagSet("bench builds", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.before, "before", "", "`program` to compare with")
	f.StringVar(&o.after, "after", "", "`program` to measure instead of building ./cmd/muster")
	f.IntVar(&o.Rounds, "rounds", 12, "rounds, each with brokers of its own")
	f.IntVar(&o.pairs, "pairs", 25, "how often both work in a round, for each measure")
	f.IntVar(&o.groups, "groups", 1000, "groups of one member each, that beat")
	only := f.String("only", "", "measure only what matches this `regexp`")
	f.StringVar(&o.Dir, "dir", "bin", "`folder` for the data, on the disk to be measured; what is made in it is removed")
	f.StringVar(&o.Profiles, "cpuprofile", "", "measure the package muster inside this program instead of -after, and write processor profiles of it to this `folder`")
	f.DurationVar(&o.Timeout, "timeout", 35*time.Minute, "give up after this long")
	if err := o.Read(f, args, buildsUsage, only); err != nil {
		return nil, err
	}
	if o.before == "" {
		return nil, errors.New("-before is needed: the program to compare with; -h explains")
	}
	if o.Rounds < 1 || o.pairs < 1 || o.groups < 1 {
		return nil, errors.New("-rounds, -pairs and -groups must be more than 0")
	}
	o.Broker, o.Embedded = o.after, o.Profiles != ""
	return o, nil
}

// builds is one run.
type builds struct {
	*buildOptions
	before, after *Bench
	rows          []*buildRow
}

// buildRow is what was measured of one kind of work.
type buildRow struct {
	buildMeasure
	before, after []float64 // per piece of work
	ratios        []float64 // after by before, the median of each round's pairs
}

// buildMeasure is a kind of work. prepare returns a burst of it, which says how
// much it did.
type buildMeasure struct {
	name, unit string
	prepare    func(b *Bench, p *Process) (burst func() (float64, error), err error)
}

func RunBuilds(ctx context.Context, o *buildOptions, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	after := &Bench{Options: o.Options, Context: ctx, Progress: stderr, Began: time.Now()}
	if err := after.Prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(after.Folder)) }()
	if err := after.Build(); err != nil {
		return err
	}
	x := &builds{buildOptions: o, after: after, before: after.with(o.before)}
	for _, m := range buildMeasures(o.burst, o.groups) {
		if after.Wanted(m.name) {
			x.rows = append(x.rows, &buildRow{buildMeasure: m})
		}
	}
	if len(x.rows) == 0 {
		return fmt.Errorf("-only %s matches nothing; -h lists the measures", o.Only)
	}
	for round := range o.Rounds {
		err := after.InScratch(func(folder string) error { return x.round(round, folder) })
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before the end: %w", ctx.Err())
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return x.write(stdout)
}

// with is this run with another broker.
func (b *Bench) with(broker string) *Bench {
	o := *b.Options
	o.Broker, o.Embedded = broker, false
	other := *b
	other.Options = &o
	return &other
}

func (x *builds) round(round int, folder string) error {
	var both [2]*Process
	defer func() {
		for _, p := range both {
			if p != nil {
				p.Kill()
			}
		}
	}()
	builds := x.builds()
	for turn := range builds {
		i := (turn + round) % 2
		p, err := builds[i].startGroups(builds[i].StartBroker, filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		both[i] = p
	}
	for _, r := range x.rows {
		if err := x.measure(round, r, both); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		x.after.Say("round %d of %d, %s: %.3f times", round+1, x.buildOptions.Rounds, r.name, r.ratios[round])
	}
	return errors.Join(both[0].Stop(), both[1].Stop())
}

func (x *builds) builds() [2]*Bench { return [2]*Bench{x.before, x.after} }

// measure has both builds do their work in turn.
func (x *builds) measure(round int, r *buildRow, both [2]*Process) error {
	// What this work needs ends with it, so that the next has both builds at rest.
	ctx, done := context.WithCancel(x.after.Context)
	defer done()
	var bursts [2]func() (float64, error)
	for turn := range bursts {
		i := (turn + round) % 2
		c := *x.builds()[i]
		c.Context = ctx
		var err error
		if bursts[i], err = r.prepare(&c, both[i]); err != nil {
			return err
		}
	}
	return x.after.Profile(both[1], r.name, func() error { return x.inTurn(r, both, bursts) })
}

func (x *builds) inTurn(r *buildRow, both [2]*Process, bursts [2]func() (float64, error)) error {
	var ratios []float64
	for pair := range x.pairs + 2 { // The first two warm up.
		var work, cost [2]float64
		began, err := times(both)
		if err != nil {
			return err
		}
		for turn := range bursts {
			i := (turn + pair) % 2
			if work[i], err = bursts[i](); err != nil {
				return fmt.Errorf("%w\n%s", err, both[i].Stderr)
			}
		}
		ended, err := times(both)
		if err != nil {
			return err
		}
		for i := range cost {
			cost[i] = float64((ended[i] - began[i]).Nanoseconds()) / 1000 / work[i]
		}
		if pair < 2 {
			continue
		}
		r.before, r.after = append(r.before, cost[0]), append(r.after, cost[1])
		ratios = append(ratios, cost[1]/cost[0])
	}
	r.ratios = append(r.ratios, Median(ratios))
	return nil
}

// times returns the processor time of both.
func times(both [2]*Process) (out [2]time.Duration, err error) {
	for i, p := range both {
		if out[i], err = ProcessorTime(p.Cmd.Process.Pid); err != nil {
			return out, err
		}
	}
	return out, nil
}

func buildMeasures(burst float64, groups int) []buildMeasure {
	n := func(requests float64) int { return max(4, int(requests*burst)) }
	d := time.Duration(burst * float64(60*time.Millisecond))
	return []buildMeasure{
		{"produce 64 KB", "CPU-µs per MB", producing(Shape{Partitions, RecordSize, BatchRecords}, 1, n(40), 1e-6)},
		{"produce 1 KB", "CPU-µs per request", producing(Shape{1, RecordSize, 1}, 1, n(1500), 0)},
		{"durable produce 64 KB", "CPU-µs per MB", producing(Shape{Partitions, RecordSize, BatchRecords}, -1, n(40), 1e-6)},
		{"fetch 1 MB", "CPU-µs per MB", fetching(n(250))},
		{"fetch 1 KB", "CPU-µs per request", fetchingOne(n(1500))},
		{"heartbeat", "CPU-µs per request", beating(groups, d)},
	}
}

// NewTopic makes a topic and connections to produce to it.
func newTopic(b *Bench, p *Process, name string, partitions int) ([]net.Conn, error) {
	conns, err := b.Connect(p, Connections)
	if err != nil {
		return nil, err
	}
	return conns, createTopic(conns[0], name, partitions)
}

// producing sends so many requests a burst. What it counts is requests, or their
// bytes in some unit.
func producing(s Shape, acks int16, requests int, unit float64) func(*Bench, *Process) (func() (float64, error), error) {
	return func(b *Bench, p *Process) (func() (float64, error), error) {
		topic := fmt.Sprintf("produce-%d-%d-%d", s.Partitions, s.Records, acks)
		l := s.Load(topic, acks)
		conns, err := newTopic(b, p, topic, s.Partitions)
		if err != nil {
			return nil, err
		}
		work := float64(requests)
		if unit > 0 {
			work *= unit * float64(l.Bytes())
		}
		return func() (float64, error) {
			return work, l.Pump(conns, requests, true, Produced(s))
		}, nil
	}
}

// fetching reads what so many requests have produced, once a burst.
func fetching(requests int) func(*Bench, *Process) (func() (float64, error), error) {
	return func(b *Bench, p *Process) (func() (float64, error), error) {
		const topic = "fetch-many"
		conns, err := newTopic(b, p, topic, Partitions)
		if err != nil {
			return nil, err
		}
		l := newLoad(topic, 1)
		if err := l.Pump(conns, requests, true, Produced(l.Shape)); err != nil {
			return nil, err
		}
		f := NewFetcher(conns[0], topic, l, int64(requests*BatchRecords))
		f.Verify = true
		if err := f.Pass(); err != nil {
			return nil, err
		}
		f.Verify = false
		return func() (float64, error) {
			f.Read = 0
			err := f.Pass()
			return float64(f.Read) / 1e6, err
		}, nil
	}
}

// fetchingOne reads one record, so many times a burst.
func fetchingOne(requests int) func(*Bench, *Process) (func() (float64, error), error) {
	return func(b *Bench, p *Process) (func() (float64, error), error) {
		const topic = "fetch-one"
		conns, err := newTopic(b, p, topic, 1)
		if err != nil {
			return nil, err
		}
		produce := Shape{1, RecordSize, 1}.Load(topic, 1)
		if err := produce.Pump(conns[:1], 4, true, Produced(produce.Shape)); err != nil {
			return nil, err
		}
		req := FetchRequest(topic, 1)
		req.Topics[0].Partitions = []kmsg.FetchRequestTopicPartition{FetchPartition(0, 0, 1)}
		l := &Load{Frame: RequestFrame(req, 0)}
		check := func(body []byte) error {
			if n := len(body); n < produce.BatchSize || n > produce.BatchSize+100 {
				return fmt.Errorf("an answer of %d bytes to a fetch of one record", n)
			}
			return nil
		}
		return func() (float64, error) { return float64(requests), l.Pump(conns, requests, true, check) }, nil
	}
}

// beating makes so many groups, and sends heartbeats of their members for some
// time a burst.
func beating(groups int, d time.Duration) func(*Bench, *Process) (func() (float64, error), error) {
	return func(b *Bench, p *Process) (func() (float64, error), error) {
		x, err := b.Gather(p, groups)
		if err != nil {
			return nil, err
		}
		beats, err := b.NewBeater(p, x.Frames())
		if err != nil {
			return nil, err
		}
		return func() (float64, error) {
			n, err := beats.Beat(d)
			return float64(n), err
		}, nil
	}
}

// interval is where the median of all values is that these are a sample of, in
// nineteen of twenty cases.
func interval(v []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(v))
	half := float64(len(s)) / 2
	at := max(0, int(half-0.98*math.Sqrt(2*half)))
	return s[at], s[len(s)-1-at]
}

func (x *builds) write(w io.Writer) error {
	fmt.Fprintf(w, "%s. Processor time, medians of %d rounds of %d pairs; the ratio with its interval of 95 %%.\n\n",
		machine(), x.buildOptions.Rounds, x.pairs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measure\tunit\tbefore\tafter\tafter/before\tsmallest to largest")
	for _, r := range x.rows {
		low, high := interval(r.ratios)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f (%.3f–%.3f)\t%.3f–%.3f\n", r.name, r.unit, Number(Median(r.before)), Number(Median(r.after)),
			Median(r.ratios), low, high, slices.Min(r.ratios), slices.Max(r.ratios))
	}
	return t.Flush()
}
