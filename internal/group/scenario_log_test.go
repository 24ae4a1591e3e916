package group

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// crash [epoch=1] [loses=2]: the broker is gone, with all soft state, and another one
// loads the shard from its log, under a leader epoch. The log may have lost its last
// batches.
func (s *scenario) crash(d *datadriven.TestData) {
	a := s.args(d)
	s.epoch = int32(a.Number("epoch", int(s.epoch)))
	for _, b := range s.log[max(len(s.log)-a.Number("loses", 0), 0):] {
		for _, text := range s.showBatches([]machine.Batch{b}) {
			s.Printf("lost: %s\n", text)
		}
	}
	s.log = s.log[:max(len(s.log)-a.Number("loses", 0), 0)]
	s.load()
}

// append-fails [after=2]: the next records cannot be written, or only the first two.
func (s *scenario) appendFails(d *datadriven.TestData) {
	s.failing = true
	s.torn = s.args(d).Number("after", 0)
}

// failed does what the shell does when records cannot be written: it drops the
// shard with all answers that wait, and loads it again.
func (s *scenario) failed(fx machine.Effects) {
	s.failing = false
	stored, lost := tornAfter(fx.Batches, s.torn)
	for _, text := range s.showBatches(stored) {
		s.Printf("stored: %s\n", text)
	}
	for _, text := range s.showBatches(lost) {
		s.Printf("not stored: %s\n", text)
	}
	s.log = append(s.log, stored...)
	s.load()
}

// tornAfter returns what is stored of batches if the log fails after n records, and
// what is not. What is one record batch is stored or not.
func tornAfter(batches []machine.Batch, n int) (stored, lost []machine.Batch) {
	for _, b := range cloneBatches(batches) {
		size := max(len(b.Records), 1)
		switch {
		case n >= size:
			stored = append(stored, b)
		case n <= 0 || b.Whole || b.Producer != nil:
			lost, n = append(lost, b), 0
		default:
			stored, lost = append(stored, machine.Batch{Records: b.Records[:n]}), append(lost, machine.Batch{Records: b.Records[n:]})
		}
		n -= size
	}
	return stored, lost
}

// compact [keep-tombstones]: the log is compacted, and loaded.
func (s *scenario) compact(d *datadriven.TestData) {
	s.log = compacted(s.log, len(s.log), d.HasArg("keep-tombstones"))
	s.load()
}

func (s *scenario) load() {
	s.Forget()
	s.sends, s.tasks = nil, nil
	s.shard = replayed(s.log, s.cfg)
	s.step(machine.Loaded{Epoch: s.epoch})
}

// replay lists records, one per line of the input, that the log holds from now
// on instead of what it held:
//
//	group g [generation=3] [type=consumer] [protocol=range] [leader=m1] [members=(m1,m2/i2)] [assign=(m1=t:0)] [age=2h] [version=3]
//	offset g t:0 5 [age=2h] [expires=1h] [id=7]
//	rebalancing g [generation=3] [loads=1]
//	departed g m1 [generation=3]
//	silent g m1 for=10s
//	tombstone g [t:0]
//	commit|abort pid=1 [epoch=0] [coordinator=0]
//	consumer-epoch g 5; consumer-target-epoch g 5 [age=2s]
//	consumer-member g a [instance=i] [topics=(t)] [regex=t.*] [timeout=60s] [classic=(range:t)] [session=10s]
//	consumer-target g a [parts=(t:0+1)]
//	consumer-current g a [epoch=5] [previous=4] [state=0] [parts=(t:0+1@3)] [pending=(t:2)]
//	consumer-regex g t.* [topics=(t,u)]; consumer-topics g
//	any of these with gone: its tombstone
//
// With pid=1 [epoch=0] a record is part of that producer's transaction.
func (s *scenario) replay(d *datadriven.TestData) {
	s.log = nil
	for line := range strings.Lines(d.Input) {
		kind, fields, err := datadriven.ParseLine(line)
		if err != nil || len(fields) == 0 {
			d.Fatalf(s.T, "%q: %v", line, err)
		}
		s.log = append(s.log, s.parseBatch(s.args(&datadriven.TestData{Cmd: kind, CmdArgs: fields})))
	}
	s.load()
}

// parseRecord reads a line of the replay command.
func (s *scenario) parseRecord(a args) machine.Record {
	id, topic, part, isOffset := a.Who(), "", int32(0), false
	if len(a.D.CmdArgs) > 1 {
		var p string
		if topic, p, isOffset = strings.Cut(a.D.CmdArgs[1].Key, ":"); isOffset {
			part = int32(harness.ParseInt(s.T, p))
		}
	}
	age := harness.ParseDuration(s.T, a.Text("age", "0s"))
	switch a.D.Cmd {
	case "tombstone":
		if isOffset {
			return &schema.OffsetRecord{Group: id, Topic: topic, Partition: part}
		}
		return &schema.GroupRecord{Group: id}
	case "offset":
		o := schema.Offset{Offset: int64(harness.ParseInt(s.T, a.D.CmdArgs[2].Key)), LeaderEpoch: -1, ExpireTimestamp: -1, CommitTimestamp: s.Now.Add(-age).UnixMilli()}
		if a.D.HasArg("expires") {
			o.ExpireTimestamp = s.Now.Add(harness.ParseDuration(s.T, a.Text("expires", ""))).UnixMilli()
		}
		if a.D.HasArg("id") {
			o.TopicID[15] = byte(a.Number("id", 0))
		}
		o.Start = machine.TxnStart(a.Number("start", 0))
		return &schema.OffsetRecord{Group: id, Topic: topic, Partition: part, Value: &o}
	case "group":
		v := schema.Group{Generation: int32(a.Number("generation", 0))}
		v.ProtocolType, v.Protocol, v.Leader = a.Text("type", "consumer"), a.pointer("protocol"), a.pointer("leader")
		v.CurrentStateTimestamp = s.Now.Add(-age).UnixMilli()
		v.Members = s.parseMembers(a)
		asOfVersion(&v, a.Number("version", 3))
		return &schema.GroupRecord{Group: id, Value: &v}
	case "rebalancing":
		return &schema.RebalanceRecord{Group: id, Value: &schema.Rebalance{Generation: int32(a.Number("generation", 0)), Loads: int16(a.Number("loads", 0)), Lives: int16(a.Number("lives", 0))}}
	case "departed":
		return &schema.DepartureRecord{Group: id, Member: a.D.CmdArgs[1].Key, Value: &schema.Departure{Generation: int32(a.Number("generation", 0))}}
	case "silent":
		return &schema.SilenceRecord{Group: id, Member: a.D.CmdArgs[1].Key, Value: &schema.Silence{Lasted: harness.ParseDuration(s.T, a.Text("for", ""))}}
	}
	return s.parseConsumerRecord(a)
}

