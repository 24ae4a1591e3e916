package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// beat has a client that has joined send a heartbeat.
func (w *consumers) beat(t *rapid.T) {
	c := w.pickClient(t, func(c *client) bool { return c.joined })
	c.loses = rarely(t, "the answer is lost")
	w.sendBeat(t, c, rapid.Bool().Draw(t, "lets go"))
}

// allBeat has everybody send a heartbeat, and do what they are told.
func (w *consumers) allBeat(t *rapid.T) {
	w.pass(t, pick(t, "interval", 100*time.Millisecond, 2*time.Second))
	w.round(t)
}

func (w *consumers) pickClient(t *rapid.T, fits func(*client) bool) *client {
	list := slices.DeleteFunc(slices.Clone(w.clients), func(c *client) bool { return !fits(c) })
	if len(list) == 0 {
		t.Skip("no such client")
	}
	return pick(t, "client", list...)
}

// sendBeat sends a heartbeat of a client that has joined. If it obeys, it lets go of
// what it was not told to work on; if not, it does not, and may not say what it has.
func (w *consumers) sendBeat(t *rapid.T, c *client, obeys bool) {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.MemberEpoch = 1, "g", c.id, c.instance, c.epoch
	req.RebalanceTimeoutMillis = -1
	if obeys {
		for _, p := range slices.Collect(maps.Keys(c.has)) {
			if !slices.Contains(c.told, p) {
				delete(c.has, p)
			}
		}
	}
	if c.epoch == 0 { // It never heard that it has joined.
		clear(c.has)
		c.told = nil
	}
	if obeys || c.resends || c.epoch == 0 || rapid.Bool().Draw(t, "says what it has") {
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for p := range c.has {
			req.Topics = append(req.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: p.Topic, Partitions: []int32{p.Number}})
		}
	}
	if c.resends || c.epoch == 0 {
		c.resends = false
		c.wants(req)
	}
	w.sendAs(t, c, req)
}

// wants says all that a client wants.
func (c *client) wants(req *kmsg.ConsumerGroupHeartbeatRequest) {
	empty := ""
	req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.SubscribedTopicRegex = 30_000, c.topics, c.regex
	if req.SubscribedTopicRegex == nil {
		req.SubscribedTopicRegex = &empty
	}
	if req.SubscribedTopicNames == nil {
		req.SubscribedTopicNames = []string{}
	}
}

func (w *consumers) sendAs(t *rapid.T, c *client, req *kmsg.ConsumerGroupHeartbeatRequest) {
	c.flight = w.request(t, req)
	w.send(t, c.flight)
	c.loses = c.loses && c.flight != 0
}

// join has a client join, or join again: it has nothing then.
func (w *consumers) join(t *rapid.T) {
	c := w.pickClient(t, func(*client) bool { return true })
	c.forget()
	c.joined = true
	w.choose(t, c)
	c.loses = rarely(t, "the answer is lost")
	w.sendBeat(t, c, true)
}

// choose has a client want something, or something else.
func (w *consumers) choose(t *rapid.T, c *client) {
	c.topics = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"t", "u", "v"}), 0, 3, rapid.ID[string]).Draw(t, "topics")
	one, two, three := "t.*", "u|v", "x"
	c.regex = pick(t, "regex", nil, nil, nil, nil, &one, &two, &three)
}

// subscribe has a client want something else.
func (w *consumers) subscribe(t *rapid.T) {
	c := w.pickClient(t, func(c *client) bool { return c.joined && c.epoch > 0 })
	w.choose(t, c)
	c.resends = true
	w.sendBeat(t, c, rapid.Bool().Draw(t, "lets go"))
}

func (w *consumers) leave(t *rapid.T) {
	c := w.pickClient(t, func(c *client) bool { return c.joined })
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.MemberEpoch = 1, "g", c.id, c.instance, modern.EpochLeave
	if c.instance != nil && !rarely(t, "for good") {
		req.MemberEpoch = modern.EpochLeaveStatic
	}
	c.forget()
	c.flight = 0
	w.send(t, w.request(t, req))
}

