package handler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/quota"
	"muster/internal/record"
)

// limited is a world with quotas, and a clock that a test moves.
type limited struct {
	*world
	now  time.Time
	last *fakeConn // of the last request; nothing waits on it
}

func newLimited(t *testing.T) *limited {
	w := &limited{world: newWorld(t), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.opts.Now = func() time.Time { return w.now }
	w.h = handler.New(w.opts)
	return w
}

// whose names an entity by user and client id: "-" for none, "*" for the default.
func whose(user, client string) metadata.QuotaEntity {
	part := func(name string) metadata.QuotaName {
		switch name {
		case "-":
			return metadata.QuotaName{}
		case "*":
			return metadata.Default()
		}
		return metadata.Some(name)
	}
	return metadata.QuotaEntity{User: part(user), ClientID: part(client)}
}

func (w *limited) set(user, client, key string, rate float64) {
	w.t.Helper()
	change := metadata.QuotaChange{Entity: whose(user, client), Set: map[string]float64{key: rate}}
	must(w.t, w.c.AlterQuotas(w.t.Context(), []metadata.QuotaChange{change}, false)[0])
}

// ask sends a request of a user's client, and returns the answer, nil if there is none,
// how large the frame was, and for how long the connection is not read.
func (w *limited) ask(user, client string, req kmsg.Request) (resp kmsg.Response, size int, muted time.Duration) {
	w.t.Helper()
	return w.askFrom(handler.Origin{Listener: "L", Principal: auth.User(user)}, client, req)
}

func (w *limited) askFrom(origin handler.Origin, client string, req kmsg.Request) (resp kmsg.Response, size int, muted time.Duration) {
	w.t.Helper()
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(client)).AppendRequest(nil, req, 7)[4:]
	conn := newFakeConn()
	conn.full = true
	origin.Conn, w.last = conn, conn
	out, err := w.h.Serve(w.t.Context(), origin, frame)
	must(w.t, err)
	if out != nil {
		resp = w.decode(req, out)
	}
	return resp, len(frame), conn.muted
}

// produce returns for how long a producer has to wait, and what for.
func (w *limited) produce(user, client string) (wait time.Duration, size int) {
	w.t.Helper()
	resp, size, muted := w.ask(user, client, w.produceRequest(9, 0))
	if p := resp.(*kmsg.ProduceResponse); time.Duration(p.ThrottleMillis)*time.Millisecond != muted || p.Topics[0].Partitions[0].ErrorCode != 0 {
		w.t.Errorf("told %d ms, mute for %s: %+v", p.ThrottleMillis, muted, p.Topics)
	}
	return muted, size
}

// spend has a producer with 1000 bytes a second use up what a new one has, without a wait
// for as long as it lasts, and returns what is owed then.
func (w *limited) spend(user, client string) (owed int) {
	w.t.Helper()
	for left := 1000; left >= 0; {
		wait, size := w.produce(user, client)
		if left -= size; wait != time.Duration(max(-left, 0))*time.Millisecond {
			w.t.Errorf("with %d bytes left it waits %s", left, wait)
		}
		owed = -left
	}
	return owed
}

func TestWhatIsProducedCountsAgainstTheQuota(t *testing.T) {
	w := newLimited(t)
	if wait, _ := w.produce("alice", "app"); wait != 0 {
		t.Errorf("without quotas a producer waits %s", wait)
	}
	w.set("alice", "-", metadata.ProducerByteRate, 1000)
	owed := w.spend("alice", "app")
	for v := int16(3); v <= 13; v++ {
		resp, size, muted := w.ask("alice", "app", w.produceRequest(v, 0, 1))
		owed += size
		p := resp.(*kmsg.ProduceResponse)
		if int(p.ThrottleMillis) != owed || muted != time.Duration(owed)*time.Millisecond {
			t.Errorf("v%d: %d bytes are owed; told to wait %d ms, mute for %s", v, owed, p.ThrottleMillis, muted)
		}
	}
	silent := w.produceRequest(9, 0)
	silent.Acks = 0
	_, size, muted := w.ask("alice", "app", silent)
	if owed += size; muted != time.Duration(owed)*time.Millisecond {
		t.Errorf("with acks=0 it is mute for %s", muted)
	}
	if wait, _ := w.produce("bob", "app"); wait != 0 {
		t.Errorf("bob waits %s", wait)
	}
	w.now = w.now.Add(time.Duration(owed) * time.Millisecond)
	if wait, size := w.produce("alice", "app"); wait != time.Duration(size)*time.Millisecond {
		t.Errorf("after all was paid, %d bytes wait %s", size, wait)
	}
	w.now = w.now.Add(time.Minute)
	if wait, _ := w.produce("alice", "app"); wait != 0 {
		t.Errorf("after a minute without any it waits %s", wait)
	}
}

