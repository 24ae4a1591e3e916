package handler_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/redistest"
	"muster/internal/share/leader"
)

// spareTopic is one that everybody of the walk may write to.
const spareTopic = "spare"

// guardedWorld is a world with an authorizer.
type guardedWorld struct{ *world }

// root is a super user.
const root = auth.Principal("User:root")

func newGuardedWorld(t testing.TB) *guardedWorld {
	t.Helper()
	w := worldWith(t, map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": string(root),
	})
	w.fillWorld()
	away := func(context.Context, leader.Key, kmsg.Request) (kmsg.Response, error) {
		return nil, kerr.CoordinatorNotAvailable
	}
	w.serveShares(2000, away, func(string) (none leader.Settings) { return none })
	return &guardedWorld{w}
}

// as sends a request in someone's name and returns the answer.
func (w *guardedWorld) as(who auth.Principal, req kmsg.Request) kmsg.Response {
	w.t.Helper()
	return w.from(handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: who}, req)
}

func rule(who auth.Principal, permission auth.Permission, op auth.Operation, t auth.ResourceType, name string) auth.Rule {
	return auth.Rule{Type: t, Pattern: auth.Literal, Name: name, Principal: who, Host: auth.AnyHost, Operation: op, Permission: permission}
}

func (w *guardedWorld) allow(rules ...auth.Rule) {
	w.t.Helper()
	for _, err := range w.c.CreateRules(context.Background(), rules) {
		must(w.t, err)
	}
}

// revoke removes all rules that name someone.
func (w *guardedWorld) revoke(who auth.Principal) {
	w.t.Helper()
	name := string(who)
	f := auth.Filter{Type: auth.AnyResource, Pattern: auth.AnyPattern, Principal: &name, Operation: auth.AnyOperation, Permission: auth.AnyPermission}
	if deleted, errs := w.c.DeleteRules(context.Background(), []auth.Filter{f}); errs[0] != nil || len(deleted[0]) == 0 {
		w.t.Fatalf("deleted %v: %v", deleted, errs)
	}
}

// commit has a group with an offset.
func (w *guardedWorld) commit(n names) {
	w.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, n.group, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: n.topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
	assert.MustEqual(w.t, w.as(root, req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode, 0, "committed: error")
}

// joinNew has a consumer group with a member.
func (w *guardedWorld) joinNew(n names) {
	w.t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, n.group, "m", 1000
	req.SubscribedTopicNames, req.Topics = []string{n.topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if got := w.as(root, req).(*kmsg.ConsumerGroupHeartbeatResponse); got.ErrorCode != 0 {
		w.t.Fatalf("joined: %+v", got)
	}
}

// joinShare has a share group with a member.
func (w *guardedWorld) joinShare(n names) {
	w.t.Helper()
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.Version, req.GroupID, req.MemberID, req.SubscribedTopicNames = 1, n.group, "m", []string{n.topic}
	if got := w.as(root, req).(*kmsg.ShareGroupHeartbeatResponse); got.ErrorCode != 0 {
		w.t.Fatalf("joined: %+v", got)
	}
}

// joinStreams has a streams group with a member.
func (w *guardedWorld) joinStreams(n names) {
	w.t.Helper()
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group = n.group
	joinsStreams(req, kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{SourceTopics: []string{n.topic}})
	if got := w.as(root, req).(*kmsg.StreamsGroupHeartbeatResponse); got.ErrorCode != 0 {
		w.t.Fatalf("joined: %+v", got)
	}
}

// leaveShare has a share group without members.
func (w *guardedWorld) leaveShare(n names) {
	w.t.Helper()
	w.joinShare(n)
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.Version, req.GroupID, req.MemberID, req.MemberEpoch = 1, n.group, "m", -1
	if got := w.as(root, req).(*kmsg.ShareGroupHeartbeatResponse); got.ErrorCode != 0 {
		w.t.Fatalf("left: %+v", got)
	}
}

// begin has a transaction with a partition.
func (w *guardedWorld) begin(n names) {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &n.txn, 60_000
	p := w.as(root, req).(*kmsg.InitProducerIDResponse)
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch = 3, n.txn, p.ProducerID, p.ProducerEpoch
	add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: n.topic, Partitions: []int32{0}}}
	assert.MustEqual(w.t, w.as(root, add).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode, 0, "begun: error")
}

// walked is one request of the walk.
type walked struct {
	*probe
	version int16
	who     auth.Principal
	names   names
	given   []auth.Right
	lacks   int  // the line of needs of which it has nothing; hasAll and hasNone
	rest    bool // it has every other right there is
}

const (
	hasAll  = -1
	hasNone = -2
)

