// Command bench measures the broker beside bare Go programs that do the same
// work with nothing of Kafka around it, in one run.
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
//
// "bench kafka" measures the broker beside Apache Kafka instead, with the same
// load for both: see kafka.go. "bench builds" compares two builds of the broker:
// see builds.go.
//
// It talks to 127.0.0.1 only, needs Linux, and removes what it has written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "_") {
		if err := child(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := toRoot()
	if err == nil {
		err = measure(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// toRoot goes to the root of the repository, so that it does not matter where in it this
// program is started.
func toRoot() error {
	for {
		if _, err := os.Stat("cmd/muster"); err == nil {
			return nil
		}
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		if filepath.Dir(here) == here {
			return errors.New("run it in the repository")
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
	}
}

// measure does what the arguments ask for.
func measure(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "kafka" {
		o, err := parseContest(args[1:], stderr)
		if err != nil {
			return err
		}
		return runContest(ctx, o, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "builds" {
		o, err := parseBuilds(args[1:], stderr)
		if err != nil {
			return err
		}
		return runBuilds(ctx, o, stdout, stderr)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return run(ctx, o, stdout, stderr)
}

// options are the flags, and what has no flag but is less in tests.
type options struct {
	rounds   int
	tries    int
	size     float64
	only     *regexp.Regexp
	dir      string
	broker   string
	embedded bool
	profiles string
	json     bool
	write    string
	timeout  time.Duration
	command  string // that gave these options

	restartPartitions []int
	memoryConnections int
	group             groupSizes // no members: groups are not measured
	fleets            []int      // how many brokers share a Redis
	txn               txnSizes
	rest              time.Duration // given to a process to come to rest
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
groups heartbeat consumer, groups settle 500 (5000), redis stream (log) 1 KB
(100 B) produce (fetch), 1 broker (3 brokers), txns of 100 records (1 record), 1
partition (12 partitions), 8 ids (1 id), txns read_committed; of txns, bare is
the same broker without transactions, and of consumer groups it is classic
groups.

`

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{restartPartitions: []int{1000, 10000}, memoryConnections: 1000, group: defaultGroupSizes(), fleets: []int{1, 3}, txn: defaultTxnSizes(), rest: 250 * time.Millisecond}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 3, "rounds of produce and fetch, broker and bare in turn")
	f.IntVar(&o.tries, "tries", 10, "starts for start-up, and half as many restarts")
	f.Float64Var(&o.size, "size", 1, "`GB` to produce per phase and round; fetch reads four times as much")
	only := f.String("only", "", "measure only what matches this `regexp`")
	f.StringVar(&o.dir, "dir", "bin", "`folder` for the data, on the disk to be measured; what is made in it is removed")
	f.StringVar(&o.broker, "broker", "", "`program` to measure instead of building ./cmd/muster")
	f.BoolVar(&o.embedded, "embedded", false, "measure the package muster inside this program instead of ./cmd/muster")
	f.StringVar(&o.profiles, "cpuprofile", "", "write processor profiles of the broker to this `folder`; implies -embedded")
	f.BoolVar(&o.json, "json", false, "print JSON with every value instead of the table")
	f.StringVar(&o.write, "write", "", "also put the table into this Markdown `file`, between its bench markers")
	f.DurationVar(&o.timeout, "timeout", 35*time.Minute, "give up after this long")
	if err := o.read(f, args, usage, only); err != nil {
		return nil, err
	}
	if o.rounds < 1 || o.tries < 1 || o.size <= 0 {
		return nil, errors.New("-rounds, -tries and -size must be more than 0")
	}
	o.embedded = o.embedded || o.profiles != ""
	o.command = command("go -C bench run .", f)
	return o, nil
}

// read reads the flags, the regexp of -only among them.
func (o *options) read(f *flag.FlagSet, args []string, usage string, only *string) (err error) {
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
	if o.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	return nil
}

// command returns the command line for the report, without what is only a
// matter of this machine.
func command(out string, f *flag.FlagSet) string {
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

// bench is one run.
type bench struct {
	*options
	ctx      context.Context
	folder   string // for everything this run writes
	self     string // this program
	report   *report
	progress io.Writer
	began    time.Time
}

func run(ctx context.Context, o *options, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	b := &bench{options: o, ctx: ctx, report: newReport(o.command), progress: stderr, began: time.Now()}
	if err := b.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if err := b.build(); err != nil {
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
	if len(b.report.rows) == 0 {
		return fmt.Errorf("-only %s matches nothing; -h lists the measures", o.only)
	}
	b.say("done")
	if o.write != "" {
		if err := b.report.writeMarkdown(o.write); err != nil {
			return err
		}
	}
	if o.json {
		return b.report.writeJSON(stdout)
	}
	return b.report.writeTable(stdout)
}

// prepare makes the folder of this run.
func (b *bench) prepare() error {
	var err error
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err = os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp(b.dir, "bench-"); err != nil {
		return err
	}
	b.folder, err = filepath.Abs(b.folder)
	return err
}

// build builds the broker, unless there is one.
func (b *bench) build() error {
	if b.embedded || b.broker != "" {
		return nil
	}
	b.say("building the broker")
	b.broker = filepath.Join(b.folder, "muster")
	out, err := exec.CommandContext(b.ctx, "go", "build", "-buildvcs=false", "-o", b.broker, "./cmd/muster").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build ./cmd/muster (-embedded does without): %w\n%s", err, out)
	}
	return nil
}

// wanted says whether a measure was asked for.
func (b *bench) wanted(measure string) bool { return b.only.MatchString(measure) }

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%4.0fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// inScratch runs fn with a folder of its own, which is removed afterwards.
func (b *bench) inScratch(fn func(folder string) error) error {
	folder, err := os.MkdirTemp(b.folder, "scratch-")
	if err != nil {
		return err
	}
	return errors.Join(fn(folder), os.RemoveAll(folder))
}
