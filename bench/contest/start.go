package contest

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
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
		x.p.Kill()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", startName, err, x.p.Stderr)
		}
	}
	return nil
}

func (x *session) startUp(first bool) error {
	err := x.withConn(func(c net.Conn) error {
		if err := rig.Greet(c); err != nil {
			return err
		}
		return x.Await(func() error { return checkBroker(c) })
	})
	if err != nil {
		return err
	}
	x.note(pairMetric{group: startName, name: "exec to first answer, empty folder", unit: "ms", aim: 20}, rig.Millis(time.Since(x.p.Began)))
	if !first {
		return nil
	}
	time.Sleep(x.o.idle)
	mb, err := x.p.Status("VmRSS")
	if err != nil {
		return err
	}
	x.note(pairMetric{group: restName, name: "resident", unit: "MB", aim: 10}, mb)
	anon, err := x.p.Status("RssAnon")
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
	resp, err := rig.Ask(c, req)
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
	defer func() { x.p.Kill() }()
	topic, sh := "bench-restart", rig.NewShape(1024, 12)
	records, err := x.fillForRestart(topic, sh)
	if err != nil {
		return fmt.Errorf("%s: fill: %w\n%s", restartName, err, x.p.Stderr)
	}
	if err := x.p.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-x.p.Exited
	if x, err = c.open(s, folder); err != nil {
		return err
	}
	err = x.withConn(func(conn net.Conn) error {
		if err := rig.Greet(conn); err != nil {
			return err
		}
		first := time.Since(x.p.Began)
		if err := x.Await(func() error { return rig.CheckEnds(conn, topic, sh.Partitions, records) }); err != nil {
			return err
		}
		name := fmt.Sprintf("exec to all %g GB of records there", x.o.restart)
		x.note(pairMetric{group: restartName, name: "exec to first answer", unit: "ms", rule: fromCache}, rig.Millis(first))
		x.note(pairMetric{group: restartName, name: name, unit: "ms", rule: fromCache}, rig.Millis(time.Since(x.p.Began)))
		return x.lastBatch(conn, topic, sh, records)
	})
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", restartName, err, x.p.Stderr)
	}
	return nil
}

// fillForRestart produces with acks=1 and returns how many records each
// partition has.
func (x *session) fillForRestart(topic string, s rig.Shape) (int64, error) {
	conns, err := x.Connect(x.p, rig.Connections)
	if err != nil {
		return 0, err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], topic, s.Partitions); err != nil {
		return 0, err
	}
	l := s.Load(topic, 1)
	n := max(1, int(x.o.restart*1e9)/l.Bytes())
	if err := l.Pump(conns, n, true, rig.Produced(s)); err != nil {
		return 0, err
	}
	return int64(n * s.Records), nil
}

// lastBatch reads the last batch of each partition, to see that it is whole.
func (x *session) lastBatch(c net.Conn, topic string, s rig.Shape, records int64) error {
	from := records - int64(s.Records)
	req := rig.FetchRequest(topic, rig.FetchMaxBytes)
	for i := range s.Partitions {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rig.FetchPartition(int32(i), from, rig.PartitionMaxBytes))
	}
	answer, err := rig.Ask(c, req)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range answer.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			end, err := rig.CheckBatches(p.RecordBatches, from)
			if err != nil || end != records || p.ErrorCode != 0 {
				return errors.Join(err, fmt.Errorf("partition %d: error %d, records up to %d, expected %d", p.Partition, p.ErrorCode, end, records))
			}
			n++
		}
	}
	if n != s.Partitions {
		return fmt.Errorf("%d partitions in the answer, not %d", n, s.Partitions)
	}
	return nil
}
