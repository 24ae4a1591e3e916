package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
	"muster/internal/web"
	"muster/internal/web/problem"
)

// startHTTP starts a broker that answers HTTP.
func startHTTP(t *testing.T, props map[string]string) *broker.Broker {
	t.Helper()
	all := map[string]string{"muster.http.listener": "127.0.0.1:0", "num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}
	maps.Copy(all, props)
	return start(t, all)
}

// ask sends a request to a broker's API.
func ask(t *testing.T, b *broker.Broker, path string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTPAddr()+web.Prefix+path, http.NoBody)
	must(t, err)
	for _, c := range change {
		c(req)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(body)
}

// tried reads an answer that may not be there yet: a coordinator loads, a leader changes.
func tried[A any](t *testing.T, b *broker.Broker, path string, change ...func(*http.Request)) (out A, err error) {
	t.Helper()
	code, body := ask(t, b, path, change...)
	if err := json.Unmarshal([]byte(body), &out); code != http.StatusOK || err != nil {
		return out, fmt.Errorf("%s: %d %s", path, code, body)
	}
	return out, nil
}

// answer reads an answer that must be there.
func answer[A any](t *testing.T, b *broker.Broker, path string, change ...func(*http.Request)) A {
	t.Helper()
	out, err := tried[A](t, b, path, change...)
	must(t, err)
	return out
}

func basic(name, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

// readAll has a group read records of orders, and commit what it has read.
func readAll(t *testing.T, b *broker.Broker, group string, records int, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c := client(t, b, append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.ClientID("reader"))...)
	for seen := 0; seen < records; {
		fs := c.PollFetches(t.Context())
		must(t, fs.Err())
		seen += fs.NumRecords()
	}
	must(t, c.CommitUncommittedOffsets(t.Context()))
	return c
}

func TestTheAPITellsOfAGroup(t *testing.T) {
	b := startHTTP(t, nil)
	c := client(t, b)
	produce(t, c, "orders", 0, 50)
	readAll(t, b, "billing", 50)
	produce(t, c, "orders", 50, 7)

	g := answer[web.GroupDetail](t, b, "/groups/billing")
	if g.State != "Stable" || g.Type != "classic" || len(g.Members) != 1 || g.Members[0].ClientID != "reader" || len(g.Partitions) != 2 || *g.TotalLag != 7 || g.Coordinator.Address != b.Addr() {
		t.Errorf("the group is %+v", g)
	}
	var sum int64
	for _, p := range g.Partitions {
		sum += int64(*p.LogEnd)
		assert.True(t, *p.Owner == g.Members[0].ID && int64(*p.LogEnd)-int64(*p.Committed) == *p.Lag && *p.LogStart == 0, "the partition is %+v", p)
	}
	assert.True(t, sum == 57, "the partitions end at %d in sum", sum)
	x := answer[web.Explanation](t, b, "/groups/billing/explain")
	assert.True(t, strings.Contains(x.Text, "2 partitions are assigned to 1 member") && strings.Contains(x.Text, "Its total lag is 7."), "it explains %+v", x)
	if code, body := ask(t, b, "/groups/nobody"); code != http.StatusNotFound || !strings.Contains(body, `"not_found"`) {
		t.Errorf("of no group: %d %s", code, body)
	}
}

func TestTheAPITellsTheJournal(t *testing.T) {
	b := startHTTP(t, nil)
	produce(t, client(t, b), "orders", 0, 10)
	if j := answer[web.Journal](t, b, "/groups/billing/journal"); len(j.Entries) != 0 {
		t.Errorf("before the first rebalance: %+v", j)
	}
	readAll(t, b, "billing", 10)
	var j web.Journal
	eventually(t, "the journal", func(context.Context) (err error) { // No one waits for it.
		if j, err = tried[web.Journal](t, b, "/groups/billing/journal?all=true"); err == nil && (len(j.Entries) == 0 || j.Entries[len(j.Entries)-1].Kind != "rebalance-settled") {
			err = fmt.Errorf("the journal is %+v", j)
		}
		return err
	})
	assert.True(t, j.Kept && !j.Partly && len(j.Incomplete) == 0 && strings.Contains(string(j.Entries[0].Entry), `"clientId"`), "the journal is %+v", j)
	if all := answer[web.Journal](t, b, "/journal?member=reader&kind=rebalance-settled"); len(all.Entries) != 1 || all.Entries[0].Group != "billing" {
		t.Errorf("found is %+v", all)
	}
	if one := answer[web.Journal](t, b, "/journal?limit=1"); len(one.Entries) != 1 || !one.Entries[0].Time.Equal(j.Entries[len(j.Entries)-1].Time) {
		t.Errorf("the latest is %+v", one)
	}
	if x := answer[web.Explanation](t, b, "/groups/billing/explain"); x.RebalanceCount != 1 || len(x.Rebalances[0].Text) == 0 {
		t.Errorf("it explains %+v", x)
	}
}

func TestTheAPITellsOfTopicsBrokersAndSettings(t *testing.T) {
	b := startHTTP(t, map[string]string{"muster.bootstrap.user": ""})
	produce(t, client(t, b), "orders", 0, 10)
	if d := answer[web.TopicDetail](t, b, "/topics/orders"); len(d.Partitions) != 2 || *d.Partitions[0].Leader != 1 {
		t.Errorf("the topic is %+v", d)
	}
	if l := answer[web.BrokerList](t, b, "/brokers"); len(l.Brokers) != 1 || !l.Brokers[0].Here || l.Cluster != b.Image().ClusterID {
		t.Errorf("the brokers are %+v", l)
	}
	set := map[string]string{}
	for _, s := range answer[web.SettingList](t, b, "/settings?set=true").Settings {
		set[s.Name] = s.Source
	}
	assert.True(t, set["num.partitions"] == "start" && set["muster.store"] == "start", "the settings are %v", set)
	if o := answer[web.Overview](t, b, "/overview"); o.Health.Status != "ok" || o.Health.Node != 1 {
		t.Errorf("the overview is %+v", o)
	}
}

// Over HTTP people log in as the same users, with the same rights.
func TestTheAPIKnowsUsersAndTheirRights(t *testing.T) {
	b := startSASL(t, map[string]string{
		"muster.http.listener": "127.0.0.1:0", "authorizer.class.name": "muster", "super.users": "User:jim", "connection.failed.authentication.delay.ms": "0",
	})
	for _, c := range []struct {
		name, password string
		want           int
	}{{"", "", 401}, {"ann", "wrong", 401}, {"nobody", "anns", 401}, {"jim", "anns", 401}, {"ann", "anns", 403}, {"ann", "anns", 403}, {"jim", "jims", 404}} {
		change := []func(*http.Request){}
		if c.name != "" {
			change = append(change, basic(c.name, c.password))
		}
		if code, body := ask(t, b, "/groups/billing", change...); code != c.want {
			t.Errorf("%s with %s: %d %s", c.name, c.password, code, body)
		}
	}
	counted := scrape(t, b)
	for name, want := range map[string]float64{
		"muster_authentication_total{listener=HTTP,mechanism=BASIC,result=failure}": 3, "muster_authentication_total{listener=HTTP,mechanism=BASIC,result=success}": 2,
		"muster_authentication_total{listener=HTTP,mechanism=COOKIE,result=failure}": 0, "muster_authorization_denied_total{operation=describe,resource_type=group}": 2,
	} {
		if got, known := counted[name]; !known || got != want {
			t.Errorf("%s is %v, %t", name, got, known)
		}
	}
	_, body := ask(t, b, "/groups/billing", basic("ann", "anns"))
	var p problem.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.MissingACL == nil || p.MissingACL.Principal != "User:ann" || !strings.HasPrefix(p.MissingACL.Command, "muster acls add ") {
		t.Errorf("it says %s", body)
	}
	resp, err := http.Get("http://" + b.HTTPAddr() + "/healthz")
	must(t, err)
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	assert.Equal(t, resp.StatusCode, http.StatusOK, "/healthz wants a login")
	jim := client(t, b, kgo.SASL(fplain.Auth{User: "jim", Pass: "jims"}.AsMechanism()))
	var kinds []string
	for _, e := range awaitAuditBy(t, jim, func(e audit.Entry) bool {
		return e.Via == audit.ViaHTTP && e.Kind == audit.Login && e.Principal == "User:jim"
	}) {
		if e.Via == audit.ViaHTTP {
			kinds = append(kinds, string(e.Kind)+" "+e.Principal)
		}
	}
	// What is remembered is no login: only the first request of ann is.
	if got, want := strings.Join(kinds, ", "), "login-failed User:ann, login-failed User:nobody, login-failed User:jim, login User:ann, denied User:ann, login User:jim"; got != want {
		t.Errorf("the audit log has %s, want %s", got, want)
	}
}

// An address that no one asked for may be taken; one that was asked for may not.
func TestABrokerStartsWithoutTheDefaultAddressIfItIsTaken(t *testing.T) {
	addr := hole(t)
	b := start(t, nil, func(c *broker.Config) { c.HTTP = addr })
	assert.Equal(t, b.HTTPAddr(), "")
	assert.Equal(t, start(t, map[string]string{"muster.http.listener": ""}, func(c *broker.Config) { c.HTTP = "127.0.0.1:0" }).HTTPAddr(), "", "told not to, it answers")
	assert.True(t, start(t, nil, func(c *broker.Config) { c.HTTP = "127.0.0.1:0" }).HTTPAddr() != "", "it does not answer")
	wantNoStart(t, map[string]string{"muster.http.listener": addr}, "port in use")
}

// A consumer group has its epochs, and a transaction that is open holds it back.
func TestTheAPITellsWhatHoldsAGroupBack(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	produce(t, client(t, b), "orders", 0, 5)
	readAll(t, b, "billing", 5)
	txn := client(t, b, kgo.TransactionalID("till"))
	must(t, txn.BeginTransaction())
	produce(t, txn, "orders", 5, 1)
	x := answer[web.Explanation](t, b, "/groups/billing/explain")
	found := false
	for _, f := range x.Findings {
		found = found || strings.Contains(f.Text, "till")
	}
	assert.True(t, found, "it explains %+v", x.Findings)
	must(t, txn.EndTransaction(t.Context(), kgo.TryAbort))
}

func TestTheAPITellsWhatWasCommittedWithoutMembers(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	c := client(t, b)
	produce(t, c, "orders", 0, 5)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "orders", At: 2, LeaderEpoch: -1})
	must(t, kadm.NewClient(c).CommitAllOffsets(t.Context(), "idle", offsets))
	g := answer[web.GroupDetail](t, b, "/groups/idle")
	assert.True(t, g.State == "Empty" && *g.TotalLag == 3 && *g.Partitions[0].Committed == 2, "the group is %+v", g)
	x := answer[web.Explanation](t, b, "/groups/idle/explain")
	assert.True(t, len(x.Findings) != 0 && x.Findings[0].ID == "lag-without-members", "it explains %+v", x)
}
