package contest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

const (
	commitName        = "commits"
	durableCommitName = "durable commits"
)

// committing is a measure of commits to as many groups as there are connections,
// or to one.
type committing struct {
	rate
	group func(conn int) string
}

func committings(name, rule string, conns int) []committing {
	return []committing{
		{newRate(name, fmt.Sprintf("%d groups", conns), rule), func(i int) string { return fmt.Sprintf("commit-%03d", i) }},
		{newRate(name, "1 group", rule), func(int) string { return "commit-all" }},
	}
}

// commits commits one offset at a time on each connection, first under Kafka's
// rule and then with each commit on disk.
func (x *session) commits(conns []net.Conn) error {
	if !x.anyWanted(commitName, durableCommitName) {
		return nil
	}
	plain, durable := committings(commitName, fromCache, len(conns)), committings(durableCommitName, onDisk, len(conns))
	if _, err := x.commitFor(plain[0], conns, x.o.warm/2, 0); err != nil { // to warm up
		return err
	}
	for _, m := range slices.Concat(plain, durable) {
		if !x.wanted(m.name) {
			continue
		}
		if m.name == durableCommitName {
			if err := x.makeCommitsDurable(conns[0]); err != nil {
				return err
			}
		}
		if err := x.commitAndCount(m, conns); err != nil {
			return fmt.Errorf("%s: %w", m.speed.title(), err)
		}
	}
	return nil
}

func (x *session) makeCommitsDurable(c net.Conn) error {
	if x.side == rig.Ours {
		return alter(c, kmsg.ConfigResourceTypeBroker, "", pageRule+"=true")
	}
	return alter(c, kmsg.ConfigResourceTypeTopic, "__consumer_offsets", flushEach)
}

// commitAndCount commits, and checks that what was committed last is there.
func (x *session) commitAndCount(m committing, conns []net.Conn) error {
	const first = 1 << 32
	var last []int64
	err := x.count(m.rate, func() (n int, err error) {
		last, err = x.commitFor(m, conns, x.Group.Time, first)
		for _, offset := range last {
			n += int(offset - first)
		}
		return n, err
	})
	if err != nil {
		return err
	}
	return rig.Together(conns, func(i int, c net.Conn) error {
		return rig.CheckCommitted(c, m.group(i), []int32{int32(i)}, func(int32) int64 { return last[i] })
	})
}

// commitFor commits for a while, the offsets that follow first, and returns the
// last one of each connection.
func (x *session) commitFor(m committing, conns []net.Conn, d time.Duration, first int64) ([]int64, error) {
	last := make([]int64, len(conns))
	end := time.Now().Add(d)
	err := rig.Together(conns, func(i int, c net.Conn) error {
		l := newCommitter(m.group(i), int32(i))
		last[i] = first
		for last[i] == first || time.Now().Before(end) {
			last[i]++
			if err := l.commit(c, last[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return last, err
}

// committer commits one offset of a group again and again, with a request that
// is encoded once.
type committer struct {
	frame  []byte
	at     int    // where in the frame the offset is
	answer []byte // that says all is well
	sent   int32
	buf    []byte
}

func newCommitter(group string, partition int32) *committer {
	req := rig.CommitRequest(group, partition)
	req.Topics[0].Partitions[0].Offset = 0x0102030405060708
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.Version = req.Version
	resp.Topics = []kmsg.OffsetCommitResponseTopic{{
		Topic: rig.GroupTopic, Partitions: []kmsg.OffsetCommitResponseTopicPartition{{Partition: partition}},
	}}
	frame := rig.RequestFrame(req, 0)
	return &committer{frame: frame, at: bytes.Index(frame, []byte{1, 2, 3, 4, 5, 6, 7, 8}), answer: resp.AppendTo(nil)}
}

func (l *committer) commit(c net.Conn, offset int64) error {
	binary.BigEndian.PutUint64(l.frame[l.at:], uint64(offset))
	l.sent++
	rig.SetCorrelation(l.frame, l.sent)
	if _, err := c.Write(l.frame); err != nil {
		return err
	}
	id, body, err := rig.ReadFrame(c, l.buf)
	if err != nil {
		return err
	}
	if l.buf = body; id != l.sent || !bytes.Equal(body, l.answer) {
		return fmt.Errorf("commit %d: answer %d is %x, not %x", l.sent, id, body, l.answer)
	}
	return nil
}
