package contest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

// The load of the latency measure: 10,000 records of 1 KB per second. Every
// millisecond ten are due, in one batch from the next of twelve producers to the
// partition that it alone writes to. No one waits for an answer before the next batch is
// sent, and the time counts from when a batch was due: a broker that stops for a
// while is charged for all that should have been sent meanwhile.
const (
	paceEvery     = time.Millisecond
	paceRecords   = 10
	paceProducers = 12                  // and partitions
	stampAt       = rig.HeaderSize + 64 // somewhere in a batch's first value: when it was due, and its number
)

// latencyMeasure is a measure of latency under one rule.
type latencyMeasure struct {
	name, topic string
	rule        string
}

var (
	latencyCache = latencyMeasure{"latency", "bench-latency", fromCache}
	latencyDisk  = latencyMeasure{"durable latency", "bench-latency-disk", onDisk}
)

// metric is a percentile.
func (m latencyMeasure) metric(name string, aim float64) pairMetric {
	return pairMetric{group: m.name, name: name, unit: "ms", rule: m.rule, aim: aim}
}

// latency measures how long a record takes from the moment it should be sent
// until a consumer has it.
func (x *session) latency(m latencyMeasure) error {
	if !x.wanted(m.name) {
		return nil
	}
	pc, err := x.newPacer(m)
	if err != nil {
		return err
	}
	defer rig.CloseAll(pc.conns)
	if _, err := pc.run(int(x.o.warm / 2 / paceEvery)); err != nil { // to warm up
		return err
	}
	before, err := x.p.CPU()
	if err != nil {
		return err
	}
	var took []time.Duration
	began := time.Now()
	err = x.Profile(x.p, m.name, func() error {
		took, err = pc.run(int(x.o.latency / paceEvery))
		return err
	})
	if err != nil {
		return err
	}
	wall := time.Since(began)
	after, err := x.p.CPU()
	if err != nil {
		return err
	}
	x.note(m.metric("p50", 0), rig.Millis(percentile(took, 0.5)))
	x.note(m.metric("p99", 2), rig.Millis(percentile(took, 0.99)))
	x.note(m.metric("p99.9", 0), rig.Millis(percentile(took, 0.999)))
	x.Say("the load generator itself was late by %s ms at p50, %s at p99", rig.Number(rig.Millis(percentile(pc.late, 0.5))), rig.Number(rig.Millis(percentile(pc.late, 0.99))))
	used := pairMetric{group: m.name, name: "processor time", unit: "% of a core", rule: m.rule}
	x.note(used, 100*after.Sub(before).Total().Seconds()/wall.Seconds())
	return x.flush()
}

// percentile sorts the values and returns the one that a share of them does not
// exceed.
func percentile(v []time.Duration, share float64) time.Duration {
	slices.Sort(v)
	return v[max(0, int(math.Ceil(share*float64(len(v))))-1)]
}

// pacer sends batches when they are due, and receives them.
type pacer struct {
	topic  string
	frames [][]byte        // a request to each partition
	at     int             // where in a frame the batch begins
	size   int             // of a batch
	conns  []net.Conn      // the producers', and last the consumer's
	sent   int             // batches, in all runs
	ends   []int64         // of the partitions, after all runs
	late   []time.Duration // how long after its time each batch of the last run was sent
}

func (x *session) newPacer(m latencyMeasure) (*pacer, error) {
	pc := &pacer{topic: m.topic, ends: make([]int64, paceProducers)}
	batch := rig.NewBatch(paceRecords, rig.RecordSize, 1)
	pc.size = len(batch)
	for i := range paceProducers {
		frame := rig.RequestFrame(rig.ProduceRequest(m.topic, -1, []int32{int32(i)}, func(int) []byte { return batch }), 0)
		pc.at = bytes.Index(frame, batch)
		pc.frames = append(pc.frames, frame)
	}
	var set []string
	if m.rule == onDisk && x.side == rig.Theirs {
		set = append(set, flushEach)
	}
	if err := x.withConn(func(c net.Conn) error { return x.NewTopic(c, m.topic, paceProducers, set...) }); err != nil {
		return nil, err
	}
	var err error
	pc.conns, err = x.Connect(x.p, paceProducers+1)
	return pc, err
}

// run sends n batches and returns how long each took.
func (pc *pacer) run(n int) ([]time.Duration, error) {
	start := time.Now()
	var took []time.Duration
	err := rig.Together(pc.conns, func(i int, c net.Conn) (err error) {
		switch i {
		case paceProducers:
			took, err = pc.receive(c, n, start)
		case 0:
			// The first producer's connection stands for the sender of all.
			acks := make(chan error, 1)
			go func() { acks <- pc.acknowledged(c, share(n, i, paceProducers)) }()
			if err := pc.send(n, start); err != nil {
				return err
			}
			return <-acks
		default:
			err = pc.acknowledged(c, share(n, i, paceProducers))
		}
		return err
	})
	pc.sent += n
	return took, err
}

