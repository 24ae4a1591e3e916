package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func TestScenarios(t *testing.T) {
	harness.Walk(t, func(t *testing.T) func(*testing.T, *datadriven.TestData) string { return newScenario(t).run })
}

// scenario plays brokers, log and clock around a shard.
type scenario struct {
	harness.Scenario
	cfg      Config
	shard    *Shard
	log      []machine.StoredRecord // what is durable
	next     int64                  // the offset of the next record
	image    *metadata.Image
	maxBatch int
	slow     []func() // told later where batches are
	isSlow   bool
	quiet    bool
}

var topicIDs = map[string]metadata.TopicID{"t": {15: 1}, "u": {15: 2}}

// imageOf has topics of three partitions.
func imageOf(topics ...string) *metadata.Image {
	defaults, err := config.NewBroker(nil)
	if err != nil {
		panic(err)
	}
	edit := metadata.NewImage(defaults).Edit()
	for _, name := range topics {
		edit.PutTopic(metadata.Topic{Name: name, ID: topicIDs[name], Partitions: make([]metadata.Partition, 3)})
	}
	return edit.Image()
}

func newScenario(t testing.TB) *scenario {
	s := &scenario{Scenario: harness.Scenario{T: t}}
	s.restart()
	return s
}

func (s *scenario) restart() {
	*s = scenario{Scenario: harness.Begin(s.T, s.step), cfg: DefaultConfig(), image: imageOf("t", "u")}
	s.load()
	s.Out.Reset()
}

func (s *scenario) load() {
	s.Forget()
	s.shard, s.slow = NewShard(s.cfg), nil
	s.shard.Replay(machine.Stored{Records: s.log})
	s.step(machine.Loaded{})
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.T = t
	s.Out.Reset()
	cmd, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	cmd(s, harness.Args{T: t, D: d})
	s.check(d.Pos)
	return s.Outcome()
}

// check holds the shard against its invariants and its log.
func (s *scenario) check(where string) {
	if err := s.shard.CheckInvariants(); err != nil {
		s.T.Errorf("%s: %v", where, err)
	}
	again := NewShard(s.cfg)
	again.Replay(machine.Stored{Records: s.log})
	if again.Digest() != s.shard.Digest() {
		s.T.Errorf("%s: the log does not say what the shard knows", where)
	}
}

var commands map[string]func(*scenario, harness.Args)

func init() {
	commands = map[string]func(*scenario, harness.Args){
		"new": (*scenario).begin, "init": (*scenario).init, "write": (*scenario).write, "read": (*scenario).read, "summary": (*scenario).summary, "delete": (*scenario).remove,
		"wait": func(s *scenario, a harness.Args) { s.Pass(harness.ParseDuration(s.T, a.Who())) }, "failover": func(s *scenario, _ harness.Args) { s.load() },
		"topics": (*scenario).topics, "log": (*scenario).showLog, "slow": func(s *scenario, _ harness.Args) { s.isSlow = true }, "durable": (*scenario).durable,
		"writes": (*scenario).writes, "stale-timers": func(s *scenario, _ harness.Args) { s.FireStale(&s.shard.seq) },
	}
}

// new [updates=500] [max-batch=200] [max-bytes=5000]: an empty log.
func (s *scenario) begin(a harness.Args) {
	s.restart()
	s.cfg.Updates = a.Number("updates", s.cfg.Updates)
	s.cfg.MaxBytes = int64(a.Number("max-bytes", int(s.cfg.MaxBytes)))
	s.maxBatch = a.Number("max-batch", 0)
	s.load()
	s.Out.Reset()
}

func (s *scenario) step(e machine.Event) {
	fx := s.shard.Step(machine.Input{Now: s.Now, Image: s.image, MaxBatch: s.maxBatch, Event: e})
	for _, b := range fx.Batches {
		first := s.next
		for _, r := range b.Records {
			key, value := r.Encode()
			again, err := schema.DecodeShare(key, value)
			if err != nil {
				s.T.Errorf("%+v: %v", r, err)
			}
			s.log = append(s.log, machine.StoredRecord{Offset: s.next, Record: again})
			s.Printf("stored: %s\n", showRecord(s.next, again))
			s.next++
		}
		told := func() { s.step(machine.Appended{Tag: b.Tag, Offset: first}) }
		switch {
		case b.Tag == 0:
		case s.isSlow:
			s.slow = append(s.slow, told)
		default:
			told()
		}
	}
	for _, n := range machine.NotesOf[Prune](fx.Notes) {
		s.log = slices.DeleteFunc(s.log, func(r machine.StoredRecord) bool { return r.Offset < n.Before })
		s.Printf("the log may begin at %d\n", n.Before)
	}
	for _, r := range fx.Replies {
		if who, resp, ok := s.Answered(r); ok && !s.quiet {
			s.Printf("%s ← %s\n", who, showReply(resp))
		}
	}
	s.Stale = append(s.Stale, harness.Arm(s.Timers, fx.Timers)...)
}

