package rig

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// gapReader reads some partitions of a topic whose offsets may have gaps, as
// those of layout stream have.
type gapReader struct {
	conn       net.Conn
	in         *bufio.Reader
	topic      string
	partitions []int32
	want       int // records in each partition
	at         map[int32]*gapPosition
	verify     bool // look at every batch
}

// gapPosition is how far a partition was read.
type gapPosition struct {
	offset  int64 // to read next
	records int   // read so far
}

func newGapReader(c net.Conn, topic string, partitions []int32, want int) *gapReader {
	return &gapReader{conn: c, in: bufio.NewReaderSize(c, 1<<20), topic: topic, partitions: partitions, want: want}
}

// pass reads all partitions from the beginning to the end.
func (g *gapReader) pass(verify bool) error {
	g.at, g.verify = map[int32]*gapPosition{}, verify
	starts, err := ListOffsets(g.conn, g.topic, g.partitions, Earliest)
	if err != nil {
		return err
	}
	for p, start := range starts {
		g.at[p] = &gapPosition{offset: start}
	}
	for {
		req := FetchRequest(g.topic, FetchMaxBytes)
		t := &req.Topics[0]
		for _, p := range g.partitions {
			if at := g.at[p]; at.records < g.want {
				t.Partitions = append(t.Partitions, FetchPartition(p, at.offset, PartitionMaxBytes))
			}
		}
		if len(t.Partitions) == 0 {
			return nil
		}
		if _, err := g.conn.Write(RequestFrame(req, 1)); err != nil {
			return err
		}
		if err := readFetched(g.in, g.topic, len(t.Partitions), g.partition); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
	}
}

// partition reads the batches of a partition.
func (g *gapReader) partition(p fetched) error {
	at := g.at[p.index]
	if at == nil {
		return errors.New("not asked for")
	}
	for left := p.size; left > 0; {
		if left < HeaderSize {
			_, err := g.in.Discard(left)
			return err
		}
		head, err := g.in.Peek(HeaderSize)
		if err != nil {
			return err
		}
		base, size := int64(binary.BigEndian.Uint64(head)), int(binary.BigEndian.Uint32(head[8:]))+12
		delta, records := int64(binary.BigEndian.Uint32(head[23:])), int(binary.BigEndian.Uint32(head[57:]))
		if size > left { // The last one may be cut short.
			_, err := g.in.Discard(left)
			return err
		}
		if base < at.offset || size < HeaderSize {
			return fmt.Errorf("a batch of %d bytes at offset %d, asked for %d", size, base, at.offset)
		}
		if err := g.batch(size); err != nil {
			return err
		}
		at.offset, at.records, left = base+delta+1, at.records+records, left-size
	}
	if at.records > g.want {
		return fmt.Errorf("%d records, expected %d", at.records, g.want)
	}
	return nil
}