func TestTheQuotaThatDecidesSaysWhoSharesIt(t *testing.T) {
	for _, c := range []struct {
		user, client string // of the quota
		shared       [3]bool
	}{
		// alice's app has produced. Who waits for it: her other client, bob's app, carol's third?
		{"alice", "app", [3]bool{false, false, false}},
		{"alice", "*", [3]bool{false, false, false}},
		{"alice", "-", [3]bool{true, false, false}},
		{"*", "app", [3]bool{false, false, false}},
		{"*", "*", [3]bool{false, false, false}},
		{"*", "-", [3]bool{true, false, false}},
		{"-", "app", [3]bool{false, true, false}},
		{"-", "*", [3]bool{false, true, false}},
	} {
		w := newLimited(t)
		w.set(c.user, c.client, metadata.ProducerByteRate, 1000)
		w.spend("alice", "app")
		for i, who := range [3][2]string{{"alice", "other"}, {"bob", "app"}, {"carol", "third"}} {
			if wait, _ := w.produce(who[0], who[1]); c.shared[i] != (wait > 0) {
				t.Errorf("%s/%s: %s's %s waits %s", c.user, c.client, who[0], who[1], wait)
			}
		}
	}
}

func TestMadeUpClientIDsDoNotDriveOutUsers(t *testing.T) {
	w := newLimited(t)
	w.h.SetBuckets(10)
	w.set("alice", "-", metadata.ProducerByteRate, 1000)
	w.set("-", "app", metadata.ProducerByteRate, 1000)
	w.set("-", "*", metadata.ProducerByteRate, 1000)
	w.spend("alice", "x")
	w.spend("bob", "app")
	for i := range 100 {
		w.produce("bob", fmt.Sprint(i))
	}
	for _, who := range [][2]string{{"alice", "x"}, {"bob", "app"}} {
		if wait, _ := w.produce(who[0], who[1]); wait == 0 {
			t.Errorf("what %s's %s owed is forgotten", who[0], who[1])
		}
	}
}

// limitedFetch asks for the records of a partition, without a session unless there is one.
func limitedFetch(session, epoch int32) *kmsg.FetchRequest {
	req := waitingFetch(0)
	req.SessionID, req.SessionEpoch, req.MinBytes = session, epoch, 1<<30
	req.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
	return req
}

// records returns how many bytes of records an answer to Fetch has.
func records(resp *kmsg.FetchResponse) (n int) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			n += len(p.RecordBatches)
		}
	}
	return n
}

func TestAFetchOverTheQuotaIsEmptyAndWaits(t *testing.T) {
	w := newLimited(t)
	w.store.held = new(atomic.Int32)
	for range 20 {
		w.request(w.produceRequest(9, 0))
	}
	one := len(batch(t, 3))
	w.set("*", "-", metadata.ConsumerByteRate, float64(10*one))
	fetch := func(req *kmsg.FetchRequest) (*kmsg.FetchResponse, time.Duration) {
		resp, _, muted := w.ask("alice", "app", req)
		f := resp.(*kmsg.FetchResponse)
		if time.Duration(f.ThrottleMillis)*time.Millisecond != muted || f.ErrorCode != 0 {
			t.Errorf("told %d ms, mute for %s, error %d", f.ThrottleMillis, muted, f.ErrorCode)
		}
		return f, muted
	}
	// There are batches for two seconds, of which it may have one second's, also at first.
	resp, wait := fetch(limitedFetch(0, -1))
	if records(resp) != 10*one || wait != 0 {
		t.Fatalf("a new client gets %d bytes, waits %s", records(resp), wait)
	}
	if resp, wait = fetch(limitedFetch(0, -1)); records(resp) != 0 || wait == 0 {
		t.Fatalf("then it gets %d bytes, waits %s", records(resp), wait)
	}
	w.now = w.now.Add(wait)
	resp, wait = fetch(limitedFetch(0, 0))
	if records(resp) != 0 || len(resp.Topics) != 0 || resp.SessionID != 0 || wait != time.Second || w.h.Sessions() != 0 {
		t.Fatalf("a first fetch over the quota: %d bytes, session %d of %d, waits %s", records(resp), resp.SessionID, w.h.Sessions(), wait)
	}
	w.now = w.now.Add(wait)
	patient := limitedFetch(0, 0)
	patient.MaxWaitMillis = 60_000 // For more than it may have.
	resp, wait = fetch(patient)
	assert.Equal(t, len(w.last.parked), 0, "a fetch waits for more than it may have")
	if records(resp) != 10*one || wait != 0 || resp.SessionID == 0 {
		t.Fatalf("after the wait: %d bytes, session %d, waits %s", records(resp), resp.SessionID, wait)
	}
	// What the answer has besides records counts too, so something is owed.
	session := resp.SessionID
	resp, wait = fetch(limitedFetch(session, 1))
	if len(resp.Topics) != 0 || resp.SessionID != session || wait == 0 || wait > time.Second/2 {
		t.Fatalf("the next fetch of the session: %d topics, session %d, waits %s", len(resp.Topics), resp.SessionID, wait)
	}
	if other, _, muted := w.ask("bob", "app", limitedFetch(0, -1)); muted != 0 || records(other.(*kmsg.FetchResponse)) != 10*one {
		t.Errorf("bob starts with %d bytes, waits %s", records(other.(*kmsg.FetchResponse)), muted)
	}
	w.now = w.now.Add(2 * time.Second)
	next := limitedFetch(session, 2) // The epoch went on.
	next.Topics[0].Partitions[0].FetchOffset = 30
	if resp, wait = fetch(next); records(resp) != 10*one || wait != 0 {
		t.Errorf("the session goes on with %d bytes, waits %s", records(resp), wait)
	}
	assert.Equal(t, w.store.held.Load(), 0, "reads were never given up")
}

