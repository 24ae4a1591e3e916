package main

import (
	"bytes"
	"fmt"
	"net"
	"sync"
)

// How a producer sends: several requests in flight per connection, as clients
// do by default.
const (
	connections = 2
	inFlight    = 5
)

// load is a Produce request, encoded once and sent again and again.
type load struct {
	shape
	frame     []byte
	positions []int // of the batches in the frame, without its length
	batchSize int
}

// newLoad encodes the request that most measures send. Given the same topic and
// acks the frame has the same layout in every process.
func newLoad(topic string, acks int16) *load {
	return shape{partitions, recordSize, batchRecords}.load(topic, acks)
}

// load encodes a request.
func (s shape) load(topic string, acks int16) *load {
	var indexes []int32
	for i := range s.partitions {
		indexes = append(indexes, int32(i))
	}
	return s.loadFor(topic, acks, indexes)
}

// loadFor encodes a request for some partitions only.
func (s shape) loadFor(topic string, acks int16, indexes []int32) *load {
	s.partitions = len(indexes)
	var batches [][]byte
	for _, i := range indexes {
		batches = append(batches, newBatch(s.records, s.record, uint64(i)))
	}
	l := &load{
		shape:     s,
		frame:     requestFrame(produceRequest(topic, acks, indexes, func(i int) []byte { return batches[i] }), 0),
		batchSize: len(batches[0]),
	}
	for _, b := range batches {
		l.positions = append(l.positions, bytes.Index(l.frame, b)-4)
	}
	return l
}

// bytes is what one request carries in record batches.
func (l *load) bytes() int { return l.partitions * l.batchSize }

// pump sends the request n times over the connections, with several in flight
// on each, and checks the answers. Their order is checked too if the program
// answers in order.
func (l *load) pump(conns []net.Conn, n int, ordered bool, check func(body []byte) error) error {
	return spread(conns, n, func(c net.Conn, share int) error { return l.pumpOne(c, share, ordered, check) })
}

// spread has all connections do their share of something n times.
func spread(conns []net.Conn, n int, one func(c net.Conn, share int) error) error {
	errs := make([]error, len(conns))
	var running sync.WaitGroup
	for i, c := range conns {
		share := n / len(conns)
		if i < n%len(conns) {
			share++
		}
		running.Go(func() {
			if err := one(c, share); err != nil {
				errs[i] = err
				c.Close() // So that both sides of it end.
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *load) pumpOne(c net.Conn, n int, ordered bool, check func(body []byte) error) error {
	slots := make(chan struct{}, inFlight)
	sent := make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() { sent <- l.send(c, n, slots, stop) }()
	var buf []byte
	for i := range n {
		id, body, err := readFrame(c, buf)
		if err != nil {
			return err
		}
		buf = body
		if ordered && id != int32(i) {
			return fmt.Errorf("answer %d came when %d was due", id, i)
		}
		if err := check(body); err != nil {
			return err
		}
		<-slots
	}
	return <-sent
}

func (l *load) send(c net.Conn, n int, slots chan struct{}, stop chan struct{}) error {
	frame := bytes.Clone(l.frame)
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-stop:
			return nil
		}
		setCorrelation(frame, int32(i))
		if _, err := c.Write(frame); err != nil {
			return fmt.Errorf("send request: %w", err)
		}
	}
	return nil
}
