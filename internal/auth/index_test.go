package auth

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

// rules makes an index from lines such as "allow alice read topic orders*", where
// a name that ends with an asterisk is a prefix, and one that is an asterisk all.
func rules(t testing.TB, policy Policy, texts ...string) *Index {
	t.Helper()
	edit := New(policy).Edit()
	for _, text := range texts {
		edit.Add(ruleOf(t, text))
	}
	return edit.Index()
}

func ruleOf(t testing.TB, text string) Rule {
	t.Helper()
	f := append(strings.Fields(text), "*")
	r := Rule{Principal: ParsePrincipal(f[1]), Pattern: Literal, Name: f[4], Host: f[5]}
	var errs [3]error
	r.Permission, errs[0] = ParsePermission(f[0])
	r.Operation, errs[1] = ParseOperation(f[2])
	r.Type, errs[2] = ParseResourceType(f[3])
	if prefix, ok := strings.CutSuffix(r.Name, "*"); ok && prefix != "" {
		r.Name, r.Pattern = prefix, Prefixed
	}
	r, err := r.Check()
	for _, err := range append(errs[:], err) {
		assert.Must(t, err, "%s", text)
	}
	return r
}

func ask(t testing.TB, text string) Request {
	t.Helper()
	r := ruleOf(t, "allow "+text)
	host := r.Host
	if host == AnyHost {
		host = "10.0.0.9"
	}
	return Request{Principal: r.Principal, Host: host, Operation: r.Operation, Type: r.Type, Name: r.Name}
}

