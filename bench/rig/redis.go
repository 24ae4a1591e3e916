package rig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The store in Redis, from end to end, beside a program that sends plain XADD
// and XRANGE with the same records to the same server. Both have as many
// records under way at a time. Throughput counts the records' values.

// redisTask is what is produced and then fetched, on both sides.
type redisTask struct {
	Shape
	layout  string // indexed, stream or log
	brokers int
}

func (t redisTask) topic() string { return "bench" }

func (t redisTask) name(verb string) string {
	return fmt.Sprintf("redis %s %d × %s %s, %s, %s", t.layout, t.Records, SizeName(t.Record), verb, Count(t.Partitions, "partition"), Count(t.brokers, "broker"))
}

// redisMetrics are the numbers of a phase.
type redisMetrics struct{ speed, server, brokers metric }

func (t redisTask) metrics(verb string) redisMetrics {
	name, most := t.name(verb), noAim
	if t.Records >= 16 {
		most = ratioAim(1.1)
	}
	return redisMetrics{
		speed:   metric{name, "throughput", "MB/s", leastAim(0.8)},
		server:  metric{name, "processor time of Redis", "CPU-s/GB", most},
		brokers: metric{name, "processor time of the brokers", "CPU-s/GB", noAim},
	}
}

// usualPartitions is how many partitions have what is measured with all layouts and fleets.
const usualPartitions = 12

// redisTasks are all shapes with one broker, and the layouts that others read; and the usual ones
// with every layout and fleet.
func (b *Bench) redisTasks() (tasks []redisTask) {
	for _, s := range b.Redis.shapes {
		usual := s.Partitions == usualPartitions && (s.Record == 1024 && s.Records == 16 || s.Record == 100 && s.Records == 160)
		for _, brokers := range b.fleets {
			for _, layout := range []string{"indexed", "stream", "log"} {
				if usual || brokers == 1 && layout != "log" {
					tasks = append(tasks, redisTask{s, layout, brokers})
				}
			}
		}
	}
	return tasks
}

// redis measures produce and fetch with topics in Redis, how soon a record is read, and what a
// fleet costs that only waits.
func (b *Bench) redis() error {
	for round := range b.Rounds {
		for _, t := range b.redisTasks() {
			if !b.Wanted(t.name("produce")) && !b.Wanted(t.name("fetch")) {
				continue
			}
			err := b.InScratch(func(folder string) error {
				return b.redisRound(round, folder, t, func(r *redisSession) error { return r.steps(round) })
			})
			if err != nil {
				return fmt.Errorf("%s: %w", t.name("produce and fetch"), err)
			}
		}
	}
	return errors.Join(b.redisLatency(), b.redisIdle())
}

// redisRound does something on a server of its own.
func (b *Bench) redisRound(round int, folder string, t redisTask, do func(*redisSession) error) error {
	server, err := b.startRedis(folder)
	if err != nil {
		return err
	}
	defer server.Kill()
	r := &redisSession{Bench: b, redisTask: t, number: round + 1, server: server}
	defer r.end()
	if err := r.begin(); err != nil {
		return fmt.Errorf("%w\n%s", err, r.stderr())
	}
	if err := do(r); err != nil {
		return fmt.Errorf("%w\n%s", err, r.stderr())
	}
	for _, p := range r.fleet {
		if err := p.Stop(); err != nil {
			return err
		}
	}
	return server.Stop()
}

// startRedis starts a server that keeps everything in memory.
func (b *Bench) startRedis(folder string) (*Process, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed: scripts/setup installs it, and -only leaves it out")
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(folder, "redis.log")
	p, err := b.Start(addr, program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", folder, "--logfile", log)
	if err != nil {
		return nil, err
	}
	c, err := p.Dial(b.Context)
	if err != nil {
		text, _ := os.ReadFile(log)
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return p, c.Close()
}

// redisSession is a server with brokers, on which a task is done.
type redisSession struct {
	*Bench
	redisTask
	number int
	server *Process
	fleet  []*Process
	led    [][]int32 // the partitions that each of the fleet leads
	sent   int       // requests for each partition, on either side
}

func (r *redisSession) stderr() string {
	var out strings.Builder
	for _, p := range r.fleet {
		fmt.Fprintln(&out, p.Stderr)
	}
	return out.String()
}

func (r *redisSession) end() {
	for _, p := range r.fleet {
		p.Kill()
	}
}

// begin starts the brokers, makes the topic, and learns who leads what.
func (r *redisSession) begin() error {
	for i := range r.brokers {
		p, err := r.StartBroker("", "muster.store=redis", "muster.redis.url=redis://"+r.server.Addr, fmt.Sprintf("node.id=%d", i))
		if err != nil {
			return err
		}
		r.fleet = append(r.fleet, p)
		c, err := p.Dial(r.Context)
		if err != nil {
			return err
		}
		if err := errors.Join(Greet(c), c.Close()); err != nil {
			return err
		}
	}
	c, err := r.fleet[0].Dial(r.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		brokers, err := r.metadata(c)
		if err == nil && len(brokers.Brokers) == r.brokers {
			break
		}
		if time.Now().After(end) {
			return errors.Join(errors.New("the brokers do not know of one another"), err)
		}
	}
	if err := createTopic(c, r.topic(), r.Partitions, "muster.redis.layout="+r.layout, "max.message.bytes=4194304"); err != nil {
		return err
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := r.leaders(c)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return err
		}
	}
}

func (r *redisSession) metadata(c net.Conn, topics ...string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 9
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	resp, err := Ask(c, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.MetadataResponse), nil
}

func (r *redisSession) leaders(c net.Conn) error {
	m, err := r.metadata(c, r.topic())
	if err != nil {
		return err
	}
	r.led = make([][]int32, len(r.fleet))
	n := 0
	for _, t := range m.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return err
		}
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
			if int(p.Leader) >= len(r.led) || p.Leader < 0 {
				return fmt.Errorf("partition %d is led by broker %d", p.Partition, p.Leader)
			}
			r.led[p.Leader] = append(r.led[p.Leader], p.Partition)
			n++
		}
	}
	if n != r.Partitions {
		return fmt.Errorf("%d partitions have a leader, of %d", n, r.Partitions)
	}
	for i := range r.led {
		slices.Sort(r.led[i])
	}
	return nil
}