func (c *walked) String() string {
	s := fmt.Sprintf("%s v%d %s", kmsg.NameForKey(c.key), c.version, c.what)
	if c.lacks >= 0 {
		list, _ := auth.Needs(c.key)
		return fmt.Sprintf("%s with %v (all others %t), without %v", s, c.given, c.rest, list[c.lacks].AnyOf)
	}
	return fmt.Sprintf("%s with %v", s, c.given)
}

// walk lists the requests of all versions, each with all ways to have what it needs,
// with all of that but one, with all that there is but one, and with nothing.
func walk() (all []*walked) {
	ps := probes()
	for i := range ps {
		p := &ps[i]
		list, _ := auth.Needs(p.key)
		for _, e := range handler.Table() {
			for v := max(e.Min, e.ServedFrom, p.from); e.Key == p.key && v <= e.Max && (p.to == 0 || v <= p.to); v++ {
				add := func(lacks, line, alternative int) {
					c := &walked{probe: p, version: v, lacks: lacks}
					for _, need := range p.needs {
						if at := list[need].AnyOf; lacks != hasNone && need == line {
							c.given = append(c.given, at[alternative])
						} else if lacks != hasNone && need != lacks {
							c.given = append(c.given, at[0])
						}
					}
					all = append(all, c)
				}
				add(hasNone, hasNone, 0)
				add(hasAll, hasAll, 0)
				for _, need := range p.needs {
					add(need, hasNone, 0)
					add(need, hasNone, 0)
					all[len(all)-1].rest = true
					for alternative := 1; alternative < len(list[need].AnyOf); alternative++ {
						add(hasAll, need, alternative)
					}
				}
			}
		}
	}
	for i, c := range all {
		c.who = auth.User(fmt.Sprintf("user-%05d", i))
		c.names = names{topic: fmt.Sprintf("topic-%05d", i), group: fmt.Sprintf("group-%05d", i), txn: fmt.Sprintf("txnid-%05d", i)}
	}
	return all
}

// absent are names of the same length of things that are not there.
func (n names) absent() names {
	return names{topic: "notop" + n.topic[5:], group: "nogrp" + n.group[5:], txn: "notxn" + n.txn[5:]}
}

// rules are those that give a request exactly what it is to have. What it is to lack is
// denied if the rest would imply it.
func (c *walked) rules() (out []auth.Rule) {
	edit := auth.New(auth.Policy{}).Edit()
	for _, r := range c.given {
		out = append(out, rule(c.who, auth.Allow, r.Operation, r.Type, c.names.of(r.Type)))
		edit.Add(out[len(out)-1])
	}
	for t := auth.Topic; c.rest && t <= auth.TransactionalID; t++ {
		out = append(out, rule(c.who, auth.Allow, auth.All, t, c.names.of(t)))
		edit.Add(out[len(out)-1])
	}
	list, _ := auth.Needs(c.key)
	for line := range list {
		for _, r := range list[line].AnyOf {
			q := auth.Request{Principal: c.who, Host: "127.0.0.1", Operation: r.Operation, Type: r.Type, Name: c.names.of(r.Type)}
			if line == c.lacks && edit.Index().Allows(q) {
				out = append(out, rule(c.who, auth.Deny, r.Operation, r.Type, q.Name))
			}
		}
	}
	if c.spare != 0 {
		out = append(out, rule(c.who, auth.Allow, auth.Write, auth.Topic, spareTopic))
	}
	return out
}

// prepare makes all that the requests are about.
func (w *guardedWorld) prepare(all []*walked) {
	w.t.Helper()
	topics := []metadata.NewTopic{{Name: spareTopic, Partitions: 1, Replication: 1}}
	var rules []auth.Rule
	for _, c := range all {
		if !c.fresh {
			topics = append(topics, metadata.NewTopic{Name: c.names.topic, Partitions: 1, Replication: 1})
		}
		rules = append(rules, c.rules()...)
	}
	_, errs := w.c.CreateTopics(context.Background(), topics, false)
	for _, err := range errs {
		must(w.t, err)
	}
	w.allow(rules...)
	for _, c := range all {
		if t := w.c.Image().Topic(c.names.topic); t != nil {
			c.names.id = t.ID
		}
		if c.setup != nil {
			c.setup(w, c.names)
		}
	}
}

