// Package contest measures muster and Apache Kafka, one after the other, with the
// load of package rig: requests that are encoded once, so that it costs the
// same for both, and little.
//
//	data     produce and fetch, latency, and both with every append on disk
//	groups   rebalances, heartbeats, offset commits
//	txns     transactions, and reading a topic in which many were aborted
//	start    start-up, memory at rest, restart after a kill
//	wild     what a broker meets in the wild: see wild.go
//
// A round measures everything once on both sides, and who comes first changes
// from round to round. Only one of the two runs at any time.
package contest

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/bench/rig"
)

// pageRule has muster answer like Kafka, as soon as the page cache has the
// records. Otherwise muster answers acks=all, and everything about groups, when
// the disk has them.
const pageRule = "muster.acks.all.flush"

// contestOptions are the flags of the contest, and what has no flag but is less
// in tests.
type contestOptions struct {
	*rig.Options
	kafka bool   // measure Kafka too
	jars  string // folder for Kafka's jars
	img   string // folder for the charts, "" for img beside the file that is written

	restart    float64       // GB in the topic before the kill
	budget     time.Duration // that producing may take, whatever the size
	warm       time.Duration // to work at full speed before anything is measured
	latency    time.Duration // to measure latency for
	members    []int         // of the groups that are formed
	beating    int           // groups that beat
	starts     int           // on an empty folder, in each round
	idle       time.Duration // before memory at rest is read
	timesLimit int           // how often small groups are formed at most
	wild       wildSizes
}

const contestUsage = `Usage: go -C bench run . kafka [flags]

Measures the broker and Apache Kafka with the same load, one after the other,
and prints medians, spread and how many times better the broker is. Folders and
files are relative to the root of the repository. It needs Java and Maven. Progress goes to standard
error, the result to standard output.

Measures (for -only): produce 100 B, 1 partition, acks=1 (1 KB, 12 partitions,
acks=all), fetch 100 B, 1 partition, latency, durable produce, durable latency,
memory, group of 10 (100, 1000), heartbeats, commits, durable commits, consumer
group of 10 (100, 1000), consumer heartbeats, txns of
100 records (1 record), 1 partition (12 partitions), 8 ids (1 id), txns
read_committed (read_uncommitted), start-up, restart, wild defaults produce
(partitions, commits, create, tail), wild TLS produce (fetch), wild lz4 (zstd)
produce (fetch), wild connections, wild tail, quiet (compaction, retention,
rebalance, page cache), wild far behind, wild Java (librdkafka) produce (consume).

`

func Parse(args []string, stderr io.Writer) (*contestOptions, error) {
	o := &contestOptions{
		Options: &rig.Options{Group: rig.DefaultGroupSizes(), Txn: rig.DefaultTxnSizes(), Rest: 250 * time.Millisecond},
		restart: 1, budget: 4 * time.Second, warm: 5 * time.Second, latency: 15 * time.Second,
		members: []int{10, 100, 1000}, beating: 100, starts: 2, idle: 3 * time.Second, timesLimit: 50, wild: defaultWildSizes(),
	}
	o.Group.Time = 3 * time.Second
	f := flag.NewFlagSet("bench kafka", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.Rounds, "rounds", 3, "rounds of everything, both sides in turn")
	f.IntVar(&o.wild.rounds, "wild-rounds", 1, "in how many of the rounds to measure what begins with wild")
	f.Float64Var(&o.wild.behind, "behind", 10, "`GB` that consumers are behind in wild far behind")
	f.Float64Var(&o.Size, "size", 0.3, "`GB` to produce per phase and round; fetch reads six times as much")
	only := f.String("only", "", "measure only what matches this `regexp`; of the tables, only one that is complete is written then")
	f.StringVar(&o.Dir, "dir", "bin", "`folder` for the data, on the disk to be measured; what is made in it is removed")
	f.StringVar(&o.Broker, "broker", "", "`program` to measure instead of building ./cmd/muster")
	f.BoolVar(&o.Embedded, "embedded", false, "measure the package muster inside this program instead of ./cmd/muster")
	f.StringVar(&o.Profiles, "cpuprofile", "", "write processor profiles of the broker to this `folder`; implies -embedded")
	f.BoolVar(&o.kafka, "kafka", true, "measure Kafka too")
	f.StringVar(&o.jars, "jars", "bin/kafka", "`folder` that Maven copies Kafka to, once")
	f.BoolVar(&o.JSON, "json", false, "print JSON with every value instead of the table")
	f.StringVar(&o.Write, "write", "", "also put tables and charts into this Markdown `file`, between its bench kafka markers")
	f.DurationVar(&o.Timeout, "timeout", 75*time.Minute, "give up after this long")
	if err := o.Read(f, args, contestUsage, only); err != nil {
		return nil, err
	}
	if o.Rounds < 1 || o.Size <= 0 || o.wild.behind <= 0 {
		return nil, errors.New("-rounds, -size and -behind must be more than 0")
	}
	o.Embedded = o.Embedded || o.Profiles != ""
	o.Command = rig.Command("go -C bench run . kafka", f)
	return o, nil
}

// contest is one run.
type contest struct {
	*rig.Bench
	o        *contestOptions
	subjects []*subject
	pairs    *pairReport
	java     *kafka      // nil if only muster is measured
	tls      *tls.Config // that trusts the brokers of the part about TLS
	round    int
	noted    []noted // in this turn
	short    bool    // something was left out
}

// noted is a value of a turn.
type noted struct {
	metric pairMetric
	value  float64
}

// subject is one of the two that are measured.
type subject struct {
	side  rig.Side
	start func(data string, set ...string) (*rig.Process, error)
}