// steps produces and fetches on both sides; who comes first changes from round
// to round.
func (r *redisSession) steps(round int) error {
	l := r.Load(r.topic(), -1)
	least := 2 * Connections * InFlight
	if r.Partitions > usualPartitions {
		least = 4
	}
	// Small batches take longer.
	r.sent = max(int(r.Size*min(0.4e9/float64(l.Bytes()), 0.1e6/float64(r.Partitions))), least)
	put, get := r.metrics("produce"), r.metrics("fetch")
	raw := newRawRedis(r)
	both := []func() error{
		func() error { return r.brokerProduce(put) },
		func() error { return raw.produce(put) },
	}
	fetch := []func() error{
		func() error { return r.brokerFetch(get) },
		func() error { return raw.fetch(get) },
	}
	for i := range both {
		if err := both[(i+round)%2](); err != nil {
			return err
		}
	}
	if err := raw.checkLengths(); err != nil {
		return err
	}
	if !r.Wanted(r.name("fetch")) {
		return nil
	}
	for i := range fetch {
		if err := fetch[(i+round)%2](); err != nil {
			return err
		}
	}
	return nil
}

// total is how many requests each partition gets in all, with those that warm up.
func (r *redisSession) total() int { return r.sent + r.warm() }
func (r *redisSession) warm() int  { return max(r.sent/20, 1) }

// measure runs fn, which moves the values of some records, and notes what it cost.
func (r *redisSession) measure(m redisMetrics, s Side, records int, fn func() error) error {
	procs := []*Process{r.server}
	if s == broker {
		procs = append(procs, r.fleet...)
	}
	times := func() (server, brokers time.Duration, err error) {
		for i, p := range procs {
			used, err := p.CPU()
			if err != nil {
				return 0, 0, err
			}
			if i == 0 {
				server = used.Total()
			} else {
				brokers += used.Total()
			}
		}
		return server, brokers, nil
	}
	server, brokers, err := times()
	if err != nil {
		return err
	}
	began := time.Now()
	name := strings.NewReplacer(" ", "-", ",", "").Replace(m.speed.group)
	if err := r.Profile(procs[len(procs)-1], name, fn); err != nil {
		return err
	}
	took := time.Since(began)
	server2, brokers2, err := times()
	if err != nil {
		return err
	}
	gb := float64(records) * float64(r.Record) / 1e9
	if r.Wanted(m.speed.group) {
		r.Report.add(m.speed, s, 1000*gb/took.Seconds())
		r.Report.add(m.server, s, (server2-server).Seconds()/gb)
		if s == broker {
			r.Report.add(m.brokers, s, (brokers2-brokers).Seconds()/gb)
		}
	}
	r.Say("round %d, %s, %s: %.2f GB, %.0f MB/s, Redis %.2f CPU-s/GB", r.number, m.speed.group, s, gb, 1000*gb/took.Seconds(), (server2-server).Seconds()/gb)
	return nil
}

// each runs fn for every broker that leads something.
func (r *redisSession) each(fn func(i int) error) error {
	errs := make([]error, len(r.fleet))
	var running sync.WaitGroup
	for i := range r.fleet {
		if len(r.led[i]) > 0 {
			running.Go(func() { errs[i] = fn(i) })
		}
	}
	running.Wait()
	return errors.Join(errs...)
}

func (r *redisSession) brokerProduce(m redisMetrics) error {
	loads, conns := make([]*Load, len(r.fleet)), make([][]net.Conn, len(r.fleet))
	defer func() {
		for _, c := range conns {
			CloseAll(c)
		}
	}()
	for i, p := range r.fleet {
		var err error
		if conns[i], err = r.Connect(p, Connections); err != nil {
			return err
		}
		loads[i] = r.LoadFor(r.topic(), -1, r.led[i])
	}
	pump := func(n int) error {
		return r.each(func(i int) error { return loads[i].Pump(conns[i], n, true, Produced(loads[i].Shape)) })
	}
	if err := pump(r.warm()); err != nil {
		return err
	}
	return r.measure(m, broker, r.sent*r.Partitions*r.Records, func() error { return pump(r.sent) })
}

func (r *redisSession) brokerFetch(m redisMetrics) error {
	readers := make([]*gapReader, len(r.fleet))
	var conns []net.Conn
	defer func() { CloseAll(conns) }()
	for i, p := range r.fleet {
		c, err := p.Dial(r.Context)
		if err != nil {
			return err
		}
		conns = append(conns, c)
		readers[i] = newGapReader(c, r.topic(), r.led[i], r.total()*r.Records)
	}
	// The first pass warms up, and looks at every batch.
	if err := r.each(func(i int) error { return readers[i].pass(true) }); err != nil {
		return err
	}
	return r.measure(m, broker, redisPasses*r.total()*r.Partitions*r.Records, func() error {
		return r.each(func(i int) error {
			for range redisPasses {
				if err := readers[i].pass(false); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// redisPasses is how often fetch reads what was produced.
const redisPasses = 2
