// Package rig starts brokers and bare programs, loads them, and reports what that cost. It
// has all measures but those beside Apache Kafka, which are package contest.
//
// The bare programs are this program itself under hidden names (_sink, _source,
// _echo, _open, _answer, _meet, _keep; _hog only takes space and time), each a
// process of its own like the broker, so that processor time and memory can be
// read from /proc. What this process does, generating load, counts for neither
// side. Every answer is checked: a broken broker must not look like a fast one.
//
//	produce  socket → CRC-32C → file, with and without fdatasync
//	fetch    file → socket by sendfile
//	start    from exec to the first answer; also after a clean stop with many
//	         partitions
//	memory   at rest, and with 1,000 connections
//	groups   how consumer groups grow: joins, heartbeats, commits, memory, load
//	redis    with topics in Redis, beside plain XADD and XRANGE on the same server
//	txns     transactions, beside the same records and reads without them
package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Options are the flags, and what has no flag but is less in tests.
type Options struct {
	Rounds   int
	tries    int
	Size     float64
	Only     *regexp.Regexp
	Dir      string
	Broker   string
	Embedded bool
	Profiles string
	JSON     bool
	Write    string
	Timeout  time.Duration
	Command  string // that gave these options

	restartPartitions []int
	memoryConnections int
	Group             GroupSizes // no members: groups are not measured
	fleets            []int      // how many brokers share a Redis
	Redis             redisSizes
	Txn               txnSizes
	Rest              time.Duration // given to a process to come to rest
}

const usage = `Usage: go -C bench run . [flags], or go -C bench run . kafka (builds) [flags]

Measures the broker beside bare Go programs that move the same bytes, in one
run, and prints medians, spread and ratios. Folders and files are relative to the
root of the repository. Progress goes to standard error, the result to standard
output.
"go -C bench run . kafka -h" explains the same beside Apache Kafka, and
"go -C bench run . builds -h" how to compare two builds of the broker.

Measures (for -only): produce acks=all, produce acks=1, fetch, start-up,
restart 1000, restart 10000, memory, groups join 10 (100, 1000, 5000), groups
commit, groups memory, groups heartbeat 1 (1000, 100000), groups load,
groups heartbeat consumer, groups settle 500 (5000), redis indexed (stream, log) 16 ×
1 KB (160 × 100 B, …) produce (fetch), 12 partitions (1, 1000), 1 broker (3), redis end
to end, redis idle, txns of 100 records (1 record), 1
partition (12 partitions), 8 ids (1 id), txns read_committed; of txns, bare is
the same broker without transactions, and of consumer groups it is classic
groups.

`

func Parse(args []string, stderr io.Writer) (*Options, error) {
	o := &Options{restartPartitions: []int{1000, 10000}, memoryConnections: 1000, Group: DefaultGroupSizes(), fleets: []int{1, 3}, Redis: defaultRedisSizes(), Txn: DefaultTxnSizes(), Rest: 250 * time.Millisecond}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.Rounds, "rounds", 3, "rounds of produce and fetch, broker and bare in turn")
	f.IntVar(&o.tries, "tries", 10, "starts for start-up, and half as many restarts")
	f.Float64Var(&o.Size, "size", 1, "`GB` to produce per phase and round; fetch reads four times as much")
	only := f.String("only", "", "measure only what matches this `regexp`")
	f.StringVar(&o.Dir, "dir", "bin", "`folder` for the data, on the disk to be measured; what is made in it is removed")
	f.StringVar(&o.Broker, "broker", "", "`program` to measure instead of building ./cmd/muster")
	f.BoolVar(&o.Embedded, "embedded", false, "measure the package muster inside this program instead of ./cmd/muster")
	f.StringVar(&o.Profiles, "cpuprofile", "", "write processor profiles of the broker to this `folder`; implies -embedded")
	f.BoolVar(&o.JSON, "json", false, "print JSON with every value instead of the table")
	f.StringVar(&o.Write, "write", "", "also put the table into this Markdown `file`, between its bench markers")
	f.DurationVar(&o.Timeout, "timeout", 35*time.Minute, "give up after this long")
	if err := o.Read(f, args, usage, only); err != nil {
		return nil, err
	}
	if o.Rounds < 1 || o.tries < 1 || o.Size <= 0 {
		return nil, errors.New("-rounds, -tries and -size must be more than 0")
	}
	o.Embedded = o.Embedded || o.Profiles != ""
	o.Command = Command("go -C bench run .", f)
	return o, nil
}