// durable: the shard is told where its snapshots are.
func (s *scenario) durable(harness.Args) {
	slow := s.slow
	s.slow, s.isSlow = nil, false
	for _, told := range slow {
		told()
	}
}

func nameOf(id metadata.TopicID) string { return string([]byte{'s' + id[15]}) }

func showKey(group string, topic metadata.TopicID, partition int32) string {
	return fmt.Sprintf("%s/%s:%d", group, nameOf(topic), partition)
}

func showRecord(offset int64, r machine.Record) string {
	switch r := r.(type) {
	case *schema.ShareUpdateRecord:
		v := r.Value
		return fmt.Sprintf("%d %s update after snapshot %d leader=%d start=%d%s completed=%d", offset, showKey(r.Group, r.Topic, r.Partition), v.SnapshotEpoch, v.LeaderEpoch, v.Start, showRuns(v.Runs), v.Completed)
	case *schema.ShareSnapshotRecord:
		v := r.Value
		if v == nil {
			return fmt.Sprintf("%d %s tombstone", offset, showKey(r.Group, r.Topic, r.Partition))
		}
		return fmt.Sprintf("%d %s snapshot %d state=%d leader=%d start=%d%s completed=%d", offset, showKey(r.Group, r.Topic, r.Partition), v.SnapshotEpoch, v.StateEpoch, v.LeaderEpoch, v.Start, showRuns(v.Runs), v.Completed)
	}
	return "?"
}

func showRuns(runs []Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, " %s", showRun(r))
	}
	return b.String()
}

func showRun(r Run) string {
	offsets := fmt.Sprintf("%d-%d", r.First, r.Last)
	if r.First == r.Last {
		offsets = fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%s=%d/%d", offsets, r.State, r.Count)
}

func showReply(resp kmsg.Response) string {
	var all []string
	add := func(topic [16]byte, partition int32, code int16, format string, args ...any) {
		text := fmt.Sprintf("%s:%d %s", nameOf(topic), partition, harness.ErrorName(code))
		if code == 0 {
			text += fmt.Sprintf(format, args...)
		}
		all = append(all, text)
	}
	switch m := resp.(type) {
	case *kmsg.InitializeShareGroupStateResponse:
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				add(t.TopicID, p.Partition, p.ErrorCode, "")
			}
		}
	case *kmsg.WriteShareGroupStateResponse:
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				add(t.TopicID, p.Partition, p.ErrorCode, "")
			}
		}
	case *kmsg.DeleteShareGroupStateResponse:
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				add(t.TopicID, p.Partition, p.ErrorCode, "")
			}
		}
	case *kmsg.ReadShareGroupStateResponse:
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				var runs []Run
				for _, b := range p.StateBatches {
					runs = append(runs, Run{First: b.FirstOffset, Last: b.LastOffset, State: b.DeliveryState, Count: b.DeliveryCount})
				}
				add(t.TopicID, p.Partition, p.ErrorCode, " state=%d start=%d%s", p.StateEpoch, p.StartOffset, showRuns(runs))
			}
		}
	case *kmsg.ReadShareGroupStateSummaryResponse:
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				add(t.TopicID, p.Partition, p.ErrorCode, " state=%d leader=%d start=%d completed=%d", p.StateEpoch, p.LeaderEpoch, p.StartOffset, p.DeliveryCompleteCount)
			}
		}
	}
	return strings.Join(all, ", ")
}

// Requests are about t:0, or topic=u p=1, of group=g.
func (s *scenario) send(who string, msg kmsg.Request) { s.Request(who, "c", "h", msg) }

func at(a harness.Args) (group string, topic metadata.TopicID, partition int32) {
	id, ok := topicIDs[a.Text("topic", "t")]
	if !ok {
		id = metadata.TopicID{15: 3}
	}
	return a.Text("group", "g"), id, int32(a.Number("p", 0))
}