func TestPrecedenceAndImplication(t *testing.T) {
	type asked map[string]bool
	for _, c := range []struct {
		name  string
		rules []string
		asked asked
	}{
		{"nothing is allowed without rules", nil, asked{"alice read topic a": false, "alice describe cluster kafka-cluster": false}},
		{"a rule is for its principal, operation, type and name", []string{"allow alice read topic a"}, asked{
			"alice read topic a": true, "bob read topic a": false, "alice write topic a": false, "alice read group a": false, "alice read topic ab": false,
		}},
		{"DENY wins over ALLOW, whatever is more specific", []string{
			"allow alice read topic orders", "deny * read topic o*", "allow alice write topic o*", "deny alice write topic orders", "allow * read group g", "deny alice all group *",
		}, asked{"alice read topic orders": false, "alice write topic orders": false, "alice write topic other": true, "alice read group g": false, "bob read group g": true}},
		{"DENY implies nothing", []string{"allow alice all topic a", "deny alice write topic a", "deny alice alter-configs topic a"}, asked{
			"alice write topic a": false, "alice describe topic a": true, "alice read topic a": true, "alice describe-configs topic a": true, "alice alter-configs topic a": false,
		}},
		{"DENY of ALL denies all", []string{"allow alice all topic *", "deny alice all topic a"}, asked{
			"alice describe topic a": false, "alice read topic a": false, "alice describe-configs topic a": false, "alice describe topic b": true,
		}},
		{"DENY of DESCRIBE leaves READ", []string{"allow alice read topic a", "deny alice describe topic a"}, asked{
			"alice read topic a": true, "alice describe topic a": false,
		}},
		{"READ implies DESCRIBE", []string{"allow alice read topic a"}, asked{"alice describe topic a": true, "alice describe-configs topic a": false}},
		{"WRITE implies DESCRIBE", []string{"allow alice write topic a"}, asked{"alice describe topic a": true, "alice read topic a": false}},
		{"DELETE implies DESCRIBE", []string{"allow alice delete group a"}, asked{"alice describe group a": true, "alice read group a": false}},
		{"ALTER implies DESCRIBE", []string{"allow alice alter topic a"}, asked{"alice describe topic a": true, "alice alter-configs topic a": false}},
		{"CREATE does not", []string{"allow alice create topic a"}, asked{"alice describe topic a": false, "alice create topic a": true}},
		{"ALTER_CONFIGS implies DESCRIBE_CONFIGS only", []string{"allow alice alter-configs topic a"}, asked{"alice describe-configs topic a": true, "alice describe topic a": false}},
		{"DESCRIBE implies nothing", []string{"allow alice describe topic a"}, asked{"alice read topic a": false, "alice describe-configs topic a": false}},
		{"CLUSTER_ACTION implies nothing", []string{"allow alice cluster-action cluster kafka-cluster"}, asked{"alice describe cluster kafka-cluster": false}},
		{"all that start with a prefix", []string{"allow alice read topic ord*"}, asked{
			"alice read topic ord": true, "alice read topic orders": true, "alice read topic or": false, "alice read topic xord": false,
		}},
		{"prefixes within prefixes", []string{"allow alice read topic a*", "deny alice read topic aab*", "allow alice read topic aabc*", "allow alice write topic aa*"}, asked{
			"alice read topic aa": true, "alice read topic aab": false, "alice read topic aabc": false, "alice write topic aabcd": true, "alice write topic ab": false, "alice read topic ab": true,
		}},
		{"a prefix of only an asterisk is for names that begin with it", []string{"allow alice read group **"}, asked{"alice read group g": false}},
		{"hosts", []string{"allow alice read topic a 10.0.0.1", "allow alice write topic a", "deny alice write topic a 10.0.0.2", "deny * read topic p* 10.0.0.1", "allow * read topic p*"}, asked{
			"alice read topic a 10.0.0.1": true, "alice read topic a 10.0.0.2": false, "alice write topic a 10.0.0.1": true, "alice write topic a 10.0.0.2": false,
			"alice read topic pq 10.0.0.1": false, "alice read topic pq 10.0.0.2": true,
		}},
		{"hosts of prefixes within prefixes", []string{
			"deny alice read topic a* 10.0.0.1", "allow alice read topic ab*", "deny alice write topic abc* 10.0.0.1", "allow alice write topic abcd*", "allow alice read topic abcde* 10.0.0.2",
		}, asked{
			"alice read topic abcdef 10.0.0.1": false, "alice read topic abcdef 10.0.0.2": true, "alice write topic abcd 10.0.0.1": false, "alice write topic abcd 10.0.0.2": true,
			"alice read topic ab 10.0.0.1": false, "alice read topic ab 10.0.0.2": true, "alice read topic abcdef": true,
		}},
		{"super users", []string{"deny root all topic *"}, asked{"root read topic a": true, "root alter cluster kafka-cluster": true}},
		{"nobody is a super user by rules for everyone", []string{"allow * read topic a"}, asked{"ANONYMOUS read topic a": true, "ANONYMOUS write topic a": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := rules(t, Policy{SuperUsers: []Principal{"User:root"}}, c.rules...)
			for text, want := range c.asked {
				q := ask(t, text)
				assert.Equal(t, x.Allows(q), want, "%s", text)
				if got := x.Decide(q); got.Allowed != want {
					t.Errorf("%s: %+v", text, got)
				}
			}
		})
	}
}

// Each rule of the list decides as long as it is there, and the next one then.
func TestTheRuleMostAboutTheRequestIsNamed(t *testing.T) {
	for _, permission := range []string{"allow", "deny"} {
		for asked, texts := range map[string][]string{
			"alice describe topic orders 10.0.0.1": {
				"alice describe topic orders 10.0.0.1", "alice all topic orders 10.0.0.1", "alice describe topic orders", "alice all topic orders",
				"alice describe topic orde* 10.0.0.1", "alice all topic orde*", "alice describe topic or* 10.0.0.1", "alice describe topic or*",
				"alice describe topic * 10.0.0.1", "alice all topic *",
				"* describe topic orders 10.0.0.1", "* describe topic orders", "* all topic orders", "* describe topic o*", "* all topic *",
			},
			"alice read topic orders": {"alice read topic orders", "alice all topic orders", "* read topic orders"},
		} {
			x := New(Policy{})
			for _, text := range texts {
				edit := x.Edit()
				edit.Add(ruleOf(t, permission+" "+text))
				x = edit.Index()
			}
			if permission == "deny" {
				edit := x.Edit()
				edit.Add(ruleOf(t, "allow alice all topic orders"))
				x = edit.Index()
			}
			for _, text := range texts {
				want := Decision{Allowed: permission == "allow", Reason: ByRule, Rule: ruleOf(t, permission+" "+text)}
				assert.Equal(t, x.Decide(ask(t, asked)), want, "%s", asked)
				edit := x.Edit()
				edit.Remove(want.Rule)
				x = edit.Index()
			}
		}
	}
	x := rules(t, Policy{}, "allow alice all topic a", "allow alice alter topic a", "allow alice read topic a")
	for _, want := range []Operation{All, Read, Alter} {
		got := x.Decide(ask(t, "alice describe topic a"))
		assert.Equal(t, got.Rule.Operation, want, "%+v", got)
		edit := x.Edit()
		edit.Remove(got.Rule)
		x = edit.Index()
	}
}