// Read reads the flags, the regexp of -only among them.
func (o *Options) Read(f *flag.FlagSet, args []string, usage string, only *string) (err error) {
	f.Usage = func() {
		fmt.Fprint(f.Output(), usage)
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; -h explains", f.Arg(0))
	}
	if o.Only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	return nil
}

// Command returns the command line for the report, without what is only a
// matter of this machine.
func Command(out string, f *flag.FlagSet) string {
	f.Visit(func(g *flag.Flag) {
		if g.Name == "dir" || g.Name == "broker" || g.Name == "cpuprofile" || g.Name == "jars" {
			return
		}
		out += " -" + g.Name
		switch value := g.Value.String(); {
		case value == "true":
		case strings.ContainsAny(value, " |*?$()[]"):
			out += " '" + value + "'"
		default:
			out += " " + value
		}
	})
	return out
}

// Bench is one run.
type Bench struct {
	*Options
	Context  context.Context
	Folder   string // for everything this run writes
	self     string // this program
	Report   *Report
	Progress io.Writer
	Began    time.Time
}

func Run(ctx context.Context, o *Options, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	b := &Bench{Options: o, Context: ctx, Report: NewReport(o.Command), Progress: stderr, Began: time.Now()}
	if err := b.Prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Folder)) }()
	if err := b.Build(); err != nil {
		return err
	}
	for _, measure := range []func() error{b.data, b.startUp, b.restarts, b.memory, b.groups, b.redis, b.txns} {
		err := measure()
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before the end: %w", ctx.Err())
		}
		if err != nil {
			return err
		}
	}
	if len(b.Report.rows) == 0 {
		return fmt.Errorf("-only %s matches nothing; -h lists the measures", o.Only)
	}
	b.Say("done")
	if o.Write != "" {
		if err := b.Report.writeMarkdown(o.Write); err != nil {
			return err
		}
	}
	if o.JSON {
		return b.Report.writeJSON(stdout)
	}
	return b.Report.writeTable(stdout)
}

// Prepare makes the folder of this run.
func (b *Bench) Prepare() error {
	var err error
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err = os.MkdirAll(b.Dir, 0o755); err != nil {
		return err
	}
	if b.Folder, err = os.MkdirTemp(b.Dir, "bench-"); err != nil {
		return err
	}
	b.Folder, err = filepath.Abs(b.Folder)
	return err
}

// Build builds the broker, unless there is one.
func (b *Bench) Build() error {
	if b.Embedded || b.Broker != "" {
		return nil
	}
	b.Say("building the broker")
	b.Broker = filepath.Join(b.Folder, "muster")
	out, err := exec.CommandContext(b.Context, "go", "build", "-buildvcs=false", "-o", b.Broker, "./cmd/muster").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build ./cmd/muster (-embedded does without): %w\n%s", err, out)
	}
	return nil
}

// Wanted says whether a measure was asked for.
func (b *Bench) Wanted(measure string) bool { return b.Only.MatchString(measure) }

func (b *Bench) Say(format string, args ...any) {
	fmt.Fprintf(b.Progress, "%4.0fs  %s\n", time.Since(b.Began).Seconds(), fmt.Sprintf(format, args...))
}

// InScratch runs fn with a folder of its own, which is removed afterwards.
func (b *Bench) InScratch(fn func(folder string) error) error {
	folder, err := os.MkdirTemp(b.Folder, "scratch-")
	if err != nil {
		return err
	}
	return errors.Join(fn(folder), os.RemoveAll(folder))
}