func (s *scenario) init(a harness.Args) {
	m := kmsg.NewPtrInitializeShareGroupStateRequest()
	t, p := kmsg.NewInitializeShareGroupStateRequestTopic(), kmsg.NewInitializeShareGroupStateRequestTopicPartition()
	m.GroupID, t.TopicID, p.Partition = at(a)
	p.StateEpoch, p.StartOffset = int32(a.Number("state", 1)), int64(a.Number("start", -1))
	t.Partitions = append(t.Partitions, p)
	m.Topics = append(m.Topics, t)
	s.send(a.Who(), m)
}

// write a 0-4=2/1 7=0/1 [leader=1] [state=1] [start=-1] [completed=-1] [v=1]
func (s *scenario) write(a harness.Args) {
	m := kmsg.NewPtrWriteShareGroupStateRequest()
	m.Version = int16(a.Number("v", 1))
	t, p := kmsg.NewWriteShareGroupStateRequestTopic(), kmsg.NewWriteShareGroupStateRequestTopicPartition()
	m.GroupID, t.TopicID, p.Partition = at(a)
	p.StateEpoch, p.LeaderEpoch, p.StartOffset = int32(a.Number("state", 1)), int32(a.Number("leader", 1)), int64(a.Number("start", -1))
	p.DeliveryCompleteCount = int32(a.Number("completed", -1))
	for _, c := range a.D.CmdArgs[1:] {
		if c.Key[0] < '0' || c.Key[0] > '9' {
			continue
		}
		b := kmsg.NewWriteShareGroupStateRequestTopicPartitionStateBatch()
		if _, err := fmt.Sscanf(c.Key, "%d-%d", &b.FirstOffset, &b.LastOffset); err != nil {
			b.LastOffset = b.FirstOffset
		}
		if _, err := fmt.Sscanf(c.Vals[0], "%d/%d", &b.DeliveryState, &b.DeliveryCount); err != nil {
			s.T.Fatal(err)
		}
		p.StateBatches = append(p.StateBatches, b)
	}
	t.Partitions = append(t.Partitions, p)
	m.Topics = append(m.Topics, t)
	s.send(a.Who(), m)
}

// writes a n=500: so many, of an offset each.
func (s *scenario) writes(a harness.Args) {
	s.quiet = true
	for i := range a.Number("n", 1) {
		s.Out.Reset()
		line := *a.D
		line.CmdArgs = append(slices.Clone(a.D.CmdArgs), datadriven.CmdArg{Key: fmt.Sprint(i), Vals: []string{"2/1"}})
		s.write(harness.Args{T: s.T, D: &line})
	}
	s.quiet = false
	s.Printf("and all before\n")
}

func (s *scenario) read(a harness.Args) {
	m := kmsg.NewPtrReadShareGroupStateRequest()
	t, p := kmsg.NewReadShareGroupStateRequestTopic(), kmsg.NewReadShareGroupStateRequestTopicPartition()
	m.GroupID, t.TopicID, p.Partition = at(a)
	p.LeaderEpoch = int32(a.Number("leader", 1))
	t.Partitions = append(t.Partitions, p)
	m.Topics = append(m.Topics, t)
	s.send(a.Who(), m)
}

func (s *scenario) summary(a harness.Args) {
	m := kmsg.NewPtrReadShareGroupStateSummaryRequest()
	m.Version = int16(a.Number("v", 1))
	t, p := kmsg.NewReadShareGroupStateSummaryRequestTopic(), kmsg.NewReadShareGroupStateSummaryRequestTopicPartition()
	m.GroupID, t.TopicID, p.Partition = at(a)
	p.LeaderEpoch = int32(a.Number("leader", 1))
	t.Partitions = append(t.Partitions, p)
	m.Topics = append(m.Topics, t)
	s.send(a.Who(), m)
}

func (s *scenario) remove(a harness.Args) {
	m := kmsg.NewPtrDeleteShareGroupStateRequest()
	t, p := kmsg.NewDeleteShareGroupStateRequestTopic(), kmsg.NewDeleteShareGroupStateRequestTopicPartition()
	m.GroupID, t.TopicID, p.Partition = at(a)
	t.Partitions = append(t.Partitions, p)
	m.Topics = append(m.Topics, t)
	s.send(a.Who(), m)
}

// topics t [gone=u]: the topics that there are.
func (s *scenario) topics(a harness.Args) {
	var there []string
	for _, c := range a.D.CmdArgs {
		if len(c.Vals) == 0 {
			there = append(there, c.Key)
		}
	}
	s.image = imageOf(there...)
	s.step(machine.TopicsChanged{Topics: there, Gone: a.List("gone")})
}

// log: what is durable.
func (s *scenario) showLog(harness.Args) {
	for _, r := range s.log {
		s.Printf("%s\n", showRecord(r.Offset, r.Record))
	}
}