func TestEveryoneIsAllowedWhereThereIsNoRule(t *testing.T) {
	x := rules(t, Policy{AllowEveryone: true}, "allow alice read topic a", "allow alice read topic p*", "deny bob read group * 10.0.0.1")
	for text, want := range map[string]bool{
		"bob alter topic b": true, "bob read topic a": false, "alice read topic a": true, "alice write topic a": false, "bob read topic pq": false,
		"bob read topic q": true, "alice read group g": false, "alice alter cluster kafka-cluster": true,
	} {
		assert.Equal(t, x.Allows(ask(t, text)), want, "%s", text)
	}
	if x = x.WithPolicy(Policy{}); x.Allows(ask(t, "bob alter topic b")) {
		t.Error("everyone is allowed by a policy that says no")
	}
}

func TestAnyOfATypeIsHiddenByDenials(t *testing.T) {
	for _, c := range []struct {
		name     string
		everyone bool
		rules    string
		want     bool
	}{
		{"nothing", false, "", false},
		{"nothing, and everyone is allowed", true, "", true},
		{"one topic", false, "allow alice write topic a", true},
		{"another operation", false, "allow alice read topic a", false},
		{"another type", false, "allow alice write group a", false},
		{"another user", false, "allow bob write topic a", false},
		{"everyone", false, "allow * write topic a", true},
		{"another host", false, "allow alice write topic a 10.0.0.1", false},
		{"all topics", false, "allow alice all topic *", true},
		{"all topics but some", false, "allow alice all topic *; deny alice write topic a*", true},
		{"denied for all topics", false, "allow alice write topic a; deny * write topic *", false},
		{"denied for all topics, everyone allowed", true, "deny alice write topic *", false},
		{"a rule for all topics, for somebody else, everyone allowed", true, "allow bob write topic *", false},
		{"the same name denied", false, "allow alice write topic a; deny * write topic a", false},
		{"another name denied", false, "allow alice write topic a; deny * write topic b", true},
		{"the same name denied to the user", false, "allow * write topic a; deny alice write topic a", false},
		{"all topics, but not those that begin with an asterisk", false, "allow alice write topic *; deny alice write topic **", true},
		{"a prefix of it denied", false, "allow alice write topic abc; deny alice write topic ab*", false},
		{"the prefix itself denied", false, "allow alice write topic ab*; deny alice write topic ab*", false},
		{"a part of the prefix denied", false, "allow alice write topic ab*; deny alice write topic a*", false},
		{"less than the prefix denied", false, "allow alice write topic ab*; deny alice write topic abc*", true},
		{"the name of the prefix denied", false, "allow alice write topic ab*; deny alice write topic ab", true},
		{"one hidden, one not", false, "allow alice write topic abc; deny alice write topic ab*; allow * write topic ac", true},
		{"denied for another operation", false, "allow alice write topic a; deny alice read topic *", true},
	} {
		var texts []string
		if c.rules != "" {
			texts = strings.Split(c.rules, "; ")
		}
		x := rules(t, Policy{AllowEveryone: c.everyone, SuperUsers: []Principal{"User:root"}}, texts...)
		assert.Equal(t, x.AnyOf(Request{Principal: "User:alice", Host: "10.0.0.9", Operation: Write, Type: Topic}), c.want, "%s", c.name)
		assert.True(t, x.AnyOf(Request{Principal: "User:root", Host: "10.0.0.9", Operation: Write, Type: Topic}), "%s: a super user may not", c.name)
	}
}

