package broker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
	"muster/internal/share/requests"
)

// shareDir tells the process of a test that it is to be killed, and where it keeps its records.
const shareDir = "MUSTER_TEST_SHARE_DIR"

// TestShareStateOfAKilledBrokerIsKept kills a process with a broker while that writes the state
// of a share partition, and reads what it was told is written.
func TestShareStateOfAKilledBrokerIsKept(t *testing.T) {
	props := map[string]string{"muster.store": "disk", "log.dir": os.Getenv(shareDir), "share.coordinator.snapshot.update.records.per.snapshot": "20"}
	if props["log.dir"] != "" {
		s := shareWriter(t, props)
		for i := int64(0); ; i++ {
			if got := s.write(1, 0, 0, i, i); got != "1× OK" {
				t.Fatal(got)
			}
			fmt.Printf("written %d\n", i)
		}
	}
	props["log.dir"] = t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), shareDir+"="+props["log.dir"])
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	last := int64(-1)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "written %d", &last); err == nil && last == 150 {
			must(t, cmd.Process.Kill())
		}
	}
	assert.Error(t, cmd.Wait(), "it ended by itself")
	assert.MustTrue(t, last >= 150, "only %d writes were answered", last+1)
	s := sharesOf(t, start(t, props), "t")
	var first, end int64
	got := s.read(1, 0)
	_, err = fmt.Sscanf(got, "1× epoch 1 start 0 %d-%d=2/1", &first, &end)
	assert.True(t, err == nil && first == 0 && end >= last && end <= last+1, "%d was written, and there is %s", last, got)
}

// shareWriter starts a broker with a share partition.
func shareWriter(t *testing.T, props map[string]string) *shares {
	b := start(t, props)
	produce(t, client(t, b), "t", 0, 1)
	s := sharesOf(t, b, "t")
	assert.MustEqual(t, s.initialize(1, 1, 0), "1× OK", "initialize")
	return s
}

// TestTheLogOfShareStateIsCutToWhatIsNeeded writes many updates of one share partition, and one of
// another that is idle then.
func TestTheLogOfShareStateIsCutToWhatIsNeeded(t *testing.T) {
	props := map[string]string{
		"muster.store": "disk", "log.dir": t.TempDir(), "num.partitions": "2", "share.coordinator.state.topic.num.partitions": "1",
		"share.coordinator.snapshot.update.records.per.snapshot": "10", "share.coordinator.state.topic.prune.interval.ms": "20",
		"share.coordinator.cold.partition.snapshot.interval.ms": "200",
	}
	b := start(t, props)
	produce(t, client(t, b), "t", 0, 1)
	s := sharesOf(t, b, "t")
	assert.MustEqual(t, s.initialize(2, 1, 0), "2× OK", "initialize")
	assert.MustEqual(t, s.write(2, 0, 0, 0, 0), "2× OK", "write")
	offset := int64(0)
	eventually(t, "the log begins later", func(context.Context) error {
		if offset++; s.write(1, 0, 0, offset, offset) != "1× OK" {
			return errors.New("it is not written")
		}
		if start := b.Partition(metadata.ShareStateTopic, 0).LogStartOffset(); start < 30 {
			return fmt.Errorf("the log starts at %d", start)
		}
		return nil
	})
	want := fmt.Sprintf("epoch 1 start 0 0-%d=2/1, epoch 1 start 0 0-0=2/1", offset)
	assert.Equal(t, s.read(2, 0), want, "read")
	must(t, b.Close())
	s.b = start(t, props)
	assert.Equal(t, s.read(2, 0), want, "read after a restart")
}

// apart gives shares a group whose first partitions of a topic have different coordinators.
func (s *shares) apart() {
	for i := 0; ; i++ {
		s.group = fmt.Sprint("g", i)
		one, _ := requests.Coordinator(s.b.Image(), requests.Key{Group: s.group, Topic: s.topic})
		other, _ := requests.Coordinator(s.b.Image(), requests.Key{Group: s.group, Topic: s.topic, Partition: 1})
		if one != other {
			return
		}
	}
}

// TestShareStateMovesWithItsCoordinators has brokers ask each other, and one of them leave.
func TestShareStateMovesWithItsCoordinators(t *testing.T) {
	_, brokers := fleet(t, 2)
	s := sharesOf(t, brokers[0], "t")
	assert.MustEqual(t, s.initialize(1, 1, 0), "1× OK", "initialize")
	s.apart()
	assert.MustEqual(t, s.initialize(3, 1, 0), "3× OK", "initialize")
	s.b = brokers[1]
	assert.Equal(t, s.read(3, 1), "3× epoch 1 start 0", "read")
	assert.Equal(t, s.write(3, 1, 0, 0, 4), "3× OK", "write")
	s.b = brokers[0]
	assert.Equal(t, s.write(3, 0, 0, 0, 4), "3× FENCED_LEADER_EPOCH", "write of the leader before")
	assert.Equal(t, s.read(3, 2), "3× epoch 1 start 0 0-4=2/1", "read")
	must(t, brokers[1].Close())
	assert.Equal(t, s.write(3, 2, 2, 5, 5), "3× OK", "write after one has left")
	assert.Equal(t, s.summary(3), "3× start 2 completed 1 leader 2", "summary after one has left")
}

// TestALeaderKnowsMoreThanAStoreThatWasPutBack has Redis forget that the offsets of a group were
// altered, and a leader write that knows.
func TestALeaderKnowsMoreThanAStoreThatWasPutBack(t *testing.T) {
	server, brokers := fleet(t, 2, func(c *broker.Config) {
		c.Properties["share.coordinator.state.topic.num.partitions"] = "4"
	})
	s := sharesOf(t, brokers[0], "t")
	assert.MustEqual(t, s.initialize(3, 1, 0), "3× OK", "initialize")
	assert.MustEqual(t, s.write(3, 1, 0, 0, 4), "3× OK", "write")
	older := server.Nodes[0].Snapshot(t)
	assert.MustEqual(t, s.initialize(3, 2, 10), "3× OK", "initialize")
	assert.MustEqual(t, s.read(3, 2), "3× epoch 2 start 10", "read")
	server.Nodes[0].Restore(t, older)
	s.b, s.epoch = brokers[1], 2
	eventually(t, "write", func(context.Context) error {
		if got := s.write(3, 2, 11, 12, 13); got != "3× OK" {
			return errors.New(got)
		}
		return nil
	})
	assert.Equal(t, s.read(3, 2), "3× epoch 2 start 11 12-13=2/1", "read")
	s.epoch = 1
	assert.True(t, strings.HasSuffix(s.write(3, 2, 0, 0, 4), "FENCED_STATE_EPOCH"), "an older state epoch is not fenced")
}