// stranger sends what no client would: it must be refused, and change nothing.
func (w *consumers) stranger(t *rapid.T) {
	c := w.pickClient(t, func(c *client) bool { return c.joined && c.epoch > 0 })
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.RebalanceTimeoutMillis = 1, "g", c.id, c.instance, -1
	switch pick(t, "kind", "future", "older", "foreign", "null", "ghost") {
	case "future":
		req.MemberEpoch = 1000
	case "older":
		if req.MemberEpoch = w.known(c) - 1; req.MemberEpoch < 1 || req.MemberEpoch == w.previous(c) {
			t.Skip("that is none")
		}
	case "foreign": // The previous epoch, and a partition of somebody else's.
		req.MemberEpoch = w.previous(c)
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: [16]byte{15: 200}, Partitions: []int32{0}}}
	case "null":
		req.MemberEpoch = w.previous(c)
	case "ghost":
		req.MemberEpoch, req.MemberID = 1, "ghost"
	}
	if req.MemberEpoch < 1 || req.MemberEpoch == w.known(c) {
		t.Skip("not a stranger's")
	}
	before := w.shard.Digest()
	id := w.request(t, req)
	in := machine.Input{Now: w.now, Image: w.image, Event: machine.Request{ID: id, Msg: w.asked[id]}}
	fx := w.shard.Step(in)
	w.twin.Step(in)
	if len(fx.Replies) != 1 || fx.Replies[0].Msg.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode == 0 || len(fx.Batches)+len(fx.Timers)+len(fx.Tasks) > 0 || w.shard.Digest() != before {
		t.Fatalf("%+v has effects %+v", req, fx)
	}
	delete(w.asked, id)
}

// known and previous are the epochs of a client's member, -1 if it is none.
func (w *consumers) known(c *client) int32 {
	if m := w.member(c); m != nil {
		return m.Now().Epoch
	}
	return -1
}

func (w *consumers) previous(c *client) int32 {
	if m := w.member(c); m != nil {
		return m.Now().Previous
	}
	return -1
}

func (w *consumers) member(c *client) *consumer.Member {
	if g := w.shard.consumer("g"); g != nil {
		return g.Member(c.id)
	}
	return nil
}

// commit has a client commit, as of any epoch. Nothing is stored of a partition that
// the member was given later than that.
func (w *consumers) commit(t *rapid.T) {
	c := w.pickClient(t, func(c *client) bool { return c.joined })
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID = 9, "g", c.id
	req.Generation = c.epoch
	if rapid.Bool().Draw(t, "of another epoch") {
		req.Generation = c.epoch + rapid.Int32Range(-3, 1).Draw(t, "epoch")
	}
	for topic, n := range map[string]int32{"t": rapid.Int32Range(0, 3).Draw(t, "of t"), "u": rapid.Int32Range(0, 3).Draw(t, "of u")} {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition = n
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
	}
	if rapid.Bool().Draw(t, "of one topic") {
		req.Topics = slices.DeleteFunc(req.Topics, func(o kmsg.OffsetCommitRequestTopic) bool { return o.Topic != "t" })
	}
	slices.SortFunc(req.Topics, func(a, b kmsg.OffsetCommitRequestTopic) int { return int(a.Topic[0]) - int(b.Topic[0]) })
	m := w.member(c)
	var now consumer.Current
	if m != nil {
		now = m.Now()
	}
	empty := w.shard.Groups["g"] == nil || w.shard.Groups["g"].IsEmpty()
	fx := w.step(t, machine.Request{ID: w.request(t, req), ClientID: "c", Host: "h", Msg: req})
	for _, b := range fx.Batches {
		for _, r := range b.Records {
			o, ok := r.(*schema.OffsetRecord)
			if !ok || o.Value == nil {
				continue
			}
			p := consumer.Partition{Topic: w.image.Topic(o.Topic).ID, Number: o.Partition}
			switch since, given := modern.SinceOf(append(slices.Clone(now.Assigned), now.Pending...), p); {
			case empty && req.Generation < 0:
			case m == nil || req.Generation > now.Epoch:
				t.Fatalf("%s:%d was committed by nobody", o.Topic, o.Partition)
			case req.Generation == now.Epoch:
			case !slices.ContainsFunc(append(slices.Clone(now.Assigned), now.Pending...), func(h consumer.Held) bool { return h.Part == p && h.Since <= req.Generation }):
				t.Fatalf("%s:%d, which it has since %d (%t), was committed in epoch %d", o.Topic, o.Partition, since, given, req.Generation)
			}
		}
	}
}