func TestChangesHaveWindowsOfTheirOwn(t *testing.T) {
	cfg, err := config.NewBroker(map[string]string{
		"quota.window.num": "3", "quota.window.size.seconds": "2", "controller.quota.window.num": "5", "controller.quota.window.size.seconds": "4",
	})
	must(t, err)
	image := &metadata.Image{Config: cfg}
	for kind, want := range map[quota.Kind]quota.Limit{
		quota.Produced:  {PerSecond: 7, Windows: 3, Window: 2 * time.Second},
		quota.Fetched:   {PerSecond: 7, Windows: 3, Window: 2 * time.Second},
		quota.Mutations: {PerSecond: 7, Windows: 5, Window: 4 * time.Second, Full: true},
	} {
		assert.Equal(t, handler.QuotaLimit(image, kind, 7), want, "%v", kind)
	}
}

// A consumer of a topic that has little gets it at once.
func TestAFetchOfLessThanTheQuotaDoesNotWait(t *testing.T) {
	w := newLimited(t)
	w.request(w.produceRequest(9, 0))
	w.set("*", "-", metadata.ConsumerByteRate, 1e6)
	w.ask("alice", "app", limitedFetch(0, -1))
	w.now = w.now.Add(time.Millisecond)
	resp, _, muted := w.ask("alice", "app", limitedFetch(0, -1))
	if f := resp.(*kmsg.FetchResponse); records(f) == 0 || muted != 0 {
		t.Errorf("%d bytes, waits %s", records(f), muted)
	}
}

func TestABatchLargerThanAllWindowsIsFetchedAndPaidLater(t *testing.T) {
	w := newLimited(t)
	big, err := record.Build(record.PlainTemplate(), []record.Record{{Value: make([]byte, 50_000)}})
	must(t, err)
	req := w.produceRequest(9, 0)
	req.Topics[0].Partitions[0].Records = big
	w.request(req)
	w.set("*", "-", metadata.ConsumerByteRate, 1000)
	resp, _, muted := w.ask("alice", "app", limitedFetch(0, -1))
	if n := records(resp.(*kmsg.FetchResponse)); n != len(big) || muted != 0 {
		t.Errorf("got %d bytes, waits %s", n, muted)
	}
	if _, _, muted := w.ask("alice", "app", limitedFetch(0, -1)); muted < 49*time.Second || muted > 51*time.Second {
		t.Errorf("then it waits %s", muted)
	}
}

