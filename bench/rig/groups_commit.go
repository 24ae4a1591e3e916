package rig

import (
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const commitGroup = "groups commit"

// commitMeasure is a measure of commits to as many groups as there are
// connections, or to one.
type commitMeasure struct {
	name      string
	group     func(conn int) string
	rate, cpu metric
}

func newCommitMeasure(name string, group func(conn int) string) commitMeasure {
	return commitMeasure{
		name: name, group: group,
		rate: metric{commitGroup, name + ": durable commits", "1/s", noAim},
		cpu:  metric{commitGroup, name + ": per commit, processor time", "CPU-µs", noAim},
	}
}

// commits measures durable commits of one offset each. The connections are
// simple consumers, each with a partition of its own.
func (b *Bench) commits() error {
	if !b.Wanted(commitGroup) {
		return nil
	}
	if err := b.InScratch(b.commitRounds); err != nil {
		return fmt.Errorf("%s: %w", commitGroup, err)
	}
	return nil
}

func (b *Bench) commitRounds(folder string) error {
	p, err := b.startGroups(b.StartBroker, filepath.Join(folder, "broker"))
	if err != nil {
		return err
	}
	defer p.Kill()
	conns, err := b.Peers(p, b.Group.Connections)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	if err := createTopic(conns[0], GroupTopic, len(conns)); err != nil {
		return err
	}
	measures := []commitMeasure{
		newCommitMeasure(fmt.Sprintf("%d groups", len(conns)), func(i int) string { return fmt.Sprintf("commit-%03d", i) }),
		newCommitMeasure("1 group", func(int) string { return "commit-all" }),
	}
	for round := range b.Rounds {
		for _, m := range measures {
			if err := b.commitOnce(p, m, round, conns); err != nil {
				return fmt.Errorf("%s: %w\n%s", m.name, err, p.Stderr)
			}
			if err := b.commitBare(m, filepath.Join(folder, "bare")); err != nil {
				return fmt.Errorf("%s, bare: %w", m.name, err)
			}
		}
	}
	for _, m := range measures {
		b.Say("%s", b.Report.line(m.rate))
	}
	return p.Stop()
}

func CommitRequest(group string, partitions ...int32) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 7, group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = GroupTopic
	for _, partition := range partitions {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition = partition
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// commitOnce commits for a while, and checks that what was committed last is
// there.
func (b *Bench) commitOnce(p *Process, m commitMeasure, round int, conns []net.Conn) error {
	last := make([]int64, len(conns))
	total := 0
	s, err := b.spend(p, commitGroup+" "+m.name, func() (err error) {
		total, err = b.commitAll(conns, func(i, n int, c net.Conn) error {
			last[i] = int64(round+1)<<32 + int64(n)
			return Commit(c, m.group(i), int32(i), last[i])
		})
		return err
	})
	if err != nil {
		return err
	}
	b.noteCommits(m, broker, s, total)
	return Together(conns, func(i int, c net.Conn) error {
		return CheckCommitted(c, m.group(i), []int32{int32(i)}, func(int32) int64 { return last[i] })
	})
}

// commitAll has each connection commit again and again for a while, and returns
// how often they did.
func (b *Bench) commitAll(conns []net.Conn, commit func(i, n int, c net.Conn) error) (int, error) {
	var count atomic.Int64
	end := time.Now().Add(b.Group.Time)
	err := Together(conns, func(i int, c net.Conn) error {
		n := 0
		for ; n == 0 || time.Now().Before(end); n++ {
			if err := commit(i, n, c); err != nil {
				return err
			}
		}
		count.Add(int64(n))
		return nil
	})
	return int(count.Load()), err
}

func (b *Bench) noteCommits(m commitMeasure, s Side, spent Spent, total int) {
	wall, cpu := spent.micros(total)
	b.Report.add(m.rate, s, 1e6/wall)
	b.Report.add(m.cpu, s, cpu)
}

// Commit commits one offset.
func Commit(c net.Conn, group string, partition int32, offset int64) error {
	req := CommitRequest(group, partition)
	req.Topics[0].Partitions[0].Offset = offset
	return commitAsked(c, req)
}

// commitAsked sends a commit and checks that all of it was accepted.
func commitAsked(c net.Conn, req *kmsg.OffsetCommitRequest) error {
	answer, err := Ask(c, req)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range answer.(*kmsg.OffsetCommitResponse).Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("commit of %s, %s-%d: %w", req.Group, t.Topic, p.Partition, err)
			}
			n++
		}
	}
	if want := len(req.Topics[0].Partitions); n != want {
		return fmt.Errorf("commit of %s: answer for %d partitions, not %d", req.Group, n, want)
	}
	return nil
}

// CheckCommitted checks committed offsets.
func CheckCommitted(c net.Conn, group string, partitions []int32, want func(partition int32) int64) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 5, group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: GroupTopic, Partitions: partitions}}
	answer, err := Ask(c, req)
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.OffsetFetchResponse)
	n := 0
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Offset != want(p.Partition) {
				return fmt.Errorf("offset of %s, %s-%d is %d, error %d; committed was %d", group, t.Topic, p.Partition, p.Offset, p.ErrorCode, want(p.Partition))
			}
			n++
		}
	}
	if n != len(partitions) || resp.ErrorCode != 0 {
		return fmt.Errorf("offsets of %s: error %d, %d partitions, not %d", group, resp.ErrorCode, n, len(partitions))
	}
	return nil
}

// commitBare does the same with a bare program, which appends as many bytes to
// one file.
func (b *Bench) commitBare(m commitMeasure, file string) error {
	answer := kmsg.NewPtrOffsetCommitResponse()
	answer.Version = 7
	answer.Topics = []kmsg.OffsetCommitResponseTopic{{Topic: GroupTopic, Partitions: make([]kmsg.OffsetCommitResponseTopicPartition, 1)}}
	size := len(answer.AppendTo(nil))
	key := kmsg.OffsetCommitKey{Version: 1, Group: m.group(0), Topic: GroupTopic}
	value := kmsg.OffsetCommitValue{Version: 3}
	r := kmsg.Record{Key: key.AppendTo(nil), Value: value.AppendTo(nil)}
	p, err := b.startBare("_keep", fmt.Sprint(size), file, fmt.Sprint(len(r.AppendTo(nil))))
	if err != nil {
		return err
	}
	defer p.Kill()
	conns, err := b.Peers(p, b.Group.Connections)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	total := 0
	s, err := b.spend(p, "", func() (err error) {
		total, err = b.commitAll(conns, func(i, n int, c net.Conn) error {
			req := CommitRequest(m.group(i), int32(i))
			if _, err := c.Write(RequestFrame(req, int32(n))); err != nil {
				return err
			}
			id, body, err := ReadFrame(c, nil)
			if err == nil && (id != int32(n) || len(body) != size) {
				err = fmt.Errorf("answer %d of %d bytes", id, len(body))
			}
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	b.noteCommits(m, bare, s, total)
	return p.Stop()
}
