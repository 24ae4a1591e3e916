package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	startName   = "start-up"
	restName    = "memory at rest"
	restartName = "restart after kill -9"
)

// startUps measures starts on an empty folder, and memory at rest. Kafka's
// folder is formatted already.
func (c *contest) startUps(s *subject, folder string) error {
	if !c.anyWanted(startName, restName) {
		return nil
	}
	for i := range c.o.starts {
		x, err := c.open(s, filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		err = x.startUp(i == 0)
		x.p.kill()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", startName, err, x.p.stderr)
		}
	}
	return nil
}

func (x *session) startUp(first bool) error {
	err := x.withConn(func(c net.Conn) error {
		if err := greet(c); err != nil {
			return err
		}
		return x.await(func() error { return checkBroker(c) })
	})
	if err != nil {
		return err
	}
	x.note(pairMetric{group: startName, name: "exec to first answer, empty folder", unit: "ms", aim: 20}, millis(time.Since(x.p.began)))
	if !first {
		return nil
	}
	time.Sleep(x.o.idle)
	mb, err := x.p.status("VmRSS")
	if err != nil {
		return err
	}
	x.note(pairMetric{group: restName, name: "resident", unit: "MB", aim: 10}, mb)
	anon, err := x.p.status("RssAnon")
	if err != nil {
		return err
	}
	x.note(pairMetric{group: restName, name: "of it not backed by files", unit: "MB"}, anon)
	return nil
}

// checkBroker asks for Metadata and checks that the broker is in it.
func checkBroker(c net.Conn) error {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = 9, []kmsg.MetadataRequestTopic{}
	resp, err := ask(c, req)
	if err != nil {
		return err
	}
	if n := len(resp.(*kmsg.MetadataResponse).Brokers); n != 1 {
		return fmt.Errorf("metadata tells of %d brokers", n)
	}
	return nil
}

// killed measures how long a broker takes to come back with its data after it
// was killed just behind the last answer.
func (c *contest) killed(s *subject, folder string) error {
	if !c.wanted(restartName) {
		return nil
	}
	x, err := c.open(s, folder)
	if err != nil {
		return err
	}
	defer func() { x.p.kill() }()
	topic, sh := "bench-restart", newShape(1024, 12)
	records, err := x.fillForRestart(topic, sh)
	if err != nil {
		return fmt.Errorf("%s: fill: %w\n%s", restartName, err, x.p.stderr)
	}
	if err := x.p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-x.p.exited
	if x, err = c.open(s, folder); err != nil {
		return err
	}
	err = x.withConn(func(conn net.Conn) error {
		if err := greet(conn); err != nil {
			return err
		}
		first := time.Since(x.p.began)
		if err := x.await(func() error { return checkEnds(conn, topic, sh.partitions, records) }); err != nil {
			return err
		}
		name := fmt.Sprintf("exec to all %g GB of records there", x.o.restart)
		x.note(pairMetric{group: restartName, name: "exec to first answer", unit: "ms", rule: fromCache}, millis(first))
		x.note(pairMetric{group: restartName, name: name, unit: "ms", rule: fromCache}, millis(time.Since(x.p.began)))
		return x.lastBatch(conn, topic, sh, records)
	})
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", restartName, err, x.p.stderr)
	}
	return nil
}

// fillForRestart produces with acks=1 and returns how many records each
// partition has.
func (x *session) fillForRestart(topic string, s shape) (int64, error) {
	conns, err := x.connect(x.p, connections)
	if err != nil {
		return 0, err
	}
	defer closeAll(conns)
	if err := x.newTopic(conns[0], topic, s.partitions); err != nil {
		return 0, err
	}
	l := s.load(topic, 1)
	n := max(1, int(x.o.restart*1e9)/l.bytes())
	if err := l.pump(conns, n, true, produced(s)); err != nil {
		return 0, err
	}
	return int64(n * s.records), nil
}

// lastBatch reads the last batch of each partition, to see that it is whole.
func (x *session) lastBatch(c net.Conn, topic string, s shape, records int64) error {
	from := records - int64(s.records)
	req := fetchRequest(topic, fetchMaxBytes)
	for i := range s.partitions {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchPartition(int32(i), from, partitionMaxBytes))
	}
	answer, err := ask(c, req)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range answer.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			end, err := checkBatches(p.RecordBatches, from)
			if err != nil || end != records || p.ErrorCode != 0 {
				return errors.Join(err, fmt.Errorf("partition %d: error %d, records up to %d, expected %d", p.Partition, p.ErrorCode, end, records))
			}
			n++
		}
	}
	if n != s.partitions {
		return fmt.Errorf("%d partitions in the answer, not %d", n, s.partitions)
	}
	return nil
}
