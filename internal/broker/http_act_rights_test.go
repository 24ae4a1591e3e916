package broker_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
	"muster/internal/web"
)

func startRules(t *testing.T) (*broker.Broker, *kgo.Client) {
	t.Helper()
	b := startSASL(t, map[string]string{
		"muster.http.listener": "127.0.0.1:0", "authorizer.class.name": "muster", "super.users": "User:jim", "connection.failed.authentication.delay.ms": "0",
		"group.initial.rebalance.delay.ms": "0",
	})
	return b, client(t, b, manual(), kgo.SASL(fplain.Auth{User: "jim", Pass: "jims"}.AsMechanism()))
}

// Each right that an act needs is asked for by the handler, and a preview asks for the same.
func TestWhatIsDoneOverHTTPNeedsTheRightsOfTheProtocol(t *testing.T) {
	b, jim := startRules(t)
	makeTopic(t, jim, "orders", 1, nil)
	fill(t, jim, "orders", 0, 5)
	commit(t, jim, "billing", "orders", 0, 3)
	const rule = `{"principal":"User:bob","host":"*","operation":"READ","permission":"ALLOW","resourceType":"TOPIC","resourceName":"orders","patternType":"LITERAL"}`
	for _, x := range []struct {
		method, path, body string
		rights             []string // USER OPERATION TYPE [NAME], in the order in which they are missed
		previews           bool
	}{
		{http.MethodPost, "/topics", `{"name":"new"}`, []string{"CREATE TOPIC new"}, true},
		{http.MethodDelete, "/topics/orders", "", []string{"DELETE TOPIC orders"}, true},
		{http.MethodPost, "/topics/orders/partitions", `{"count":2}`, []string{"ALTER TOPIC orders"}, true},
		{http.MethodPut, "/topics/orders/configs", `{"set":{"retention.ms":"1000"}}`, []string{"ALTER_CONFIGS TOPIC orders"}, true},
		{http.MethodPost, "/topics/orders/records", `{"value":"x"}`, []string{"WRITE TOPIC orders"}, false},
		{http.MethodDelete, "/topics/orders/records", `{"partitions":[{"partition":0,"offset":"1"}]}`, []string{"DELETE TOPIC orders"}, true},
		{http.MethodPost, "/groups/billing/resets", `{"topic":"orders","to":"end"}`, []string{"READ GROUP billing", "READ TOPIC orders"}, false},
		{http.MethodPost, "/groups/billing/resets", `{"to":"end"}`, []string{"READ GROUP billing"}, false},
		{http.MethodPost, "/groups/billing/resets/execute", `{"partitions":[{"topic":"orders","partition":0,"committed":"3","to":"1"}]}`, []string{"DESCRIBE GROUP billing"}, false},
		{http.MethodDelete, "/groups/billing", "", []string{"DELETE GROUP billing"}, true},
		{http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders","partitions":[0]}`, []string{"DELETE GROUP billing", "READ TOPIC orders"}, true},
		{http.MethodPost, "/groups/billing/members/remove", `{"memberId":"m"}`, []string{"READ GROUP billing"}, true},
		{http.MethodPut, "/users/bob", `{"password":"bobs"}`, []string{"ALTER CLUSTER kafka-cluster"}, true},
		{http.MethodDelete, "/users/ann", "", []string{"ALTER CLUSTER kafka-cluster"}, true},
		{http.MethodPost, "/acls", rule, []string{"ALTER CLUSTER kafka-cluster"}, true},
		{http.MethodDelete, "/acls", rule, []string{"ALTER CLUSTER kafka-cluster"}, true},
		{http.MethodPut, "/quotas", `{"entity":[{"type":"user"}],"set":[{"name":"producer_byte_rate","value":1}]}`, []string{"ALTER_CONFIGS CLUSTER kafka-cluster"}, true},
	} {
		for _, preview := range []string{"", "?preview=true"} {
			if preview != "" && !x.previews {
				continue
			}
			for i, lacks := range x.rights {
				for _, given := range x.rights[:i] {
					allow(t, b, given, http.MethodPost)
				}
				p := refuses(t, b, http.StatusForbidden, x.method, x.path+preview, x.body, basic("ann", "anns"))
				if a := p.MissingACL; a == nil || a.Operation+" "+a.ResourceType+" "+a.ResourceName != lacks || a.Principal != "User:ann" || !strings.HasPrefix(a.Command, "muster acls add ") {
					t.Errorf("%s %s%s says %+v, %+v, want %s", x.method, x.path, preview, p, p.MissingACL, lacks)
				}
				for _, given := range x.rights[:i] {
					allow(t, b, given, http.MethodDelete)
				}
			}
		}
	}
	if got := committedIn(t, jim, "billing", "orders"); got[0] != 3 || topics(t, jim)["orders"] != 1 || topics(t, jim)["new"] != 0 {
		t.Errorf("something was done: %v", got)
	}
	// With READ of the group and nothing of the topic, the offset is not moved either.
	allow(t, b, "READ GROUP billing", http.MethodPost)
	refuses(t, b, http.StatusForbidden, http.MethodPost, "/groups/billing/resets/execute", `{"partitions":[{"topic":"orders","partition":0,"committed":"3","to":"1"}]}`, basic("ann", "anns"))
	allow(t, b, "READ TOPIC orders", http.MethodPost)
	does[web.Done](t, b, http.MethodPost, "/groups/billing/resets/execute", `{"partitions":[{"topic":"orders","partition":0,"committed":"3","to":"1"}]}`, basic("ann", "anns"))
	if got := committedIn(t, jim, "billing", "orders"); got[0] != 1 {
		t.Errorf("it is at %v", got)
	}
	denied := 0
	for _, e := range awaitAuditBy(t, jim, func(e audit.Entry) bool { return e.Kind == audit.OffsetsSet && e.Principal == "User:ann" }) {
		if e.Kind == audit.Denied && e.Principal == "User:ann" {
			if denied++; e.Via != audit.ViaHTTP {
				t.Errorf("a denial is told as %+v", e)
			}
		}
	}
	assert.True(t, denied != 0, "no denial is told")
}

// allow gives ann a right, or takes it, over HTTP.
func allow(t *testing.T, b *broker.Broker, right, method string) {
	t.Helper()
	part := strings.Fields(right)
	does[web.Done](t, b, method, "/acls", fmt.Sprintf(`{"principal":"User:ann","host":"*","operation":%q,"permission":"ALLOW","resourceType":%q,"resourceName":%q,"patternType":"LITERAL"}`, part[0], part[1], part[2]), basic("jim", "jims"))
}

func TestUsersRulesAndQuotasAreChangedOverHTTP(t *testing.T) {
	b, jim := startRules(t)
	as := basic("jim", "jims")
	names := func() string {
		var out []string
		for _, u := range answer[web.UserList](t, b, "/users", as).Users {
			out = append(out, u.Name+" "+strings.Join(u.Mechanisms, " "))
		}
		return strings.Join(out, ", ")
	}
	const both = "SCRAM-SHA-256 SCRAM-SHA-512"
	if d := does[web.Done](t, b, http.MethodPut, "/users/bob?preview=true", `{"password":"bobs"}`, as); d.Done || names() != "ann "+both {
		t.Errorf("the preview is %+v; there are %s", d, names())
	}
	does[web.Done](t, b, http.MethodPut, "/users/bob", `{"password":"bobs"}`, as)
	does[web.Done](t, b, http.MethodPut, "/users/eve", `{"password":"eves","mechanisms":["SCRAM-SHA-512"]}`, as)
	assert.Equal(t, names(), "ann "+both+", bob "+both+", eve SCRAM-SHA-512", "what is there")
	for i, login := range []kgo.Opt{
		kgo.SASL(scram.Auth{User: "bob", Pass: "bobs"}.AsSha256Mechanism()), kgo.SASL(scram.Auth{User: "bob", Pass: "bobs"}.AsSha512Mechanism()), kgo.SASL(scram.Auth{User: "eve", Pass: "eves"}.AsSha512Mechanism()),
	} {
		assert.NoError(t, client(t, b, login).Ping(t.Context()), "login %d", i)
	}
	does[web.Done](t, b, http.MethodPut, "/users/bob", `{"password":"other"}`, as)
	if code, _ := ask(t, b, "/session", basic("bob", "bobs")); code != http.StatusUnauthorized {
		t.Errorf("the old password: %d", code)
	}
	for body, want := range map[string]int{`{"password":""}`: 400, `{}`: 400, `{"password":"x","mechanisms":["PLAIN"]}`: 400, `{"password":"x","mechanisms":["SCRAM-SHA-256","SCRAM-SHA-256"]}`: 400} {
		refuses(t, b, want, http.MethodPut, "/users/bob", body, as)
	}
	if d := does[web.Done](t, b, http.MethodDelete, "/users/bob?preview=true", "", as); d.Done || !strings.Contains(names(), "bob") {
		t.Errorf("the preview is %+v", d)
	}
	does[web.Done](t, b, http.MethodDelete, "/users/bob", "", as)
	refuses(t, b, http.StatusNotFound, http.MethodDelete, "/users/bob", "", as)
	refuses(t, b, http.StatusNotFound, http.MethodDelete, "/users/bob?preview=true", "", as)
	if strings.Contains(names(), "bob") {
		t.Errorf("there are %s", names())
	}

	why := func() web.ACLWhy {
		return answer[web.ACLWhy](t, b, "/acls/why?principal=ann&operation=read&resource=topic&name=orders", as)
	}
	if w := why(); w.Allowed || w.Rule != nil || w.Command == "" {
		t.Errorf("without a rule: %+v", w)
	}
	const rule = `{"principal":"User:ann","host":"*","operation":"READ","permission":"ALLOW","resourceType":"TOPIC","resourceName":"ord","patternType":"PREFIXED"}`
	if d := does[web.Done](t, b, http.MethodPost, "/acls?preview=true", rule, as); d.Done || why().Allowed {
		t.Errorf("the preview is %+v", d)
	}
	does[web.Done](t, b, http.MethodPost, "/acls", rule, as)
	if w := why(); !w.Allowed || w.Rule == nil || w.Rule.ResourceName != "ord" {
		t.Errorf("with the rule: %+v", w)
	}
	if l := answer[web.ACLList](t, b, "/acls?name=orders", as); !l.Enabled || len(l.ACLs) != 1 || l.ACLs[0].PatternType != "PREFIXED" {
		t.Errorf("the rules are %+v", l)
	}
	found, err := kadm.NewClient(jim).DescribeACLs(t.Context(), kadm.NewACLs().AnyResource().Allow().Deny().AllowHosts().DenyHosts().Operations().ResourcePatternType(kadm.ACLPatternAny))
	assert.True(t, err == nil && len(found) != 0, "by the protocol: %+v, %v", found, err)
	refuses(t, b, http.StatusBadRequest, http.MethodPost, "/acls", strings.Replace(rule, "READ", "SING", 1), as)
	refuses(t, b, http.StatusBadRequest, http.MethodPost, "/acls", strings.Replace(rule, "User:ann", "ann", 1), as)
	if d := does[web.Done](t, b, http.MethodDelete, "/acls?preview=true", rule, as); d.Done || !why().Allowed {
		t.Errorf("the preview is %+v", d)
	}
	does[web.Done](t, b, http.MethodDelete, "/acls", rule, as)
	refuses(t, b, http.StatusNotFound, http.MethodDelete, "/acls", rule, as)
	refuses(t, b, http.StatusNotFound, http.MethodDelete, "/acls?preview=true", rule, as)
	if w := why(); w.Allowed {
		t.Errorf("after it: %+v", w)
	}

	const quota = `{"entity":[{"type":"user","name":"ann"},{"type":"client-id","name":null}],"set":[{"name":"producer_byte_rate","value":1024}]}`
	count := func() int { return len(answer[web.QuotaList](t, b, "/quotas", as).Quotas) }
	if d := does[web.Done](t, b, http.MethodPut, "/quotas?preview=true", quota, as); d.Done || count() != 0 {
		t.Errorf("the preview is %+v", d)
	}
	does[web.Done](t, b, http.MethodPut, "/quotas", quota, as)
	if l := answer[web.QuotaList](t, b, "/quotas", as).Quotas; len(l) != 1 || len(l[0].Entity) != 2 || l[0].Entity[1].Name != nil || l[0].Values[0].Value != 1024 {
		t.Errorf("the quotas are %+v", l)
	}
	refuses(t, b, http.StatusBadRequest, http.MethodPut, "/quotas", strings.Replace(quota, "1024", "-1", 1), as)
	refuses(t, b, http.StatusBadRequest, http.MethodPut, "/quotas", strings.Replace(quota, "producer_byte_rate", "none", 1), as)
	refuses(t, b, http.StatusBadRequest, http.MethodPut, "/quotas", `{"entity":[{"type":"user"}]}`, as)
	does[web.Done](t, b, http.MethodPut, "/quotas", `{"entity":[{"type":"user","name":"ann"},{"type":"client-id","name":null}],"remove":["producer_byte_rate"]}`, as)
	assert.Equal(t, count(), 0, "quotas")
}

// A quota that the protocol would have a connection wait for is waited for over HTTP, too.
func TestQuotasHoldOverHTTP(t *testing.T) {
	b := startHTTP(t, nil)
	makeTopic(t, client(t, b), "orders", 1, nil)
	does[web.Done](t, b, http.MethodPut, "/quotas", `{"entity":[{"type":"client-id","name":"muster-http"}],"set":[{"name":"producer_byte_rate","value":1}]}`)
	does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", `{"value":"`+strings.Repeat("x", 100_000)+`"}`)
	code, header, text := send(t, b, http.MethodPost, "/topics/orders/records", `{"value":"x"}`)
	if code != http.StatusTooManyRequests || header.Get("Retry-After") == "" || header.Get("Retry-After") == "0" || !strings.Contains(text, "quota_exceeded") {
		t.Errorf("beyond the quota: %d %s %s", code, header.Get("Retry-After"), text)
	}
	if code, _ := ask(t, b, "/topics/orders"); code != http.StatusOK {
		t.Errorf("to read meanwhile: %d", code)
	}
	does[web.Done](t, b, http.MethodPost, "/topics", `{"name":"other"}`) // Only to produce is refused.
}

func TestTheQuotaOfChangesHoldsOverHTTP(t *testing.T) {
	b := startHTTP(t, nil)
	does[web.Done](t, b, http.MethodPut, "/quotas", `{"entity":[{"type":"user","name":null}],"set":[{"name":"controller_mutation_rate","value":0.01}]}`)
	last := 0
	for i := range 100 {
		code, header, text := send(t, b, http.MethodPost, "/topics", fmt.Sprintf(`{"name":"t%d","partitions":5}`, i))
		if last = code; code == http.StatusOK {
			continue
		}
		if code != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(text, "THROTTLING_QUOTA_EXCEEDED") {
			t.Errorf("beyond the quota: %d %s", code, text)
		}
		break
	}
	assert.True(t, last != http.StatusOK, "nobody counts")
}

func TestHostileBodiesAreRefused(t *testing.T) {
	b := startHTTP(t, nil)
	c := client(t, b)
	makeTopic(t, c, "orders", 2, nil)
	commit(t, c, "billing", "orders", 0, 0)
	var twice strings.Builder
	for range 2 {
		for i := range 10_000 {
			fmt.Fprintf(&twice, `,{"topic":"orders","partition":%d,"committed":null,"to":"0"}`, i)
		}
	}
	var plain strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&plain, `,{"partition":%d,"offset":"0"}`, i%10_000)
	}
	for _, x := range []struct {
		want               int
		method, path, body string
	}{
		{400, http.MethodPost, "/groups/billing/resets/execute", `{"partitions":[` + twice.String()[1:] + `]}`},
		{400, http.MethodDelete, "/topics/orders/records", `{"partitions":[` + plain.String()[1:] + `]}`},
		{400, http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders","partitions":[0` + strings.Repeat(",0", 20_000) + `]}`},
		{400, http.MethodPost, "/topics/orders/records", strings.Repeat("[", 1<<20)},
		{400, http.MethodPost, "/topics/orders/records", strings.Repeat(`{"value":`, 100_000)},
		{400, http.MethodPost, "/topics/orders/records", `{"partition":99999999999999999999999}`},
		{400, http.MethodPost, "/topics/orders/records", `{"partition":1e400}`},
		{400, http.MethodPost, "/topics", `{"name":"x","partitions":2147483647}`},
		{400, http.MethodPost, "/topics", `{"name":"x","partitions":0}`},
		{400, http.MethodPost, "/topics", `{"name":"../x"}`},
		{400, http.MethodPost, "/topics", `{"name":""}`},
		{413, http.MethodPost, "/topics", `{"name":"` + strings.Repeat("x", 1<<17) + `"}`},
		{400, http.MethodPost, "/topics/orders/partitions", `{"count":-1}`},
		{404, http.MethodDelete, "/groups/" + strings.Repeat("g", 4000), ""},
		{404, http.MethodDelete, "/topics/a%2f..%2f..", ""},
	} {
		refuses(t, b, x.want, x.method, x.path, x.body)
	}
	if got := topics(t, c); len(got) != 1 {
		t.Errorf("there are %v", got)
	}
}

// Who deletes the last user is told what that opens, unless people must log in anyway.
func TestToDeleteTheLastUserOpensTheConsole(t *testing.T) {
	const opens = "From then on no login is needed here."
	for always, b := range map[bool]*broker.Broker{
		true:  startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0"}),
		false: startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0", "listeners": "PLAINTEXT://127.0.0.1:0"}),
	} {
		d := does[web.Done](t, b, http.MethodDelete, "/users/ann?preview=true", "", basic("ann", "anns"))
		if slices.Contains(d.Sentences, opens) == always || !slices.Contains(d.Sentences, "There is no other user.") {
			t.Errorf("people must log in anyway: %t; %q", always, d.Sentences)
		}
	}
}
