package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
	"muster/internal/metadata"
	"muster/internal/redistest"
)

// awaitAudit reads the audit log from its beginning until an entry of a kind that pleases.
func awaitAudit(t *testing.T, b *broker.Broker, pleases func(audit.Entry) bool) []audit.Entry {
	t.Helper()
	return awaitAuditBy(t, client(t, b), pleases)
}

// awaitAuditBy does so as someone.
func awaitAuditBy(t *testing.T, who *kgo.Client, pleases func(audit.Entry) bool) (all []audit.Entry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	reader, err := kgo.NewClient(append(who.Opts(), kgo.ConsumeTopics(metadata.AuditTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(10*time.Millisecond))...)
	must(t, err)
	defer reader.Close()
	for found := false; !found; {
		fs := reader.PollFetches(ctx)
		assert.Must(t, ctx.Err(), "the audit log has only %+v", all)
		fs.EachRecord(func(r *kgo.Record) {
			var e audit.Entry
			if err := json.Unmarshal(r.Value, &e); err != nil || string(r.Key) != e.Principal || r.Timestamp.UnixMilli() != e.Time.UnixMilli() {
				t.Errorf("%v: %s, keyed %s at %s", err, r.Value, r.Key, r.Timestamp)
			}
			all = append(all, e)
			found = found || pleases(e)
		})
	}
	return all
}

func TestTheAuditLogTellsWhoChangedWhat(t *testing.T) {
	b := start(t, nil)
	admin := kadm.NewClient(client(t, b, kgo.ClientID("console")))
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	all := awaitAudit(t, b, func(e audit.Entry) bool { return e.Kind == audit.TopicDeleted })
	first := all[0]
	first.Time = time.Time{}
	want := "User:ANONYMOUS at 127.0.0.1 (console) created topic orders (3 partitions) by CreateTopics"
	assert.True(t, len(all) == 2 && first.Line() == want && first.Broker == 1, "the log has %+v", all)
	topic := b.Image().Topic(metadata.AuditTopic)
	if c := topic.Config; !topic.Internal || c.Compact || !c.Delete || c.RetentionBytes != 256<<20 {
		t.Errorf("the topic has %+v", c)
	}
}

// TestWhatIsDoneAgainAndAgainIsCounted sets the same offset often, as a consumer without
// a group does. What was counted is told when the broker stops.
func TestWhatIsDoneAgainAndAgainIsCounted(t *testing.T) {
	folder := t.TempDir()
	props := map[string]string{"muster.store": "disk", "log.dir": folder, "offsets.topic.num.partitions": "1"}
	const times = 2000 // More than the queue has room for.
	b := start(t, props)
	cl := client(t, b)
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "orders", At: 5, LeaderEpoch: -1})
	for range times {
		must(t, admin.CommitAllOffsets(t.Context(), "g", offsets))
	}
	cl.Close()
	must(t, b.Close())
	b = start(t, props)
	counted := 0
	all := awaitAudit(t, b, func(e audit.Entry) bool {
		if e.Kind == audit.OffsetsSet {
			counted += max(e.Count, 1)
		}
		return counted == times
	})
	if len(all) > 10 { // One at once, then one a minute.
		t.Errorf("%d commits make %d entries", times, len(all))
	}
}

func TestWithoutAnAuditLogNothingIsWritten(t *testing.T) {
	b := start(t, map[string]string{"muster.audit.enable": "false"})
	admin := kadm.NewClient(client(t, b))
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	must(t, b.Close())
	assert.True(t, b.Image().Topic(metadata.AuditTopic) == nil, "there is an audit log")
}

func TestEveryBrokerOfAFleetWritesToTheAuditLog(t *testing.T) {
	server := redistest.Single(t)
	var brokers []*broker.Broker
	for i := range 3 {
		brokers = append(brokers, start(t, map[string]string{"muster.store": "redis", "muster.redis.url": server.URL(), "node.id": fmt.Sprint(i + 1)}))
	}
	// A request for the settings of a topic is answered by whoever is asked.
	admin := kadm.NewClient(client(t, brokers[0]))
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	for _, b := range brokers {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		value := "1000"
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
			ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "orders",
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: &value}},
		}}
		seed := client(t, b).SeedBrokers()[0]
		if _, err := req.RequestWith(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}
	told := map[int32]bool{}
	awaitAudit(t, brokers[0], func(e audit.Entry) bool {
		if e.Kind == audit.SettingsChanged {
			told[e.Broker] = true
		}
		return len(told) == 3
	})
}

func TestTheAuditLogTellsOfLoginsAndDenials(t *testing.T) {
	b := start(t, map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", "muster.bootstrap.user": "admin:right",
		"authorizer.class.name": "muster", "super.users": "User:ANONYMOUS", "connection.failed.authentication.delay.ms": "0",
	})
	as := func(password string) *kadm.Client {
		return kadm.NewClient(client(t, b, kgo.SeedBrokers(b.Addrs()[1]), kgo.SASL(scram.Auth{User: "admin", Pass: password}.AsSha256Mechanism())))
	}
	if _, err := as("wrong-password").ListTopics(t.Context()); err == nil {
		t.Fatal("a wrong password lets in")
	}
	if _, err := as("right").CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	told := map[audit.Kind]audit.Entry{}
	awaitAudit(t, b, func(e audit.Entry) bool {
		told[e.Kind] = e
		return e.Kind == audit.TopicCreated
	})
	if e := told[audit.Login]; e.Principal != "User:admin" || e.Host != "127.0.0.1" || e.Mechanism != "SCRAM-SHA-256" || e.Reason != "" {
		t.Errorf("of the login it tells %+v", e)
	}
	if e := told[audit.LoginFailed]; e.Principal != "User:admin" || e.Host != "127.0.0.1" || e.Mechanism != "SCRAM-SHA-256" || e.Reason == "" || strings.Contains(e.Reason, "wrong-password") {
		t.Errorf("of the login that failed it tells %+v", e)
	}
	if e := told[audit.TopicCreated]; e.Principal != "User:admin" {
		t.Errorf("of the topic it tells %+v", e)
	}
}

func TestTheAuditLogTellsOfDenials(t *testing.T) {
	b := start(t, map[string]string{"authorizer.class.name": "muster", "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", "muster.bootstrap.user": "admin:right"})
	admin := client(t, b, kgo.SeedBrokers(b.Addrs()[1]), kgo.SASL(scram.Auth{User: "admin", Pass: "right"}.AsSha256Mechanism()))
	for range 3 {
		if r, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), 1, 1, nil, "orders"); err == nil && r.Err == nil {
			t.Fatal("nobody may create topics, and did")
		}
	}
	all := awaitAuditBy(t, admin, func(e audit.Entry) bool { return e.Kind == audit.Denied && e.Operation == "CREATE" })
	e := all[slices.IndexFunc(all, func(e audit.Entry) bool { return e.Kind == audit.Denied })]
	assert.True(t, e.Principal == "User:ANONYMOUS" && e.Host == "127.0.0.1" && e.Broker == 1 && len(e.Resources) == 1, "it tells %+v", e)
	for _, e := range all {
		assert.True(t, e.Kind != audit.TopicCreated, "it tells of a change that did not happen: %+v", e)
	}
}