func Run(ctx context.Context, o *contestOptions, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	b := &rig.Bench{Options: o.Options, Context: ctx, Report: rig.NewReport(o.Command), Progress: stderr, Began: time.Now()}
	c := &contest{Bench: b, o: o, pairs: &pairReport{Report: b.Report}}
	if err := rig.EnoughFiles(uint64(slices.Max(o.members) + 1000)); err != nil {
		return err
	}
	if err := b.Prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Folder)) }()
	if err := c.build(); err != nil {
		return err
	}
	others := newOthers()
	err = c.all()
	c.pairs.Others = others.share()
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before the end: %w", ctx.Err())
	}
	if err != nil {
		return err
	}
	if len(c.pairs.rows) == 0 {
		return fmt.Errorf("-only %s matches nothing; -h lists the measures", o.Only)
	}
	c.Say("done")
	return c.publish(stdout)
}

// build builds muster, and gets Kafka.
func (c *contest) build() error {
	if err := c.Bench.Build(); err != nil {
		return err
	}
	c.subjects = []*subject{{rig.Ours, c.StartBroker}}
	if !c.o.kafka {
		return nil
	}
	k, err := c.getKafka()
	if err != nil {
		return err
	}
	c.java = k
	c.subjects = append(c.subjects, &subject{rig.Theirs, k.start})
	c.pairs.Kafka = k.version
	return nil
}

// touchSize is how many times the size of a phase a round writes in all.
const touchSize = 18

// all measures everything, again and again.
func (c *contest) all() error {
	for c.round = range c.Rounds {
		if err := c.InScratch(func(folder string) error { return c.Touch(folder, touchSize*c.Size) }); err != nil {
			return err
		}
		for _, measure := range append([]func(s *subject, folder string) error{c.data, c.coordinator, c.consumers, c.txns, c.startUps, c.killed}, c.wild()...) {
			for i := range c.subjects {
				if err := c.turn(c.subjects[(i+c.round)%len(c.subjects)], measure); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// turn measures one side. Kafka may try twice: on a machine that is busy
// otherwise it may lose touch with its own controller, and give up its
// partitions for a while. Nothing of the first try counts then. A failure of
// muster is a failure of the run.
func (c *contest) turn(s *subject, measure func(s *subject, folder string) error) error {
	for tries := 1; ; tries++ {
		c.noted = nil
		err := c.InScratch(func(folder string) error { return measure(s, folder) })
		switch {
		case err == nil:
			for _, n := range c.noted {
				c.pairs.add(n.metric, s.side, n.value)
			}
			return nil
		case s.side == rig.Ours || tries == 2 || c.Context.Err() != nil:
			return fmt.Errorf("round %d, %s: %w", c.round+1, s.side, err)
		}
		c.pairs.Again++
		c.Say("round %d of %d, %s tries again: %s", c.round+1, c.Rounds, s.side, err)
	}
}

// wanted says whether a measure is asked for, and notes if one is not that the large
// table should have. Some measures have a table of their own, and rows of the consumer
// protocol are there or not.
func (c *contest) wanted(name string) bool {
	wanted := c.Bench.Wanted(name)
	if !wanted && tableOf(name) == "" && !strings.HasPrefix(name, "consumer ") {
		c.short = true
	}
	return wanted
}

// anyWanted says whether one of the measures was asked for.
func (c *contest) anyWanted(names ...string) bool { return slices.ContainsFunc(names, c.wanted) }

// allWanted says whether all of them were.
func (c *contest) allWanted(names ...string) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !c.wanted(name) })
}

// publish prints the result, and writes it to the file that was asked for.
func (c *contest) publish(stdout io.Writer) error {
	if err := c.publishFile(); err != nil {
		return err
	}
	if c.JSON {
		return c.pairs.writeJSON(stdout)
	}
	return c.pairs.writeTable(stdout)
}

// publishFile writes the tables that are complete: those of transactions and of the
// wild if all of them was asked for, and the large one if nothing of it was left out.
func (c *contest) publishFile() error {
	if c.Write == "" {
		return nil
	}
	if c.allWanted(c.Txn.Names()...) {
		if err := c.pairs.writeTxns(c.Write); err != nil {
			return err
		}
	}
	if c.allWanted(wildNames()...) {
		if err := c.pairs.writeWild(c.Write); err != nil {
			return err
		}
	}
	if c.short {
		c.Say("not everything was measured, and the rest of %s is left alone", c.Write)
		return nil
	}
	if c.o.img == "" {
		c.o.img = filepath.Join(filepath.Dir(c.Write), "img")
	}
	return c.pairs.writeMarkdown(c.Write, c.o.img)
}

// session is a broker of one of the sides that runs.
type session struct {
	*contest
	*subject
	p    *rig.Process
	data string
}

// open starts a broker that answers from the page cache.
func (c *contest) open(s *subject, folder string, set ...string) (*session, error) {
	if s.side == rig.Ours {
		set = append(set, pageRule+"=false")
	}
	return c.openWith(s, folder, set...)
}

// openWith starts a broker with its defaults, but for what is set.
func (c *contest) openWith(s *subject, folder string, set ...string) (*session, error) {
	x := &session{contest: c, subject: s, data: filepath.Join(folder, "data")}
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		x.p, err = s.start(x.data, set...)
	}
	return x, err
}

// note notes a value, and tells of it.
func (x *session) note(m pairMetric, v float64) {
	if x.wanted(m.group) {
		x.noted = append(x.noted, noted{m, v})
		x.Say("round %d of %d, %s, %s: %s %s", x.round+1, x.Rounds, x.side, m.title(), rig.Number(v), m.unit)
	}
}