// share is how many of n batches one of some producers sends.
func share(n, producer, of int) int { return (n + of - 1 - producer) / of }

// pace calls send n times, each when it is due or as soon after that as it can,
// and returns how late each was.
func pace(n int, every time.Duration, start time.Time, send func(i int, due time.Duration) error) ([]time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lates := make([]time.Duration, 0, n)
	for i := range n {
		due := time.Duration(i) * every
		late := time.Since(start) - due
		for ; late < 0; late = time.Since(start) - due {
			rig.Pause(-late)
		}
		lates = append(lates, late)
		if err := send(i, due); err != nil {
			return lates, fmt.Errorf("send request: %w", err)
		}
	}
	return lates, nil
}

// send sends each batch when it is due.
func (pc *pacer) send(n int, start time.Time) (err error) {
	pc.late, err = pace(n, paceEvery, start, func(i int, due time.Duration) error {
		frame := pc.frames[i%paceProducers]
		batch := frame[pc.at:][:pc.size]
		binary.BigEndian.PutUint64(batch[stampAt:], uint64(due))
		binary.BigEndian.PutUint64(batch[stampAt+8:], uint64(pc.sent+i))
		binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], rig.Castagnoli))
		rig.SetCorrelation(frame, int32(i/paceProducers))
		_, err := pc.conns[i%paceProducers].Write(frame)
		return err
	})
	return err
}

// acknowledged reads the answers to a producer.
func (pc *pacer) acknowledged(c net.Conn, n int) error {
	return acknowledged(c, n, func(int) {})
}

// acknowledged reads n answers about one partition each, which must come in order,
// and tells of each when it has come.
func acknowledged(c net.Conn, n int, came func(i int)) error {
	var buf []byte
	check := rig.Produced(rig.Shape{Partitions: 1})
	for i := range n {
		id, body, err := rig.ReadFrame(c, buf)
		if err != nil {
			return err
		}
		buf = body
		if id != int32(i) {
			return fmt.Errorf("answer %d came when %d was due", id, i)
		}
		if err := check(body); err != nil {
			return err
		}
		came(i)
	}
	return nil
}

// receive fetches until n batches have come.
func (pc *pacer) receive(c net.Conn, n int, start time.Time) ([]time.Duration, error) {
	in := bufio.NewReaderSize(c, 64<<10)
	next := make([]int, paceProducers) // number of the batch that each partition brings next
	req := rig.FetchRequest(pc.topic, rig.FetchMaxBytes)
	for i := range next {
		next[i] = i
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rig.FetchPartition(int32(i), pc.ends[i], rig.PartitionMaxBytes))
	}
	took := make([]time.Duration, 0, n)
	var buf []byte
	for len(took) < n {
		if _, err := c.Write(rig.RequestFrame(req, 1)); err != nil {
			return nil, err
		}
		_, body, err := rig.ReadFrame(in, buf)
		if err != nil {
			return nil, err
		}
		buf = body
		now := time.Since(start)
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = req.Version
		if err := resp.ReadFrom(body); err != nil {
			return nil, err
		}
		if took, err = pc.take(req, resp, next, now, took); err != nil {
			return nil, err
		}
	}
	for i, p := range req.Topics[0].Partitions {
		pc.ends[i] = p.FetchOffset
	}
	return took, nil
}

// take checks the batches of an answer, and notes how long each took.
func (pc *pacer) take(req *kmsg.FetchRequest, resp *kmsg.FetchResponse, next []int, now time.Duration, took []time.Duration) ([]time.Duration, error) {
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil || len(resp.Topics) != 1 {
		return nil, fmt.Errorf("fetch of %d topics: %w", len(resp.Topics), err)
	}
	for i := range resp.Topics[0].Partitions {
		p := &resp.Topics[0].Partitions[i]
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil || int(p.Partition) >= len(next) {
			return nil, fmt.Errorf("fetch of partition %d: %w", p.Partition, err)
		}
		asked := &req.Topics[0].Partitions[p.Partition]
		for b := p.RecordBatches; len(b) >= pc.size; b = b[pc.size:] {
			var err error
			if asked.FetchOffset, err = rig.CheckBatches(b[:pc.size], asked.FetchOffset); err != nil {
				return nil, fmt.Errorf("partition %d: %w", p.Partition, err)
			}
			due := time.Duration(binary.BigEndian.Uint64(b[stampAt:]))
			if number := int(binary.BigEndian.Uint64(b[stampAt+8:])); number != pc.sent+next[p.Partition] {
				return nil, fmt.Errorf("partition %d: batch %d came when %d was due", p.Partition, number, pc.sent+next[p.Partition])
			}
			next[p.Partition] += paceProducers
			if due > now {
				return nil, errors.New("a record came before it was sent")
			}
			took = append(took, now-due)
		}
	}
	return took, nil
}