func (w *consumers) task(t *rapid.T) {
	if len(w.tasks) == 0 {
		t.Skip("none")
	}
	w.runTask(t, rapid.IntRange(0, len(w.tasks)-1).Draw(t, "task"))
}

func (w *consumers) runTask(t *rapid.T, i int) {
	task := w.tasks[i]
	w.tasks = slices.Delete(w.tasks, i, i+1)
	w.step(t, machine.TaskDone{ID: task.ID, Result: task.Run()})
}

func (w *consumers) wait(t *rapid.T) {
	w.pass(t, pick(t, "time", 100*time.Millisecond, 500*time.Millisecond, 2*time.Second, 11*time.Second))
	if rarely(t, "long") {
		w.pass(t, pick(t, "long time", 31*time.Second, time.Minute, 11*time.Minute))
	}
}

// changeTopics has a topic grow, vanish, or come (back) under another id.
func (w *consumers) changeTopics(t *rapid.T) {
	topic := pick(t, "topic", "t", "u", "v")
	switch {
	case w.topics[topic] == 0:
		w.ids16++
		w.topics[topic], w.counts[topic] = w.ids16, rapid.IntRange(1, 3).Draw(t, "partitions")
	case rapid.Bool().Draw(t, "grows"):
		w.counts[topic]++
	default:
		delete(w.topics, topic)
		delete(w.counts, topic)
		if rapid.Bool().Draw(t, "comes back") {
			w.ids16++
			w.topics[topic], w.counts[topic] = w.ids16, 2
		}
	}
	w.image = withPartitions(imageOf(w.topics), w.counts)
	w.step(t, machine.TopicsChanged{Topics: []string{topic}, Gone: []string{topic}})
}

func (w *consumers) configure(t *rapid.T) {
	w.cfg.Consumer.MaxSize = pick(t, "max size", 1<<31-1, 1<<31-1, 2)
	w.cfg.Consumer.Interval = pick(t, "interval", time.Second, 0)
	w.step(t, Configured{Config: w.cfg})
}

func (w *consumers) crash(t *rapid.T) { w.crashAnd(t, w.load) }

// tear has the next append fail after some records.
func (w *consumers) tear(t *rapid.T) {
	if w.tear1 = rapid.IntRange(0, 8).Draw(t, "after"); w.tear1 == 8 {
		w.tear1 = -1
	}
}

func (w *consumers) deleteGroup(t *rapid.T) {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, []string{"g"}
	w.send(t, w.request(t, req))
}

func (w *consumers) staleTimer(t *rapid.T) {
	old := slices.DeleteFunc(slices.Clone(w.stale), func(tm machine.Timer) bool { return tm.Key.Kind == kind.TimerSweep })
	if len(old) == 0 {
		t.Skip("no stale timer")
	}
	revoke := slices.DeleteFunc(slices.Clone(old), func(tm machine.Timer) bool { return tm.Key.Kind != kind.TimerRevoke })
	if len(revoke) > 0 && rapid.Bool().Draw(t, "to let go") {
		old = revoke
	}
	tm := pick(t, "timer", old...)
	if fx := w.step(t, machine.TimerFired{Key: tm.Key, Seq: tm.Seq}); len(fx.Batches)+len(fx.Replies)+len(fx.Timers)+len(fx.Notes) > 0 {
		t.Fatalf("a stale timer %v has effects: %+v", tm, fx)
	}
}

func (w *consumers) pass(t *rapid.T, d time.Duration) { w.passBy(t, d, w.step) }
