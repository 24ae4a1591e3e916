package console_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
)

// login makes a client of someone.
func (w *world) login(user, password string) *kgo.Client {
	return w.client(kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
}

// guarded is a broker that wants a login and goes by rules.
func guarded(t *testing.T) *world {
	w := newWorld(t, "listeners", "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256",
		"authorizer.class.name", "muster", "muster.bootstrap.user", "admin:adminpw")
	w.asks(w.login("admin", "adminpw"))
	return w
}

func TestPeopleActOnUsersRulesAndQuotas(t *testing.T) {
	t.Parallel()
	axe := axeOf(t)
	w := guarded(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.width(1280)
	p.as("admin", "adminpw")

	manageUsers(t, w, p, axe)
	manageRules(t, w, p, axe)
	manageQuotas(t, w, p, axe)
	lackRights(t, w, p, axe)
	p.quiet("access")
}

func manageUsers(t *testing.T, w *world, p *page, axe string) {
	p.open("/users", says("admin"))
	p.click("Create a user …")
	p.put("Name", "admin")
	p.put("Password", "alicepw")
	p.put("Password again", "alicep")
	p.wait(asks("There is this user already") + "&&" + asks("The two differ") + "&&" + js("!button('Create the user')"))
	p.put("Password again", "alicepw")
	p.wait("!" + asks("The two differ") + "&&" + js("!button('Create the user')")) // It would be another password for admin.
	p.put("Name", "alice")
	p.looked("user-create", axe)
	p.click("Create the user")
	p.told("was created")
	p.wait(says("alice"))
	assert.NoError(t, w.login("alice", "alicepw").Ping(t.Context()), "alice cannot log")
	p.looked("users", axe)
	p.click("Set the password of alice")
	p.put("Password", "other")
	p.put("Password again", "other")
	p.click("Set the password")
	p.told("The password of user")
	assert.NoError(t, w.login("alice", "other").Ping(t.Context()), "alice cannot log in with the new password")
	assert.True(t, w.login("alice", "alicepw").Ping(t.Context()) != nil, "alice can log in with the old password")
	p.click("Create a user …")
	p.put("Name", "bob")
	p.put("Password", "bobpw")
	p.put("Password again", "bobpw")
	p.click("Create the user")
	p.told("bob")
	p.click("Delete the user bob")
	p.wait(asks("could no longer log in"))
	p.looked("user-delete", axe)
	p.click("Delete the user")
	p.wait("!" + js("!!button('Delete the user bob')") + "&& document.activeElement.tagName === 'H1'") // The button is gone, the focus is not.
	p.told("was deleted")
	found, err := w.admin.DescribeUserSCRAMs(t.Context())
	must(t, err)
	if _, there := found["bob"]; there || len(found) != 2 {
		t.Errorf("the users are %v", found)
	}
}

// rules returns how many rules there are for alice.
func (w *world) rules() int {
	w.t.Helper()
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	req.Operation, req.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	req.Principal = kmsg.StringPtr("User:alice")
	resp, err := req.RequestWith(w.t.Context(), w.kafka)
	must(w.t, err)
	n := 0
	for _, r := range resp.Resources {
		n += len(r.ACLs)
	}
	return n
}

func manageRules(t *testing.T, w *world, p *page, axe string) {
	p.open("/acls", says("There is no rule yet"))
	p.click("Add a rule …")
	p.put("Who", "alice")
	p.put("Operation", "DESCRIBE")
	p.put("Name of the resource", "or")
	p.put("Names", "PREFIXED")
	p.looked("acl-add", axe)
	p.click("Show what would happen")
	p.wait(asks("There would be a rule"))
	p.looked("acl-add-sure", axe)
	assert.Equal(t, w.rules(), 0, "a preview made a rule")
	p.click("Add the rule")
	p.told("There is a rule now")
	p.wait(says("User:alice"))
	assert.Equal(t, w.rules(), 1, "rules")
	p.put("Who", "alice")
	p.put("Operation", "DESCRIBE")
	p.put("Name", "orders")
	p.click("Ask")
	p.wait("document.querySelector('main .finding h3')?.innerText.includes('Yes')")
	p.put("Operation", "WRITE")
	p.click("Ask")
	p.wait("document.querySelector('main .finding h3')?.innerText.includes('No') &&" + says("muster acls add alice write topic orders"))
	p.looked("acls", axe)
	p.eval(js("[...document.querySelectorAll('td.do button')][0].click()"))
	p.wait(asks("would be removed"))
	p.looked("acl-remove", axe)
	p.click("Remove the rule")
	p.told("There is no rule any more")
	assert.Equal(t, w.rules(), 0, "rules")
}

// quota returns what a user may produce.
func (w *world) quota() float64 {
	w.t.Helper()
	found, err := w.admin.DescribeClientQuotas(w.t.Context(), true, []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: kadm.StringPtr("alice")}})
	must(w.t, err)
	for _, q := range found {
		for _, v := range q.Values {
			if v.Key == "producer_byte_rate" {
				return v.Value
			}
		}
	}
	return 0
}

func manageQuotas(t *testing.T, w *world, p *page, axe string) {
	p.open("/quotas", says("No quotas yet"))
	p.click("Set a quota …")
	p.put("User", "alice")
	p.put("Produce", "1000000")
	p.looked("quota-set", axe)
	p.click("Set the quotas")
	p.told("changed")
	p.wait(says("User alice"))
	assert.Equal(t, w.quota(), 1e6, "the quota")
	p.looked("quotas", axe)
	p.click("Change the quotas of user alice")
	p.put("Produce", "2000000")
	p.put("Fetch", "3000000")
	p.click("Set the quotas")
	p.wait(says("1.9 MiB/s") + "&&" + says("2.9 MiB/s"))
	assert.Equal(t, w.quota(), 2e6, "the quota")
	p.click("Remove the quotas of user alice")
	p.wait(asks("would be removed"))
	p.looked("quota-remove", axe)
	p.click("Remove the quotas")
	p.wait(says("No quotas yet"))
	assert.Equal(t, w.quota(), 0, "the quota")
}

func lackRights(t *testing.T, w *world, p *page, axe string) {
	p.as("alice", "other")
	p.expected = append(p.expected, "status of 403")
	p.open("/topics", says("Topics"))
	p.click("Create a topic …")
	p.put("Name", "mine")
	p.click("Create the topic")
	p.wait(asks("muster acls add alice create topic mine"))
	p.looked("denied", axe)
	assert.Equal(t, w.partitions("mine"), 0, "alice created a topic")
	p.open("/users", says("You may not see this"))
}

func TestPagesSayHowToSwitchOnWhatIsOff(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	axe := axeOf(t)
	w := newWorld(t)
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.width(1280)
	for path, want := range map[string]string{"/users": "muster.bootstrap.user", "/acls": "authorizer.class.name=muster", "/quotas": "muster quotas set"} {
		p.open(path, says(want))
		p.looked("off-"+path[1:], axe)
	}
	p.open("/users", says("No users yet"))
	p.click("Create a user …")
	p.wait(asks("This is the first user"))
	p.looked("user-first", axe)
	p.quiet("off")
}