func TestAuthorizedOperationsAreThoseOfTheType(t *testing.T) {
	x := rules(t, Policy{SuperUsers: []Principal{"User:root"}}, "allow alice all topic *", "deny alice write topic a", "allow alice read group g")
	for _, c := range []struct {
		user string
		of   ResourceType
		name string
		want int32
	}{
		{"root", Topic, "a", 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11},
		{"root", Group, "g", 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11},
		{"root", Cluster, ClusterName, 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12},
		{"root", TransactionalID, "t", 1<<4 | 1<<8 | 1<<15},
		{"root", 17, "t", 0},
		{"root", -1, "t", 0},
		{"alice", Topic, "a", 1<<3 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11},
		{"alice", Group, "g", 1<<3 | 1<<8},
		{"alice", Group, "h", 0},
		{"bob", Topic, "a", 0},
	} {
		assert.Equal(t, x.AuthorizedOperations(Request{Principal: User(c.user), Host: "10.0.0.1", Type: c.of, Name: c.name}), c.want, "%s on %v %s", c.user, c.of, c.name)
	}
}

func TestNobodyMayDoWhatIsNoOperation(t *testing.T) {
	x := rules(t, Policy{SuperUsers: []Principal{"User:root"}, AllowEveryone: true}, "allow alice all topic *")
	for _, user := range []Principal{"User:root", "User:alice", "User:bob"} {
		for _, op := range []Operation{UnknownOperation, AnyOperation, operations, 31, 32, 127, -1} {
			assert.False(t, x.Allows(Request{Principal: user, Operation: op, Type: Topic, Name: "a"}), "%s may do %d", user, op)
		}
		if x.Allows(Request{Principal: user, Operation: Read, Type: 99, Name: "a"}) || x.AnyOf(Request{Principal: user, Host: "", Operation: Read, Type: -1}) || x.Decide(Request{Principal: user, Type: 99}).Allowed {
			t.Errorf("%s may use what is no resource", user)
		}
	}
}

// What one rule says goes with it, and nothing that its neighbours say.
func TestARuleThatIsRemovedTakesOnlyItself(t *testing.T) {
	for _, name := range []string{"a", "a*", "*"} {
		texts := []string{
			"alice read topic " + name, "alice write topic " + name, "alice read topic " + name + " 10.0.0.1", "alice write topic " + name + " 10.0.0.1",
			"alice read topic " + name + " 10.0.0.2", "alice alter topic " + name + " 10.0.0.2",
		}
		for gone := range texts {
			x := New(Policy{})
			for _, text := range texts {
				edit := x.Edit()
				edit.Add(ruleOf(t, "allow "+text))
				x = edit.Index()
			}
			edit := x.Edit()
			edit.Remove(ruleOf(t, "allow "+texts[gone]))
			x = edit.Index()
			for i, text := range texts {
				r := ruleOf(t, "allow "+text)
				q := Request{Principal: r.Principal, Host: r.Host, Operation: r.Operation, Type: r.Type, Name: "a"}
				byAll := strings.Contains(text, "10.0.0.1") // A rule for all hosts allows it too.
				if got, want := x.Allows(q), i != gone || byAll || i == 4; got != want {
					t.Errorf("%q without %q: %q is %t", name, texts[gone], text, got)
				}
			}
		}
	}
	x := rules(t, Policy{}, "allow alice read topic a", "allow alice read topic a 10.0.0.1")
	edit := x.Edit()
	edit.Remove(ruleOf(t, "allow alice read topic a 10.0.0.1"))
	if n := edit.Index().own["User:alice"][Topic].literal[0]; len(n.hosts) != 0 {
		t.Errorf("a host without rules is left: %+v", n)
	}
}