// asOfVersion leaves out what an older version of the record has no place for.
func asOfVersion(v *schema.Group, version int) {
	if version < 2 {
		v.CurrentStateTimestamp = -1
	}
	for i := range v.Members {
		if version < 3 {
			v.Members[i].InstanceID = nil
		}
		if version < 1 {
			v.Members[i].RebalanceTimeoutMillis = -1
		}
	}
}

func (s *scenario) parseMembers(a args) (out []schema.GroupMember) {
	assigned := map[string][]byte{}
	for _, v := range a.List("assign") {
		id, parts, _ := strings.Cut(v, "=")
		assigned[id] = assignmentOf(parts)
	}
	for _, m := range a.List("members") {
		e := schema.GroupMember{}
		id, instance, static := strings.Cut(m, "/")
		e.MemberID, e.SessionTimeoutMillis, e.RebalanceTimeoutMillis = id, a.Millis("session", "10s"), a.Millis("rebalance", "60s")
		if static {
			e.InstanceID = &instance
		}
		e.ClientID, e.ClientHost = "loaded", "10.0.0.2"
		e.Subscription, e.Assignment = subscriptionOf("t"), assigned[id]
		out = append(out, e)
	}
	return out
}

func (s *scenario) showRecord(r machine.Record) string {
	switch r := r.(type) {
	case *schema.OffsetRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s %s:%d tombstone", groupName(r.Group), r.Topic, r.Partition)
		}
		out := fmt.Sprintf("%s %s:%d at %d", groupName(r.Group), r.Topic, r.Partition, r.Value.Offset)
		if r.Value.ExpireTimestamp != -1 {
			out += fmt.Sprintf(" expires after %s", time.UnixMilli(r.Value.ExpireTimestamp).Sub(s.Start))
		}
		if r.Value.TopicID != (metadata.TopicID{}) {
			out += fmt.Sprintf(" of topic id %d", r.Value.TopicID[15])
		}
		return out
	case *schema.RebalanceRecord:
		if r.Value == nil {
			return groupName(r.Group) + " rebalances no more"
		}
		return fmt.Sprintf("%s rebalances after generation %d, loaded %d times", groupName(r.Group), r.Value.Generation, r.Value.Loads)
	case *schema.DepartureRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s departure of %s tombstone", groupName(r.Group), s.show(r.Member))
		}
		return fmt.Sprintf("%s %s has left generation %d", groupName(r.Group), s.show(r.Member), r.Value.Generation)
	case *schema.SilenceRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s %s is silent no more", groupName(r.Group), s.show(r.Member))
		}
		return fmt.Sprintf("%s %s is silent for %s", groupName(r.Group), s.show(r.Member), r.Value.Lasted)
	case *schema.GroupRecord:
		return s.showGroupRecord(r)
	}
	if text, ok := showStreamsRecord(r); ok {
		return text
	}
	if r, ok := r.(schema.Record); ok && r.Kind() == schema.Share {
		return s.showShareRecord(r)
	}
	return s.showConsumerRecord(r)
}

func (s *scenario) showGroupRecord(r *schema.GroupRecord) string {
	switch {
	case r.Value == nil:
		return groupName(r.Group) + " tombstone"
	case len(r.Value.Members) == 0:
		return fmt.Sprintf("%s generation %d, empty", groupName(r.Group), r.Value.Generation)
	}
	out := fmt.Sprintf("%s generation %d, %s, leader %s", groupName(r.Group), r.Value.Generation, *r.Value.Protocol, s.show(*r.Value.Leader))
	if since := time.UnixMilli(r.Value.CurrentStateTimestamp); !since.Equal(s.Now) {
		out += fmt.Sprintf(", since %s", since.Sub(s.Start))
	}
	for _, m := range r.Value.Members {
		out += fmt.Sprintf(", %s%s %s", s.show(m.MemberID), instance(m.InstanceID), showAssignment(m.Assignment))
	}
	return out
}

// groupName makes the empty group id visible.
func groupName(id string) string {
	if id == "" {
		return strconv.Quote(id)
	}
	return id
}

func showAssignment(b []byte) string {
	var parts []string
	subscription.EachAssigned(b, func(tp subscription.TopicPartition) {
		parts = append(parts, fmt.Sprintf("%s:%d", tp.Topic, tp.Partition))
	})
	return "[" + strings.Join(parts, " ") + "]"
}
