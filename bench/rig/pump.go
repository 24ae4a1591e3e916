package rig

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"time"
)

// How a producer sends: several requests in flight per connection, as clients
// do by default.
const (
	Connections = 2
	InFlight    = 5
)

// Load is a Produce request, encoded once and sent again and again.
type Load struct {
	Shape
	Frame     []byte
	positions []int // of the batches in the frame, without its length
	BatchSize int
}

// newLoad encodes the request that most measures send. Given the same topic and
// acks the frame has the same layout in every process.
func newLoad(topic string, acks int16) *Load {
	return Shape{Partitions, RecordSize, BatchRecords}.Load(topic, acks)
}

// Load encodes a request.
func (s Shape) Load(topic string, acks int16) *Load {
	var indexes []int32
	for i := range s.Partitions {
		indexes = append(indexes, int32(i))
	}
	return s.LoadFor(topic, acks, indexes)
}

// LoadFor encodes a request for some partitions only.
func (s Shape) LoadFor(topic string, acks int16, indexes []int32) *Load {
	s.Partitions = len(indexes)
	var batches [][]byte
	for _, i := range indexes {
		batches = append(batches, NewBatch(s.Records, s.Record, uint64(i)))
	}
	l := &Load{
		Shape:     s,
		Frame:     RequestFrame(ProduceRequest(topic, acks, indexes, func(i int) []byte { return batches[i] }), 0),
		BatchSize: len(batches[0]),
	}
	for _, b := range batches {
		l.positions = append(l.positions, bytes.Index(l.Frame, b)-4)
	}
	return l
}

// Bytes is what one request carries in record batches.
func (l *Load) Bytes() int { return l.Partitions * l.BatchSize }

// Pump sends the request n times over the connections, with several in flight
// on each, and checks the answers. Their order is checked too if the program
// answers in order.
func (l *Load) Pump(conns []net.Conn, n int, ordered bool, check func(body []byte) error) error {
	return spread(conns, n, func(c net.Conn, share int) error { return l.PumpOne(c, share, ordered, check) })
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

func (l *Load) PumpOne(c net.Conn, n int, ordered bool, check func(body []byte) error) error {
	slots := make(chan struct{}, InFlight)
	sent := make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() { sent <- l.send(c, n, slots, stop) }()
	var buf []byte
	for i := range n {
		id, body, err := ReadFrame(c, buf)
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

func (l *Load) send(c net.Conn, n int, slots chan struct{}, stop chan struct{}) error {
	frame := bytes.Clone(l.Frame)
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-stop:
			return nil
		}
		SetCorrelation(frame, int32(i))
		if _, err := c.Write(frame); err != nil {
			return fmt.Errorf("send request: %w", err)
		}
	}
	return nil
}

// Produced checks an answer to Produce version 12.
func Produced(s Shape) func([]byte) error {
	return func(body []byte) error {
		if len(body) == 0 || body[0] != 0 {
			return fmt.Errorf("tags in the header of a Produce answer")
		}
		return checkProduced(body[1:], 12, s.Partitions)
	}
}

// PumpFor sends a load for a while, and returns how many requests that was. It sends
// some, waits for their answers, and sends more the faster they come.
func (l *Load) PumpFor(conns []net.Conn, d time.Duration) (int, error) {
	sent, each := 0, len(conns)
	for end := time.Now().Add(d); sent == 0 || time.Now().Before(end); {
		began := time.Now()
		if err := l.Pump(conns, each, true, Produced(l.Shape)); err != nil {
			return sent, err
		}
		sent += each
		if time.Since(began) < min(d/10, 200*time.Millisecond) {
			each *= 2
		}
	}
	return sent, nil
}
