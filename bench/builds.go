package main

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
	*options
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

func parseBuilds(args []string, stderr io.Writer) (*buildOptions, error) {
	o := &buildOptions{options: &options{group: defaultGroupSizes(), rest: 250 * time.Millisecond}, burst: 1}
	f := flag.NewFlagSet("bench builds", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.before, "before", "", "`program` to compare with")
	f.StringVar(&o.after, "after", "", "`program` to measure instead of building ./cmd/muster")
	f.IntVar(&o.rounds, "rounds", 12, "rounds, each with brokers of its own")
	f.IntVar(&o.pairs, "pairs", 25, "how often both work in a round, for each measure")
	f.IntVar(&o.groups, "groups", 1000, "groups of one member each, that beat")
	only := f.String("only", "", "measure only what matches this `regexp`")
	f.StringVar(&o.dir, "dir", "bin", "`folder` for the data, on the disk to be measured; what is made in it is removed")
	f.StringVar(&o.profiles, "cpuprofile", "", "measure the package muster inside this program instead of -after, and write processor profiles of it to this `folder`")
	f.DurationVar(&o.timeout, "timeout", 35*time.Minute, "give up after this long")
	if err := o.read(f, args, buildsUsage, only); err != nil {
		return nil, err
	}
	if o.before == "" {
		return nil, errors.New("-before is needed: the program to compare with; -h explains")
	}
	if o.rounds < 1 || o.pairs < 1 || o.groups < 1 {
		return nil, errors.New("-rounds, -pairs and -groups must be more than 0")
	}
	o.broker, o.embedded = o.after, o.profiles != ""
	return o, nil
}

// builds is one run.
type builds struct {
	*buildOptions
	before, after *bench
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
	prepare    func(b *bench, p *process) (burst func() (float64, error), err error)
}

