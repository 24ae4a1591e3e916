package auth

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

func TestWhyNamesTheRuleAndTheCommand(t *testing.T) {
	x := rules(t, Policy{SuperUsers: []Principal{"User:root"}},
		"allow alice write topic ord*", "deny * read topic orders 10.0.0.1", "allow alice all group *", "allow bob describe cluster kafka-cluster")
	for _, c := range []struct{ asked, sentence, fix string }{
		{"root read topic orders", "User:root may READ topic orders from 10.0.0.9: a super user may do everything.", ""},
		{"alice write topic orders", "User:alice may WRITE topic orders from 10.0.0.9: a rule says ALLOW User:alice WRITE on every topic that starts with ord from any host.", ""},
		{"alice describe topic orders", "User:alice may DESCRIBE topic orders from 10.0.0.9: a rule says ALLOW User:alice WRITE on every topic that starts with ord from any host, which includes DESCRIBE.", ""},
		{"alice read group g", "User:alice may READ group g from 10.0.0.9: a rule says ALLOW User:alice ALL on every group from any host.", ""},
		{"alice read topic orders 10.0.0.1", "User:alice may not READ topic orders from 10.0.0.1: a rule says DENY everyone READ on topic orders from 10.0.0.1.",
			"muster acls remove --deny --host 10.0.0.1 '*' read topic orders"},
		{"alice read topic orders", "User:alice may not READ topic orders from 10.0.0.9: topic orders has rules, and none allows this.", "muster acls add alice read topic orders"},
		{"eve write transactional-id t1", "User:eve may not WRITE transactional id t1 from 10.0.0.9: no rule is about transactional id t1, and allow.everyone.if.no.acl.found is false.",
			"muster acls add eve write transactional-id t1"},
		{"eve describe-configs cluster kafka-cluster", "User:eve may not DESCRIBE_CONFIGS the cluster from 10.0.0.9: the cluster has rules, and none allows this.",
			"muster acls add eve describe-configs cluster"},
	} {
		why := x.Why(ask(t, c.asked))
		assert.True(t, why.Sentence == c.sentence && why.Fix == c.fix, "%s:\n%s\n%s", c.asked, why.Sentence, why.Fix)
	}
	if why := New(Policy{AllowEveryone: true}).Why(ask(t, "eve read topic a")); why.Fix != "" || !strings.HasSuffix(why.Sentence, "and allow.everyone.if.no.acl.found is true.") {
		t.Errorf("%+v", why)
	}
}

func TestNamesFromClientsAreQuoted(t *testing.T) {
	x := New(Policy{})
	for _, c := range []struct{ user, name, sentence, fix string }{
		{"CN=a b,O=c", "my group", `"User:CN=a b,O=c" may not READ group "my group" from ::1`, `muster acls add 'CN=a b,O=c' read group 'my group'`},
		{"a", "x'; rm -rf", `group "x'; rm -rf"`, `muster acls add a read group 'x'\''; rm -rf'`},
		{"a", "x\nUser:a may READ", `group "x\nUser:a may READ" from`, `muster acls add a read group $'x\nUser:a may READ'`},
		{"a", "\x1b[2J'\"", `group "\x1b[2J'\"" from`, `muster acls add a read group $'\x1b[2J\'"'`},
		{"a", "-rf", `group -rf`, `muster acls add -- a read group -rf`},
		{"-a", "g", `User:-a may`, `muster acls add User:-a read group g`},
		{"a:b", "g", `User:a:b may`, `muster acls add User:a:b read group g`},
		{"a", "*", `group "*"`, `muster acls add --prefixed a read group '*'`},
		{"a", "", `group ""`, ""},
		{"a", "x\x00y", `group "x\x00y"`, ""},
		{"a", strings.Repeat("x", maxText+1), `xxx…" from`, ""},
	} {
		why := x.Why(Request{Principal: User(c.user), Host: "::1", Operation: Read, Type: Group, Name: c.name})
		if !strings.Contains(why.Sentence, c.sentence) || why.Fix != c.fix || len(why.Sentence) > 1000 {
			t.Errorf("%q:\n%s\n%s", c.name, why.Sentence, why.Fix)
		}
	}
}

// A shell gives the command the very name.
func TestAShellReadsBackWhatIsQuoted(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	names := []string{"a", "a b", "it's", "\n", "\t\x1b\x7f", `\`, `"$HOME" $(id) !x`, "\u202eé張", "a\u0085b", "*", "\x01'\\n"}
	var command strings.Builder
	for _, name := range names {
		command.WriteString(" " + quote(name))
	}
	out, err := exec.Command(bash, "-c", `LC_ALL=C.UTF-8; printf '%s\0'`+command.String()).Output()
	assert.Must(t, err)
	assert.Equal(t, string(out), strings.Join(names, "\x00")+"\x00")
}

// The command that is offered helps, at the latest when each denial is removed.
func TestTheFixAllowsWhatWasDenied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edit := New(Policy{}).Edit()
		for _, r := range rapid.SliceOfN(genRule, 0, 15).Draw(t, "rules") {
			edit.Add(r)
		}
		x, q := edit.Index(), genRequest.Draw(t, "request")
		for range 20 {
			why := x.Why(q)
			if why.Allowed {
				return
			}
			edit := x.Edit()
			if why.Reason == ByRule {
				assert.MustTrue(t, x.Has(why.Rule) && why.Fix == why.Rule.Command("remove"), "%+v", why)
				edit.Remove(why.Rule)
			} else {
				r := Rule{Type: q.Type, Pattern: Literal, Name: q.Name, Principal: q.Principal, Host: "*", Operation: q.Operation, Permission: Allow}
				if q.Name == "*" {
					r.Pattern = Prefixed
				}
				assert.MustEqual(t, why.Fix, r.Command("add"), "%+v", why)
				edit.Add(r)
			}
			x = edit.Index()
		}
		t.Fatalf("still denied: %+v", x.Why(q))
	})
}