func (g *gapReader) batch(size int) error {
	if !g.verify {
		_, err := g.in.Discard(size)
		return err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(g.in, b); err != nil {
		return err
	}
	_, err := CheckBatches(b, -1)
	return err
}

// redisSizes are how much of a fleet waits, and how many records are sent one by one.
type redisSizes struct {
	shapes                []Shape // that are produced and fetched
	partitions, consumers int     // of the idle fleet
	watch                 time.Duration
	trips                 int
}

func defaultRedisSizes() redisSizes {
	s := redisSizes{partitions: 1000, consumers: 100, watch: 10 * time.Second, trips: 1000}
	for _, partitions := range []int{1, 12, 1000} {
		for _, record := range []int{100, 1024, 10 << 10} {
			for _, records := range []int{1, 16, 160} {
				if partitions*record*records <= maxRedisRequest {
					s.shapes = append(s.shapes, Shape{partitions, record, records})
				}
			}
		}
	}
	return s
}

// maxRedisRequest bounds the records of a request, which has a batch for each partition.
const maxRedisRequest = 32 << 20

func (b *Bench) redisIdle() error {
	for _, brokers := range b.fleets {
		name := fmt.Sprintf("redis idle, %s, %d partitions, %d consumers", Count(brokers, "broker"), b.Redis.partitions, b.Redis.consumers)
		if !b.Wanted(name) {
			continue
		}
		t := redisTask{Shape{b.Redis.partitions, 100, 1}, "indexed", brokers}
		err := b.InScratch(func(folder string) error {
			return b.redisRound(0, folder, t, func(r *redisSession) error { return r.idle(metric{name, "commands to Redis", "1/s", noAim}) })
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// idle has consumers wait at the end of all partitions, and counts commands.
func (r *redisSession) idle(m metric) error {
	var conns []net.Conn
	var over atomic.Bool
	var running sync.WaitGroup
	failed := make(chan error, r.Bench.Redis.consumers)
	defer func() {
		over.Store(true)
		CloseAll(conns)
		running.Wait()
	}()
	for i := range r.Bench.Redis.consumers {
		at := i % len(r.fleet)
		c, err := r.fleet[at].Dial(r.Context)
		if err != nil {
			return err
		}
		conns = append(conns, c)
		var mine []int32 // of those that the broker leads
		for k, p := range r.led[at] {
			if k%((r.Bench.Redis.consumers+len(r.fleet)-1)/len(r.fleet)) == i/len(r.fleet) {
				mine = append(mine, p)
			}
		}
		running.Go(func() {
			if err := r.waitAt(c, mine, &over); err != nil && !over.Load() {
				failed <- err
			}
		})
	}
	c, err := r.server.Dial(r.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	var before int
	for i, d := range []time.Duration{r.Bench.Redis.watch / 2, r.Bench.Redis.watch} {
		select {
		case err := <-failed:
			return err
		case <-time.After(d):
		}
		n, err := commandsOf(c, in)
		if err != nil {
			return err
		}
		if i == 1 {
			rate := float64(n-before-1) / d.Seconds()
			r.Report.add(m, broker, rate)
			r.Say("%s: %.1f commands a second", m.group, rate)
		}
		before = n
	}
	return nil
}

// waitAt fetches from the ends of partitions.
func (r *redisSession) waitAt(c net.Conn, partitions []int32, over *atomic.Bool) error {
	if len(partitions) == 0 {
		return nil
	}
	req := FetchRequest(r.topic(), FetchMaxBytes)
	for _, p := range partitions {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, FetchPartition(p, 0, PartitionMaxBytes))
	}
	in, frame := bufio.NewReader(c), RequestFrame(req, 1)
	for !over.Load() {
		if _, err := c.Write(frame); err != nil {
			return err
		}
		if err := readFetched(in, r.topic(), len(partitions), func(f fetched) error { _, err := in.Discard(f.size); return err }); err != nil {
			return err
		}
	}
	return nil
}

// commandsOf returns how many commands a server has executed.
func commandsOf(c net.Conn, in *bufio.Reader) (int, error) {
	if _, err := c.Write(appendCommand(nil, "INFO", "stats")); err != nil {
		return 0, err
	}
	size, err := readHead(in, '$')
	if err != nil {
		return 0, err
	}
	text := make([]byte, size+2)
	if _, err := io.ReadFull(in, text); err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "total_commands_processed:")
	first, _, _ := strings.Cut(after, "\r\n")
	return strconv.Atoi(first)
}

// redisLatency measures from before a record is sent until a consumer that waits has read it, beside
// XADD and XREAD BLOCK.
func (b *Bench) redisLatency() error {
	const name = "redis end to end, indexed, 1 broker"
	if !b.Wanted(name) {
		return nil
	}
	return b.InScratch(func(folder string) error {
		return b.redisRound(0, folder, redisTask{Shape{1, 100, 1}, "indexed", 1}, func(r *redisSession) error {
			m := metric{name, "p50", "ms", ratioAim(1.3)}
			for range b.Rounds {
				if err := r.trips(m, bare, r.rawTrip); err != nil {
					return err
				}
				if err := r.trips(m, broker, r.brokerTrip); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// trips sends records one by one, to one who waits.
func (r *redisSession) trips(m metric, s Side, open func(put, get net.Conn) (func() (time.Duration, error), error)) error {
	p := r.server
	if s == broker {
		p = r.fleet[0]
	}
	conns, err := r.Connect(p, 2)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	trip, err := open(conns[0], conns[1])
	if err != nil {
		return err
	}
	var took []time.Duration
	for range r.Bench.Redis.trips {
		d, err := trip()
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	r.Report.add(m, s, took[len(took)/2].Seconds()*1000)
	return nil
}

// wake runs put a moment after get was asked to wait, and returns how long both took.
func wake(get func() error, put func() error) (time.Duration, error) {
	got := make(chan error, 1)
	var at time.Time
	go func() {
		err := get()
		at = time.Now()
		got <- err
	}()
	time.Sleep(2 * time.Millisecond) // so that it waits
	began := time.Now()
	if err := put(); err != nil {
		return 0, err
	}
	err := <-got
	return at.Sub(began), err
}

func (r *redisSession) rawTrip(put, get net.Conn) (func() (time.Duration, error), error) {
	in, read := bufio.NewReader(put), bufio.NewReader(get)
	value, now := strings.Repeat("v", r.Record), strconv.FormatInt(time.Now().UnixMilli(), 10)
	const key = "raw:trips"
	last := "0-0"
	if _, err := put.Write(appendCommand(nil, "DEL", key)); err != nil {
		return nil, err
	}
	if _, err := readReply(in); err != nil {
		return nil, err
	}
	return func() (time.Duration, error) {
		return wake(func() error {
			if _, err := get.Write(appendCommand(nil, "XREAD", "BLOCK", "60000", "STREAMS", key, last)); err != nil {
				return err
			}
			for _, n := range []byte{'*', '*'} { // streams, and what there is of this one
				if _, err := readHead(read, n); err != nil {
					return err
				}
			}
			if _, err := readReply(read); err != nil {
				return err
			}
			_, id, err := readEntries(read)
			last = id
			return err
		}, func() error {
			if _, err := put.Write(appendCommand(nil, "XADD", key, "*", "value", value, "timestamp", now)); err != nil {
				return err
			}
			_, err := readReply(in)
			return err
		})
	}, nil
}

func (r *redisSession) brokerTrip(put, get net.Conn) (func() (time.Duration, error), error) {
	ends, err := ListOffsets(get, r.topic(), []int32{0}, -1)
	if err != nil {
		return nil, err
	}
	l, read, at := r.Load(r.topic(), -1), bufio.NewReader(get), ends[0]
	return func() (time.Duration, error) {
		return wake(func() error {
			for size := 0; size == 0; {
				req := FetchRequest(r.topic(), FetchMaxBytes)
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, FetchPartition(0, at, PartitionMaxBytes))
				if _, err := get.Write(RequestFrame(req, 1)); err != nil {
					return err
				}
				err := readFetched(read, r.topic(), 1, func(f fetched) error { size = f.size; _, err := read.Discard(f.size); return err })
				if err != nil {
					return err
				}
			}
			at++
			return nil
		}, func() error { return l.PumpOne(put, 1, true, Produced(l.Shape)) })
	}, nil
}