func runBuilds(ctx context.Context, o *buildOptions, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	after := &bench{options: o.options, ctx: ctx, progress: stderr, began: time.Now()}
	if err := after.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(after.folder)) }()
	if err := after.build(); err != nil {
		return err
	}
	x := &builds{buildOptions: o, after: after, before: after.with(o.before)}
	for _, m := range buildMeasures(o.burst, o.groups) {
		if after.wanted(m.name) {
			x.rows = append(x.rows, &buildRow{buildMeasure: m})
		}
	}
	if len(x.rows) == 0 {
		return fmt.Errorf("-only %s matches nothing; -h lists the measures", o.only)
	}
	for round := range o.rounds {
		err := after.inScratch(func(folder string) error { return x.round(round, folder) })
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
func (b *bench) with(broker string) *bench {
	o := *b.options
	o.broker, o.embedded = broker, false
	other := *b
	other.options = &o
	return &other
}

func (x *builds) round(round int, folder string) error {
	var both [2]*process
	defer func() {
		for _, p := range both {
			if p != nil {
				p.kill()
			}
		}
	}()
	builds := x.builds()
	for turn := range builds {
		i := (turn + round) % 2
		p, err := builds[i].startGroups(builds[i].startBroker, filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		both[i] = p
	}
	for _, r := range x.rows {
		if err := x.measure(round, r, both); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		x.after.say("round %d of %d, %s: %.3f times", round+1, x.buildOptions.rounds, r.name, r.ratios[round])
	}
	return errors.Join(both[0].stop(), both[1].stop())
}

func (x *builds) builds() [2]*bench { return [2]*bench{x.before, x.after} }

// measure has both builds do their work in turn.
func (x *builds) measure(round int, r *buildRow, both [2]*process) error {
	// What this work needs ends with it, so that the next has both builds at rest.
	ctx, done := context.WithCancel(x.after.ctx)
	defer done()
	var bursts [2]func() (float64, error)
	for turn := range bursts {
		i := (turn + round) % 2
		c := *x.builds()[i]
		c.ctx = ctx
		var err error
		if bursts[i], err = r.prepare(&c, both[i]); err != nil {
			return err
		}
	}
	return x.after.profile(both[1], r.name, func() error { return x.inTurn(r, both, bursts) })
}

func (x *builds) inTurn(r *buildRow, both [2]*process, bursts [2]func() (float64, error)) error {
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
				return fmt.Errorf("%w\n%s", err, both[i].stderr)
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
	r.ratios = append(r.ratios, median(ratios))
	return nil
}

// times returns the processor time of both.
func times(both [2]*process) (out [2]time.Duration, err error) {
	for i, p := range both {
		if out[i], err = processorTime(p.cmd.Process.Pid); err != nil {
			return out, err
		}
	}
	return out, nil
}

func buildMeasures(burst float64, groups int) []buildMeasure {
	n := func(requests float64) int { return max(4, int(requests*burst)) }
	d := time.Duration(burst * float64(60*time.Millisecond))
	return []buildMeasure{
		{"produce 64 KB", "CPU-µs per MB", producing(shape{partitions, recordSize, batchRecords}, 1, n(40), 1e-6)},
		{"produce 1 KB", "CPU-µs per request", producing(shape{1, recordSize, 1}, 1, n(1500), 0)},
		{"durable produce 64 KB", "CPU-µs per MB", producing(shape{partitions, recordSize, batchRecords}, -1, n(40), 1e-6)},
		{"fetch 1 MB", "CPU-µs per MB", fetching(n(250))},
		{"fetch 1 KB", "CPU-µs per request", fetchingOne(n(1500))},
		{"heartbeat", "CPU-µs per request", beating(groups, d)},
	}
}

// newTopic makes a topic and connections to produce to it.
func newTopic(b *bench, p *process, name string, partitions int) ([]net.Conn, error) {
	conns, err := b.connect(p, connections)
	if err != nil {
		return nil, err
	}
	return conns, createTopic(conns[0], name, partitions)
}

// producing sends so many requests a burst. What it counts is requests, or their
// bytes in some unit.
func producing(s shape, acks int16, requests int, unit float64) func(*bench, *process) (func() (float64, error), error) {
	return func(b *bench, p *process) (func() (float64, error), error) {
		topic := fmt.Sprintf("produce-%d-%d-%d", s.partitions, s.records, acks)
		l := s.load(topic, acks)
		conns, err := newTopic(b, p, topic, s.partitions)
		if err != nil {
			return nil, err
		}
		work := float64(requests)
		if unit > 0 {
			work *= unit * float64(l.bytes())
		}
		return func() (float64, error) {
			return work, l.pump(conns, requests, true, produced(s))
		}, nil
	}
}

// fetching reads what so many requests have produced, once a burst.
func fetching(requests int) func(*bench, *process) (func() (float64, error), error) {
	return func(b *bench, p *process) (func() (float64, error), error) {
		const topic = "fetch-many"
		conns, err := newTopic(b, p, topic, partitions)
		if err != nil {
			return nil, err
		}
		l := newLoad(topic, 1)
		if err := l.pump(conns, requests, true, produced(l.shape)); err != nil {
			return nil, err
		}
		f := newFetcher(conns[0], topic, l, int64(requests*batchRecords))
		f.verify = true
		if err := f.pass(); err != nil {
			return nil, err
		}
		f.verify = false
		return func() (float64, error) {
			f.read = 0
			err := f.pass()
			return float64(f.read) / 1e6, err
		}, nil
	}
}

// fetchingOne reads one record, so many times a burst.
func fetchingOne(requests int) func(*bench, *process) (func() (float64, error), error) {
	return func(b *bench, p *process) (func() (float64, error), error) {
		const topic = "fetch-one"
		conns, err := newTopic(b, p, topic, 1)
		if err != nil {
			return nil, err
		}
		produce := shape{1, recordSize, 1}.load(topic, 1)
		if err := produce.pump(conns[:1], 4, true, produced(produce.shape)); err != nil {
			return nil, err
		}
		req := fetchRequest(topic, 1)
		req.Topics[0].Partitions = []kmsg.FetchRequestTopicPartition{fetchPartition(0, 0, 1)}
		l := &load{frame: requestFrame(req, 0)}
		check := func(body []byte) error {
			if n := len(body); n < produce.batchSize || n > produce.batchSize+100 {
				return fmt.Errorf("an answer of %d bytes to a fetch of one record", n)
			}
			return nil
		}
		return func() (float64, error) { return float64(requests), l.pump(conns, requests, true, check) }, nil
	}
}

// beating makes so many groups, and sends heartbeats of their members for some
// time a burst.
func beating(groups int, d time.Duration) func(*bench, *process) (func() (float64, error), error) {
	return func(b *bench, p *process) (func() (float64, error), error) {
		x, err := b.gather(p, groups)
		if err != nil {
			return nil, err
		}
		beats, err := b.newBeater(p, x.frames())
		if err != nil {
			return nil, err
		}
		return func() (float64, error) {
			n, err := beats.beat(d)
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
		machine(), x.buildOptions.rounds, x.pairs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measure\tunit\tbefore\tafter\tafter/before\tsmallest to largest")
	for _, r := range x.rows {
		low, high := interval(r.ratios)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f (%.3f–%.3f)\t%.3f–%.3f\n", r.name, r.unit, number(median(r.before)), number(median(r.after)),
			median(r.ratios), low, high, slices.Min(r.ratios), slices.Max(r.ratios))
	}
	return t.Flush()
}
