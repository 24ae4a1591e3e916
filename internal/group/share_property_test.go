package group

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/share"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// TestAnySequenceOfShareMembersKeepsTheInvariants has members of a share group do anything, in
// any order, while administrators reset and delete, the share coordinator refuses or does not
// answer, or loses what it has stored, topics come and go, steps are stored in part and brokers crash. After each step the
// invariants hold, the log says what the shard knows, epochs have not gone back, and no member
// is given a partition that the share coordinator does not know. In the end everybody soon has
// what they are to have.
func TestAnySequenceOfShareMembersKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &sharers{cfg: kind.DefaultConfig(), now: time.Unix(1_700_000_000, 0), counts: map[string]int{"t": 2, "u": 1}, ids: map[string]byte{"t": 1, "u": 2}, tear: -1, known: map[modern.Partition]int32{}, lost: map[modern.Partition]bool{}, epochs: map[string]int32{}}
		w.cfg.Share.AtOnce, w.cfg.Share.MaxSize = pick(t, "at once", 0, 1), 4
		w.changeImage()
		w.load(t)
		t.Repeat(map[string]func(*rapid.T){
			"beat": w.beat, "beat again": w.beat, "and again": w.beat, "answer": w.answer, "answer again": w.answer, "task": w.task, "wait": w.wait,
			"topics": w.changeTopics, "delete": w.deleteGroup, "alter": w.alter, "forget": w.forgetTopic, "offsets": w.offsets, "crash": w.load, "lose": w.lose, "torn": func(t *rapid.T) { w.tear = rapid.IntRange(0, 4).Draw(t, "stored") },
		})
		w.calm(t)
	})
}

type sharers struct {
	cfg    kind.Config
	now    time.Time
	counts map[string]int
	ids    map[string]byte
	made   byte // topics
	image  *metadata.Image
	shard  *Shard
	log    []machine.Batch
	sends  []machine.Send
	tasks  []machine.Task
	timers map[machine.TimerKey]machine.Timer
	asked  map[machine.RequestID]kmsg.Request
	who    map[machine.RequestID]string
	next   machine.RequestID
	tear   int                        // after how many records the next append fails, -1 if it does not
	known  map[modern.Partition]int32 // what the share coordinator has, with its state epoch
	lost   map[modern.Partition]bool  // what it had
	epochs map[string]int32           // what members were told last
	group  *share.Group
	epoch  int32 // of the group before
	loads  int32
	steps  int
}

func (w *sharers) changeImage() { w.image = withPartitions(imageOf(w.ids), w.counts) }

func (w *sharers) load(t *rapid.T) {
	w.shard = replayed(w.log, w.cfg)
	w.sends, w.tasks, w.timers, w.asked, w.who = nil, nil, map[machine.TimerKey]machine.Timer{}, map[machine.RequestID]kmsg.Request{}, map[machine.RequestID]string{}
	w.loads++
	w.step(t, machine.Loaded{Epoch: w.loads})
}

func (w *sharers) step(t *rapid.T, e machine.Event) {
	fx := w.shard.Step(machine.Input{Now: w.now, Image: w.image, Event: e})
	if n := w.tear; n >= 0 && len(fx.Batches) > 0 {
		w.tear = -1
		for _, b := range cloneBatches(fx.Batches) {
			b.Records = b.Records[:min(n, len(b.Records))]
			if n -= len(b.Records); len(b.Records) > 0 {
				w.log = append(w.log, b)
			}
		}
		w.load(t)
		return
	}
	w.log = append(w.log, cloneBatches(fx.Batches)...)
	w.sends, w.tasks = append(w.sends, fx.Sends...), append(w.tasks, fx.Tasks...)
	harness.Arm(w.timers, fx.Timers)
	for _, r := range fx.Replies {
		if w.asked[r.ID] == nil {
			t.Fatalf("an answer to nothing: %+v", r.Msg)
		}
		delete(w.asked, r.ID)
		if resp, ok := r.Msg.(*kmsg.ShareGroupHeartbeatResponse); ok {
			w.told(t, w.who[r.ID], resp)
		}
	}
	if err := w.shard.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	w.steps++
	if replayed(w.log, w.cfg).Digest() != w.shard.Digest() || w.steps%8 == 0 && replayed(compacted(w.log, len(w.log), true), w.cfg).Digest() != w.shard.Digest() {
		t.Fatal("the log does not say what the shard knows")
	}
	g, _ := w.shard.Groups["g"].(*share.Group)
	if g != nil && g == w.group && g.Epoch < w.epoch {
		t.Fatalf("the epoch went back from %d to %d", w.epoch, g.Epoch)
	}
	if w.group = g; g != nil {
		w.epoch = g.Epoch
	}
}

