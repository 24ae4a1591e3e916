package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
	"muster/internal/redistest"
)

// process is a broker that can be killed.
type process struct {
	t       *testing.T
	redis   *redistest.Server
	address string
	node    int
	running *exec.Cmd
}

func (p *process) start() {
	p.t.Helper()
	program, err := os.Executable()
	must(p.t, err)
	p.running = exec.CommandContext(p.t.Context(), program, "serve", "--store", p.redis.URL(), "--listen", p.address,
		"--set", fmt.Sprint("node.id=", p.node), "--set", "broker.session.timeout.ms=1000", "--set", "broker.heartbeat.interval.ms=200")
	p.running.Env = append(os.Environ(), asMain+"=1")
	must(p.t, p.running.Start())
}

func (p *process) kill() {
	must(p.t, p.running.Process.Kill())
	_ = p.running.Wait()
}

// A broker is killed while it takes a step of a conversion, or after it, with clients under way. The
// conversion is taken up again by running it again, and nothing is lost or there twice.
func TestAConversionWhoseBrokerIsKilledIsTakenUpAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about processes, which other tests have under race")
	}
	p := &process{t: t, redis: redistest.Single(t), address: freeAddress(t), node: 1}
	p.start()
	t.Cleanup(p.kill)
	s := &shell{t, p.address}
	redistest.Eventually(t, "the broker to answer", func() bool { return s.run("topics", "list").code == exitOK })
	steps := []struct {
		step      string
		partition int32
	}{
		{protocol.ConvertPrepare, 0}, {protocol.ConvertPrepare, 1}, {protocol.ConvertSwitch, 0}, {protocol.ConvertSwitch, 1},
		{protocol.ConvertLeave, 0}, {protocol.ConvertFinish, 0},
	}
	for _, c := range []struct {
		from string
		at   int
	}{{"stream", 0}, {"stream", 2}, {"stream", 3}, {"stream", 5}, {"log", 0}, {"log", 3}} {
		at, topic := c.at, fmt.Sprint("orders-", c.from, c.at)
		s.run("topics", "create", topic, "-p", "2", "-c", "muster.redis.layout="+c.from).ok()
		w := newWriter(t, s.broker, topic)
		w.atLeast(40)
		stopped := newReader(t, s.broker, "stopped-"+topic, topic, true)
		stopped.atLeast(20)
		stopped.close()
		r := newReader(t, s.broker, "running-"+topic, topic, at%2 == 0)
		r.atLeast(20)

		client, err := kgo.NewClient(kgo.SeedBrokers(s.broker), kgo.RequestRetries(0))
		must(t, err)
		for k, step := range steps[:at+1] {
			if k < at {
				redistest.Eventually(t, fmt.Sprint("step ", step), func() bool { return askStep(t.Context(), client, topic, step.step, step.partition) })
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			asked := make(chan bool)
			go func() { asked <- askStep(ctx, client, topic, step.step, step.partition) }()
			whole := at == 2 || at == 5 // It is killed after the step, in the others while it takes it.
			if whole {
				<-asked
			}
			p.kill()
			cancel()
			if !whole {
				<-asked
			}
		}
		client.Close()
		p.start()
		redistest.Eventually(t, "the conversion to be done", func() bool {
			again := s.run("topics", "convert", topic, "--to", "indexed", "--execute")
			return again.code == exitOK
		})
		s.run("topics", "check", topic).ok()
		w.atLeast(w.count() + 20)
		want := w.stop()
		redistest.Eventually(t, "the group to read all", func() bool { return missing(want, r) == 0 })
		r.close()
		rest := newReader(t, s.broker, "stopped-"+topic, topic, true)
		redistest.Eventually(t, "the group that was stopped to read the rest", func() bool { return missing(want, stopped, rest) == 0 })
		rest.close()
		if n := overlap(stopped, rest); n > 0 {
			t.Errorf("%s: the group that was stopped read %d records again", topic, n)
		}
		all := newReader(t, s.broker, "all-"+topic, topic, true)
		redistest.Eventually(t, "all to be there", func() bool { return missing(want, all) == 0 })
		all.close()
		if got := all.values(); len(got) != len(want) {
			t.Errorf("%s: %d records are there, and %d were written", topic, len(got), len(want))
		}
		all.wantDense(2)
	}
}

// askStep asks for a step, and says whether it is done.
func askStep(ctx context.Context, client *kgo.Client, topic, step string, partition int32) bool {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	t := kmsg.NewDescribeTopicPartitionsRequestTopic()
	t.Topic = topic
	protocol.AskConvert(&t.UnknownTags, protocol.Convert{Step: step, Run: "killed"})
	req.Topics, req.ResponsePartitionLimit = append(req.Topics, t), 1
	cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
	cursor.Topic, cursor.Partition = topic, partition
	req.Cursor = &cursor
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	resp, err := req.RequestWith(ctx, client)
	if err != nil || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		return false
	}
	out := protocol.GetConverting(&resp.Topics[0].Partitions[0].UnknownTags)
	return out != nil && out.Done
}