func TestChangesOverTheQuotaAreRefusedOrOnlyWaitedFor(t *testing.T) {
	create := func(version int16, name string, validate bool) kmsg.Request {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.ValidateOnly = version, validate
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 20, 1
		req.Topics = append(req.Topics, topic)
		return req
	}
	remove := func(version int16, name string) kmsg.Request {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TopicNames = version, []string{name}
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		return req
	}
	grow := func(version int16, name string, count int32, validate bool) kmsg.Request {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version, req.ValidateOnly = version, validate
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = name, count
		req.Topics = append(req.Topics, topic)
		return req
	}
	w := newLimited(t)
	w.set("*", "-", metadata.ControllerMutationRate, 1)
	// 11 changes may come at once; 20 do, since nothing was owed.
	for i, step := range []struct {
		req  kmsg.Request
		code *kerr.Error
		wait time.Duration
	}{
		{create(7, "a", true), nil, 0},
		{create(7, "a", false), nil, 0},
		{create(7, "a", false), kerr.TopicAlreadyExists, 0}, // It counts for nothing.
		{create(7, "b", false), kerr.ThrottlingQuotaExceeded, 9 * time.Second},
		{create(6, "b", false), kerr.ThrottlingQuotaExceeded, 9 * time.Second},
		{create(7, "b", true), nil, 0},
		{create(5, "b", false), nil, 29 * time.Second}, // Older clients do not know the error.
		{remove(5, "a"), kerr.ThrottlingQuotaExceeded, 29 * time.Second},
		{remove(6, "nobody"), kerr.UnknownTopicOrPartition, 0},
		{remove(4, "a"), nil, 49 * time.Second},
		{grow(3, "b", 25, false), kerr.ThrottlingQuotaExceeded, 49 * time.Second},
		{grow(3, "b", 25, true), nil, 0},
		{grow(3, "b", 10, false), kerr.InvalidPartitions, 0},
		{grow(2, "b", 21, false), nil, 50 * time.Second},
	} {
		resp, _, muted := w.ask("alice", "app", step.req)
		var code int16
		var told int32
		switch r := resp.(type) {
		case *kmsg.CreateTopicsResponse:
			code, told = r.Topics[0].ErrorCode, r.ThrottleMillis
		case *kmsg.DeleteTopicsResponse:
			code, told = r.Topics[0].ErrorCode, r.ThrottleMillis
		case *kmsg.CreatePartitionsResponse:
			code, told = r.Topics[0].ErrorCode, r.ThrottleMillis
		}
		if kerr.TypedErrorForCode(code) != step.code || muted != step.wait || time.Duration(told)*time.Millisecond != muted {
			t.Errorf("step %d: error %v, told %d ms, mute for %s; want %v and %s", i, kerr.ErrorForCode(code), told, muted, step.code, step.wait)
		}
	}
	assert.True(t, w.c.Image().Topic("a") == nil && len(w.c.Image().Topic("b").Partitions) == 21, "what was done is not what was answered")
}

func TestTopicsAreNotCreatedOnDemandOverTheQuota(t *testing.T) {
	w := newLimited(t)
	w.set("*", "-", metadata.ControllerMutationRate, 0.1)
	asked := func(name string) (*kmsg.MetadataResponse, time.Duration) {
		req := kmsg.NewPtrMetadataRequest()
		req.Version, req.AllowAutoTopicCreation = 12, true
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		resp, _, muted := w.ask("alice", "app", req)
		return resp.(*kmsg.MetadataResponse), muted
	}
	if resp, muted := asked("a"); resp.Topics[0].ErrorCode != 0 || muted != 0 {
		t.Errorf("the first: error %d, waits %s", resp.Topics[0].ErrorCode, muted)
	}
	// Two partitions of a budget of 1.1.
	if resp, muted := asked("b"); resp.Topics[0].ErrorCode != kerr.UnknownTopicOrPartition.Code || muted != 9*time.Second || resp.ThrottleMillis != 9000 {
		t.Errorf("the second: error %d, told %d ms, waits %s", resp.Topics[0].ErrorCode, resp.ThrottleMillis, muted)
	}
	if resp, muted := asked("a"); resp.Topics[0].ErrorCode != 0 || muted != 0 {
		t.Errorf("one that exists: error %d, waits %s", resp.Topics[0].ErrorCode, muted)
	}
}

// What people read without a Fetch comes from the same bucket.
func TestWhatIsReadWithoutAFetchCountsAgainstTheQuota(t *testing.T) {
	w := newLimited(t)
	if n, wait := w.h.Readings(auth.User("ann"), "c").Room(1 << 20); n != 1<<20 || wait != 0 {
		t.Errorf("without a quota there is room for %d, after %s", n, wait)
	}
	w.set("ann", "-", metadata.ConsumerByteRate, 1000)
	read := w.h.Readings(auth.User("ann"), "c")
	if n, wait := read.Room(1 << 20); n <= 0 || n >= 1<<20 || wait != 0 {
		t.Errorf("at first there is room for %d, after %s", n, wait)
	}
	read.Take(50_000)
	if _, wait := w.h.Readings(auth.User("ann"), "another").Room(1 << 20); wait <= 0 {
		t.Error("who has read too much need not wait")
	}
	if _, wait := w.h.Readings(auth.User("bob"), "c").Room(1 << 20); wait != 0 {
		t.Errorf("another has to wait for %s", wait)
	}
}