// told checks what a member is told.
func (w *sharers) told(t *rapid.T, who string, resp *kmsg.ShareGroupHeartbeatResponse) {
	switch resp.ErrorCode {
	case 0:
		if resp.MemberEpoch > 0 && resp.MemberEpoch < w.epochs[who] {
			t.Fatalf("%s was in epoch %d and is told %d", who, w.epochs[who], resp.MemberEpoch)
		}
		w.epochs[who] = max(resp.MemberEpoch, 0)
	case kerr.UnknownMemberID.Code, kerr.FencedMemberEpoch.Code, kerr.GroupIDNotFound.Code, kerr.GroupMaxSizeReached.Code:
		w.epochs[who] = 0
	}
	if resp.Assignment == nil {
		return
	}
	for _, a := range resp.Assignment.TopicPartitions {
		for _, n := range a.Partitions {
			p := modern.Partition{Topic: a.TopicID, Number: n}
			if _, ok := w.known[p]; !ok && !w.lost[p] && w.image.TopicByID(a.TopicID) != nil {
				t.Fatalf("%s is given partition %d of %x, which the share coordinator does not know", who, n, a.TopicID)
			}
		}
	}
}

func (w *sharers) request(t *rapid.T, who string, msg kmsg.Request) {
	w.next++
	w.asked[w.next], w.who[w.next] = msg, who
	w.step(t, machine.Request{ID: w.next, ClientID: who, Host: "host", Msg: msg})
}

func (w *sharers) beat(t *rapid.T) {
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.Version, req.GroupID, req.MemberID = 1, "g", pick(t, "who", "a", "b", "c", "d", "e")
	req.MemberEpoch = w.epochs[req.MemberID]
	if rarely(t, "another epoch") {
		req.MemberEpoch = rapid.Int32Range(-1, 5).Draw(t, "epoch")
	}
	if req.MemberEpoch == 0 || rarely(t, "other topics") {
		req.SubscribedTopicNames = pick(t, "topics", []string{"t"}, []string{"t", "u"}, []string{"u"}, []string{"v"})
	}
	w.request(t, req.MemberID, req)
}

func (w *sharers) wait(t *rapid.T) {
	end := w.now.Add(pick(t, "for", time.Second, 5*time.Second, 31*time.Second))
	for {
		var due *machine.Timer
		for _, key := range slices.SortedFunc(maps.Keys(w.timers), func(a, b machine.TimerKey) int { return w.timers[a].At.Compare(w.timers[b].At) }) {
			if timer := w.timers[key]; !timer.At.After(end) {
				due = &timer
			}
			break
		}
		if due == nil {
			break
		}
		delete(w.timers, due.Key)
		if due.At.After(w.now) {
			w.now = due.At
		}
		w.step(t, machine.TimerFired{Key: due.Key, Seq: due.Seq})
	}
	w.now = end
}

func (w *sharers) task(t *rapid.T) {
	if len(w.tasks) > 0 {
		done := w.tasks[0]
		w.tasks = w.tasks[1:]
		w.step(t, machine.TaskDone{ID: done.ID, Result: done.Run()})
	}
}

func (w *sharers) changeTopics(t *rapid.T) {
	switch name := pick(t, "topic", "t", "u"); pick(t, "change", "grow", "recreate", "delete") {
	case "grow":
		if w.counts[name] > 0 {
			w.counts[name]++
		}
	case "recreate":
		w.made = w.made%100 + 1
		w.ids[name], w.counts[name] = 100+w.made, 1
	case "delete":
		if len(w.ids) > 1 {
			delete(w.ids, name)
			delete(w.counts, name)
		}
	}
	w.changeImage()
	for p := range w.known {
		if w.image.TopicByID(p.Topic) == nil {
			delete(w.known, p)
		}
	}
}

// lose has the share coordinator lose something, which it is to be told again.
func (w *sharers) lose(t *rapid.T) {
	p := modern.Partition{Topic: [16]byte{15: pick(t, "id", byte(1), 2)}, Number: rapid.Int32Range(0, 1).Draw(t, "partition")}
	if _, ok := w.known[p]; ok {
		delete(w.known, p)
		w.lost[p] = true
	}
}

// answer has the share coordinator do what it was asked, or not, and tell so, or not.
func (w *sharers) answer(t *rapid.T) {
	if len(w.sends) > 0 {
		m := w.sends[0]
		w.sends = w.sends[1:]
		w.carryOut(t, m, pick(t, "outcome", "done", "done", "done", "refused", "lost", "done and lost"))
	}
}