func TestRulesAreListedByResource(t *testing.T) {
	x := rules(t, Policy{}, "allow bob read topic b", "allow alice read topic b", "deny alice read group z", "allow alice read topic a*", "allow alice read topic a", "allow alice describe topic a")
	all := Filter{Type: AnyResource, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission}
	var got []string
	for _, r := range x.Rules(all) {
		got = append(got, fmt.Sprint(r.Type, " ", r.Name, " ", r.Pattern, " ", r.Principal.Name(), " ", r.Operation))
	}
	want := []string{
		"TOPIC a LITERAL alice READ", "TOPIC a LITERAL alice DESCRIBE", "TOPIC a PREFIXED alice READ", "TOPIC b LITERAL alice READ", "TOPIC b LITERAL bob READ", "GROUP z LITERAL alice READ",
	}
	assert.EqualSlices(t, got, want)
	if all.Permission = Deny; len(x.Rules(all)) != 1 {
		t.Errorf("%v", x.Rules(all))
	}
}

func TestAnEditThatChangesNothingIsTheSameIndex(t *testing.T) {
	x := rules(t, Policy{}, "allow alice read topic a")
	edit := x.Edit()
	edit.Add(ruleOf(t, "allow alice read topic a"))
	edit.Remove(ruleOf(t, "allow bob read topic a"))
	edit.RemoveID("nobody")
	edit.Add(ruleOf(t, "deny bob read topic a"))
	edit.RemoveID(ruleOf(t, "deny bob read topic a").ID())
	assert.Equal(t, edit.Index(), x, "another index")
}

// Prefixes that nest deeply are climbed in jumps, not one by one.
func TestDeepPrefixesAreClimbedInJumps(t *testing.T) {
	edit := New(Policy{}).Edit()
	const depth = 1 << 9
	for n := range depth {
		r := ruleOf(t, "allow alice read group x*")
		r.Name = strings.Repeat("a", n+1)
		edit.Add(r)
	}
	own := edit.Index().own["User:alice"][Group]
	for _, at := range []int{0, 1, 2, 3, 300, depth - 1} {
		name := strings.Repeat("a", at+1) + "b"
		assert.MustEqual(t, own.longest(name), int32(at), "the longest prefix of %d letters", at+2)
	}
	steps := 0
	for at := int32(depth - 1); at > 0; steps++ {
		if at = own.links[at].jump; steps > 4*bits.Len(depth) {
			t.Fatalf("more than %d jumps", steps)
		}
	}
}

func TestSuperUsersAreBetweenSemicolons(t *testing.T) {
	got, err := ParseSuperUsers(" User:CN=a,OU=b ; User:c;;")
	assert.True(t, err == nil && slices.Equal(got, []Principal{"User:CN=a,OU=b", "User:c"}), "%q, %v", got, err)
	if _, err := ParseSuperUsers("alice"); err == nil || !strings.Contains(err.Error(), "User:alice") {
		t.Errorf("%v", err)
	}
	if p := New(Policy{SuperUsers: got, AllowEveryone: true}).Policy(); !slices.Equal(p.SuperUsers, got) || !p.AllowEveryone {
		t.Errorf("%+v", p)
	}
}

func TestNothingIsAllocatedToAnswer(t *testing.T) {
	x := rules(t, Policy{SuperUsers: []Principal{"User:root"}, AllowEveryone: true},
		"allow alice read topic a", "allow alice read topic o* 10.0.0.1", "allow * read topic or*", "deny bob read topic *", "allow alice write topic *")
	questions := []Request{
		ask(t, "alice read topic orders 10.0.0.1"), ask(t, "alice write topic a"), ask(t, "bob read topic a"), ask(t, "root read topic a"), ask(t, "eve read group g"),
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, q := range questions {
			_ = x.Allows(q)
			_ = x.Decide(q)
			_ = x.AnyOf(q)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheSizeOfAnIndexIsThatOfItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New(Policy{})
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			edit := x.Edit()
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				r := genRule.Draw(t, "rule")
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					edit.Remove(r)
				case 1:
					edit.RemoveID(r.ID())
				default:
					edit.Add(r)
				}
			}
			x = edit.Index()
			size := 0
			for _, r := range x.Rules(Filter{Type: AnyResource, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission}) {
				size += len(r.Name) + len(r.Principal) + len(r.Host)
			}
			if x.Size() != size {
				t.Fatalf("counted %d bytes, there are %d", x.Size(), size)
			}
		}
	})
}