func TestEveryVersionOfEveryAPINeedsExactlyTheRightsOfTheTable(t *testing.T) {
	w := newGuardedWorld(t)
	all := walk()
	w.prepare(all)
	for _, c := range all {
		before := w.c.Image()
		resp := w.as(c.who, c.request(t, c.version, c.names))
		if problem := c.check(resp); problem != "" {
			t.Errorf("%v: %s\n%+v", c, problem, resp)
		}
		assert.False(t, c.lacks == hasNone && len(c.needs) > 0 && w.c.Image() != before, "%v changes the metadata", c)
		if c.later && c.lacks == hasAll { // The next one is not the one that has changed it.
			must(t, redistest.Poll(time.Minute, func() error {
				if w.c.Image().Topic(c.names.topic) == nil {
					return fmt.Errorf("%v has created no topic", c)
				}
				return nil
			}))
		}
	}
}

// check says what is wrong with an answer.
func (c *walked) check(resp kmsg.Response) string {
	list, _ := auth.Needs(c.key)
	denied := map[int16]bool{}
	codes(reflect.ValueOf(resp), denied)
	spare := denied[c.spare]
	maps.DeleteFunc(denied, func(code int16, _ bool) bool { return !slices.Contains([]int16{29, 30, 31, 53}, code) })
	want := map[int16]bool{}
	for _, line := range c.needs {
		lacking := c.lacks == line || c.lacks == hasNone
		if lacking && !c.leavesOut(line) && (len(want) == 0 || c.each()) { // The first of all that lack.
			want[list[line].Denied.Code] = true
		}
	}
	if !maps.Equal(denied, want) {
		return fmt.Sprintf("denied with %v, not %v", denied, want)
	}
	for _, line := range c.needs {
		lacking := c.lacks == line || c.lacks == hasNone || len(want) > 0
		if shown := c.shown(resp, list[line].AnyOf); c.leavesOut(line) && shown == lacking {
			return fmt.Sprintf("shown is %t", shown)
		}
	}
	if c.spare != 0 && len(c.needs) > 1 && c.lacks == c.needs[1] && !spare {
		return "the parts that were not denied are told nothing"
	}
	return ""
}

// leavesOut says whether the lack of a need leaves something out.
func (c *walked) leavesOut(line int) bool {
	list, _ := auth.Needs(c.key)
	return list[line].Denied == nil || slices.Contains(c.omits, line)
}

// each says whether the needs are those of several resources, each for itself.
func (c *walked) each() bool { return slices.Contains([]int16{32, 33, 44}, c.key) }

// shown says whether an answer has what a need without an error is about.
func (c *walked) shown(resp kmsg.Response, of []auth.Right) bool {
	if c.shows != nil {
		return c.shows(resp)
	}
	return bytes.Contains(resp.AppendTo(nil), []byte(c.names.of(of[len(of)-1].Type)))
}

// codes collects all error codes of an answer.
func codes(v reflect.Value, out map[int16]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			codes(v.Elem(), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			codes(v.Index(i), out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "ErrorCode" {
				out[int16(v.Field(i).Int())] = true
			} else if v.Type().Field(i).IsExported() {
				codes(v.Field(i), out)
			}
		}
	}
}

func TestTheWalkCoversEveryLineOfTheTable(t *testing.T) {
	type line struct{ key, version, need int16 }
	covered := map[line]bool{}
	for _, c := range walk() {
		covered[line{c.key, c.version, -1}] = true
		for _, need := range c.needs {
			covered[line{c.key, -1, int16(need)}] = true
		}
	}
	for _, e := range handler.Table() {
		for v := max(e.Min, e.ServedFrom); v <= e.Max; v++ {
			if !covered[line{e.Key, v, -1}] {
				t.Errorf("%s v%d is not walked", e.Name(), v)
			}
		}
		list, _ := auth.Needs(e.Key)
		for i, need := range list {
			if !covered[line{e.Key, -1, int16(i)}] {
				t.Errorf("%s: %v is not walked", e.Name(), need)
			}
		}
	}
}

func TestWhoHasNothingCannotTellWhatIsThere(t *testing.T) {
	w := newGuardedWorld(t)
	all := slices.DeleteFunc(walk(), func(c *walked) bool { return c.lacks != hasNone || len(c.needs) == 0 || c.fresh })
	w.prepare(all)
	for _, c := range all {
		there := w.as(c.who, c.request(t, c.version, c.names)).AppendTo(nil)
		if c.idsIn > 0 && c.version >= c.idsIn {
			assert.False(t, bytes.Contains(there, []byte(c.names.topic)), "%v tells the name of a topic that is known by its id", c)
			continue
		}
		absent := c.names.absent()
		not := w.as(c.who, c.request(t, c.version, absent)).AppendTo(nil)
		for _, of := range []auth.ResourceType{auth.Topic, auth.Group, auth.TransactionalID} {
			not = bytes.ReplaceAll(not, []byte(absent.of(of)), []byte(c.names.of(of)))
		}
		assert.True(t, bytes.Equal(there, not), "%v: what is there\n%q\nwhat is not\n%q", c, there, not)
	}
}