func (w *sharers) carryOut(t *rapid.T, m machine.Send, outcome string) {
	code := func(p modern.Partition, do func() int16) int16 {
		if outcome == "lost" || outcome == "refused" && p.Number%2 == 0 {
			return kerr.CoordinatorNotAvailable.Code
		}
		return do()
	}
	var resp kmsg.Response
	switch q := m.Msg.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		r := kmsg.NewPtrInitializeShareGroupStateResponse()
		for _, topic := range q.Topics {
			out := kmsg.InitializeShareGroupStateResponseTopic{TopicID: topic.TopicID}
			for _, p := range topic.Partitions {
				at := modern.Partition{Topic: topic.TopicID, Number: p.Partition}
				out.Partitions = append(out.Partitions, kmsg.InitializeShareGroupStateResponseTopicPartition{Partition: p.Partition, ErrorCode: code(at, func() int16 {
					switch epoch, ok := w.known[at]; {
					case w.image.TopicByID(at.Topic) == nil:
						return kerr.UnknownTopicOrPartition.Code
					case ok && epoch > p.StateEpoch:
						return kerr.FencedStateEpoch.Code
					}
					w.known[at] = p.StateEpoch
					return 0
				})})
			}
			r.Topics = append(r.Topics, out)
		}
		resp = r
	case *kmsg.DeleteShareGroupStateRequest:
		r := kmsg.NewPtrDeleteShareGroupStateResponse()
		for _, topic := range q.Topics {
			out := kmsg.DeleteShareGroupStateResponseTopic{TopicID: topic.TopicID}
			for _, p := range topic.Partitions {
				at := modern.Partition{Topic: topic.TopicID, Number: p.Partition}
				out.Partitions = append(out.Partitions, kmsg.DeleteShareGroupStateResponseTopicPartition{Partition: p.Partition, ErrorCode: code(at, func() int16 {
					delete(w.known, at)
					return 0
				})})
			}
			r.Topics = append(r.Topics, out)
		}
		resp = r
	default:
		resp = m.Msg.ResponseKind()
	}
	if outcome == "lost" || outcome == "done and lost" {
		w.step(t, machine.Sent{ID: m.ID, Err: kerr.RequestTimedOut})
		return
	}
	w.step(t, machine.Sent{ID: m.ID, Msg: resp})
}

func (w *sharers) deleteGroup(t *rapid.T) {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, []string{"g"}
	w.request(t, "x", req)
}

func (w *sharers) alter(t *rapid.T) {
	req := kmsg.NewPtrAlterShareGroupOffsetsRequest()
	topic := kmsg.NewAlterShareGroupOffsetsRequestTopic()
	topic.Topic = pick(t, "topic", "t", "u", "v")
	p := kmsg.NewAlterShareGroupOffsetsRequestTopicPartition()
	p.Partition, p.StartOffset = rapid.Int32Range(-1, 2).Draw(t, "partition"), 5
	topic.Partitions = append(topic.Partitions, p)
	req.GroupID, req.Topics = "g", append(req.Topics, topic)
	w.request(t, "x", req)
}

func (w *sharers) forgetTopic(t *rapid.T) {
	req := kmsg.NewPtrDeleteShareGroupOffsetsRequest()
	req.GroupID, req.Topics = "g", []kmsg.DeleteShareGroupOffsetsRequestTopic{{Topic: pick(t, "topic", "t", "u", "v")}}
	w.request(t, "x", req)
}

func (w *sharers) offsets(t *rapid.T) {
	req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	req.Version, req.Groups = 1, []kmsg.DescribeShareGroupOffsetsRequestGroup{{GroupID: "g"}}
	w.request(t, "x", req)
}

// calm has members send heartbeats and the share coordinator answer until nothing changes: then
// all partitions of what is subscribed to are read, and every request was answered.
func (w *sharers) calm(t *rapid.T) {
	w.tear = -1
	for range 40 { // Longer than until all is confirmed.
		for len(w.sends) > 0 {
			m := w.sends[0]
			w.sends = w.sends[1:]
			w.carryOut(t, m, "done")
		}
		for len(w.tasks) > 0 {
			w.task(t)
		}
		w.now = w.now.Add(10 * time.Second)
		for _, who := range []string{"a", "b"} {
			req := kmsg.NewPtrShareGroupHeartbeatRequest()
			req.Version, req.GroupID, req.MemberID, req.MemberEpoch, req.SubscribedTopicNames = 1, "g", who, w.epochs[who], []string{"t", "u"}
			w.request(t, who, req)
		}
	}
	if len(w.sends) > 0 || len(w.tasks) > 0 || len(w.asked) > 0 {
		t.Fatalf("%d questions, %d tasks and %d requests are left", len(w.sends), len(w.tasks), len(w.asked))
	}
	g, _ := w.shard.Groups["g"].(*share.Group)
	if g == nil {
		t.Fatal("there is no group")
	}
	read := map[modern.Partition]bool{}
	for _, who := range []string{"a", "b"} {
		mem := g.Member(who)
		if mem == nil {
			continue // There are others, as many as may be.
		}
		if mem.Now().Epoch != g.Epoch {
			t.Fatalf("%s is in epoch %d, the group in %d", who, mem.Now().Epoch, g.Epoch)
		}
	}
	for _, mem := range g.Members {
		for _, p := range mem.Target {
			read[p] = true
		}
	}
	for name := range w.ids {
		for n := range w.counts[name] {
			if p := (modern.Partition{Topic: w.image.Topic(name).ID, Number: int32(n)}); !read[p] && (g.Member("a") != nil || g.Member("b") != nil) {
				t.Fatalf("no one reads partition %d of %s", n, name)
			} else if _, ok := w.known[p]; !ok && read[p] {
				t.Fatalf("partition %d of %s is lost", n, name)
			}
		}
	}
}
