package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/security"
	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/redistest"
)

// newSecureShell starts a broker that wants a login and goes by rules. Commands log in as
// admin, who may do everything.
func newSecureShell(t *testing.T) *shell {
	t.Helper()
	s := newShell(t, "listeners", "SASL_PLAINTEXT://127.0.0.1:0", "muster.bootstrap.user", "admin:top secret", "authorizer.class.name", "muster",
		"sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "connection.failed.authentication.delay.ms", "0")
	t.Setenv(cli.UserEnv, "admin")
	t.Setenv(cli.PasswordFileEnv, file(t, "admin.pw", "top secret\n"))
	return s
}

// file writes a file for one test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestUsersAreMadeAndCanLogIn(t *testing.T) {
	s := newSecureShell(t)
	s.pipe("first\nrest", "users", "create", "alice").prints("created user alice\n")
	s.pipe("x", "users", "create", "alice").fails(exitFailed, `user "alice" exists`, "set-password")
	s.run("users", "list", "alice").prints("USER   MECHANISM      ITERATIONS\nalice  SCRAM-SHA-256        4096\nalice  SCRAM-SHA-512        4096\n")
	as := func(password string, more ...string) *result {
		args := append([]string{"topics", "list", "--user", "alice", "--password-file", file(t, "pw", password)}, more...)
		return s.run(args...)
	}
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "scram-sha-512"} {
		as("first", "--sasl-mechanism", mechanism).ok()
		as("second", "--sasl-mechanism", mechanism).fails(exitFailed, "refuses the login")
	}
	t.Setenv("ALICE_PW", "second")
	s.run("users", "set-password", "alice", "--new-password", "${env:ALICE_PW}", "--iterations", "5000").prints("set the password of user alice\n")
	as("second").ok()
	as("first").fails(exitFailed, "refuses the login")
	users := decode[[]security.StoredUser](s.run("users", "list", "--json"))
	if len(users) != 2 || users[0].Name != "admin" || users[1].Mechanisms[0].Iterations != 5000 || len(users[1].Mechanisms) != 2 {
		t.Errorf("the users are %+v", users)
	}
	s.run("users", "create", "bob", "--new-password-file", file(t, "bob", "third"), "--mechanism", "SCRAM-SHA-512").ok()
	same(t, "bob", len(decode[[]security.StoredUser](s.run("users", "list", "bob", "--json"))[0].Mechanisms), 1)
	s.pipe("fourth", "users", "set-password", "alice", "--mechanism", "SCRAM-SHA-512").ok()
	as("fourth", "--sasl-mechanism", "SCRAM-SHA-512").ok()
	as("second", "--sasl-mechanism", "SCRAM-SHA-512").fails(exitFailed, "refuses the login")
	as("second", "--sasl-mechanism", "SCRAM-SHA-256").ok()
	s.pipe("third", "users", "set-password", "bob", "--mechanism", "SCRAM-SHA-256,SCRAM-SHA-512").ok()
	same(t, "bob", len(decode[[]security.StoredUser](s.run("users", "list", "bob", "--json"))[0].Mechanisms), 2)
	s.pipe("x", "users", "set-password", "bob", "--mechanism", "PLAIN").fails(exitUsage, "--mechanism is SCRAM-SHA-256 or SCRAM-SHA-512")
	s.run("users", "set-password", "nobody", "--new-password", "${env:ALICE_PW}").fails(exitFailed, `there is no user "nobody"`)
	r := s.run("users", "delete", "alice", "bob", "nobody", "--yes").fails(exitFailed, `there is no user "nobody"`)
	same(t, "what delete prints", r.stdout, "deleted user alice\ndeleted user bob\n")
	as("second").fails(exitFailed, "refuses the login")
	s.run("users", "list", "alice").fails(exitFailed, `there is no user "alice"`)
}

func TestRulesAreAddedListedExplainedAndRemoved(t *testing.T) {
	s := newSecureShell(t)
	s.pipe("pw", "users", "create", "alice").ok()
	alice := []string{"--user", "alice", "--password-file", file(t, "pw", "pw")}
	create := func() *result { return s.run(append([]string{"topics", "create", "app.orders"}, alice...)...) }
	create().fails(exitFailed, "TOPIC_AUTHORIZATION_FAILED")

	denied := decode[security.WhyResult](s.run("acls", "why", "alice", "create", "topic", "app.orders", "--json"))
	if denied.Allowed || denied.Rule != nil || denied.Fix == nil || *denied.Fix != "muster acls add alice create topic app.orders" {
		t.Errorf("why says %+v", denied)
	}
	s.run("acls", "add", "alice", "all", "topic", "app.", "--prefixed").prints("added: ALLOW User:alice ALL on every topic that starts with app. from any host\n")
	create().ok()
	out := s.run("acls", "why", "alice", "create", "topic", "app.orders").ok()
	says(t, out, "User:alice may CREATE topic app.orders from any host: a rule says ALLOW User:alice ALL on every topic that starts with app.")

	// The command that why prints is one that can be run.
	s.run("acls", "add", "--deny", "--host", "127.0.0.1", "alice", "write,read", "topic", "app.orders").ok()
	stopped := decode[security.WhyResult](s.run("acls", "why", "alice", "read", "topic", "app.orders", "--host", "127.0.0.1", "--json"))
	assert.MustTrue(t, !stopped.Allowed && stopped.Rule != nil && stopped.Rule.Permission == auth.Deny && stopped.Fix != nil, "why says %+v", stopped)
	s.run(strings.Fields(*stopped.Fix)[1:]...).ok()
	if again := decode[security.WhyResult](s.run("acls", "why", "alice", "read", "topic", "app.orders", "--host", "127.0.0.1", "--json")); !again.Allowed {
		t.Errorf("after %s: %+v", *stopped.Fix, again)
	}
	s.run(strings.Fields(*stopped.Fix)[1:]...).fails(exitFailed, "there is no rule that says DENY")

	rules := decode[[]auth.Rule](s.run("acls", "list", "topic", "app.orders", "--for", "alice", "--json"))
	assert.Equal(t, len(rules), 2, "the rules about app.orders are %v", rules)
	says(t, s.run("acls", "list").ok(), "TYPE   NAME        PATTERN   USER        OPERATION  PERMISSION  HOST\n", "topic  app.        prefixed  User:alice  all        allow       *\n")
	s.run("acls", "list", "group", "--json").prints("[]\n")
	says(t, s.run("acls", "why", "admin", "alter", "cluster").ok(), "User:admin may ALTER the cluster from any host: a super user may do everything.")
	s.run(append([]string{"acls", "list"}, alice...)...).fails(exitFailed, "CLUSTER_AUTHORIZATION_FAILED")
}

func TestWithoutRulesTheSettingIsNamed(t *testing.T) {
	s := newShell(t)
	for _, line := range []string{"acls list", "acls add alice read topic a", "acls remove alice read topic a"} {
		s.run(strings.Fields(line)...).fails(exitFailed, "authorizer.class.name=muster", "SECURITY_DISABLED")
	}
	answer := decode[security.WhyResult](s.run("acls", "why", "alice", "read", "topic", "a", "--json"))
	assert.True(t, answer.Allowed && strings.Contains(answer.Text, "authorizer.class.name is not set"), "why says %+v", answer)
}

func TestQuotasAreSetListedAndRemoved(t *testing.T) {
	s := newShell(t)
	same(t, "stdout of an empty list", s.run("quotas", "list").ok(), "")
	s.run("quotas", "set", "user=alice", "producer_byte_rate=10MiB", "consumer_byte_rate=5").prints("set producer_byte_rate, consumer_byte_rate for user=alice\n")
	s.run("quotas", "set", "user=alice", "client-id=app", "producer_byte_rate=1KiB").ok()
	s.run("quotas", "set", "client-id", "consumer_byte_rate=2").ok()
	s.run("quotas", "list").prints(`FOR                       QUOTA                  VALUE
client-id                 consumer_byte_rate         2
user=alice                consumer_byte_rate         5
user=alice                producer_byte_rate  10485760
user=alice client-id=app  producer_byte_rate      1024
`)
	list := decode[[]security.QuotaState](s.run("quotas", "list", "client-id", "--json"))
	assert.True(t, len(list) == 1 && list[0].Entity["client-id"] == nil && list[0].Values["consumer_byte_rate"] == 2, "the default of clients is %+v", list)
	s.run("quotas", "remove", "user=alice", "consumer_byte_rate").ok()
	s.run("quotas", "remove", "client-id").ok()
	s.run("quotas", "list").prints(`FOR                       QUOTA                  VALUE
user=alice                producer_byte_rate  10485760
user=alice client-id=app  producer_byte_rate      1024
`)
	s.run("quotas", "set", "user=alice", "nonsense=1").fails(exitFailed, "nonsense")
}

func TestAuditTellsWhoDidWhat(t *testing.T) {
	s := newSecureShell(t)
	s.pipe("pw", "users", "create", "alice").ok()
	s.run("topics", "create", "orders").ok()
	s.run("acls", "add", "alice", "read", "topic", "orders").ok()
	s.run("topics", "delete", "orders", "--yes", "--user", "alice", "--password-file", file(t, "pw", "pw")).fails(exitFailed, "AUTHORIZATION")
	var out string
	eventually(t, func() error {
		r := s.run("audit", "--by", "alice", "--kind", "denied")
		if out = r.ok(); out == "" {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	says(t, out, "User:alice at 127.0.0.1 was denied DELETE on topic orders")
	all := s.run("audit").ok()
	says(t, all, "User:admin at 127.0.0.1 (muster) created topic orders", "set the password of user alice (SCRAM-SHA-256)",
		"added a rule for topic orders (ALLOW User:alice READ on topic orders from any host)", "User:alice at 127.0.0.1 logged in by SCRAM-SHA-256")
	assert.False(t, strings.Contains(all, "top secret"), "the audit log has a password")
	lines := strings.Split(strings.TrimSpace(s.run("audit", "--json", "--resource", "orders", "--kind", "topic-created,acl-added").ok()), "\n")
	var first audit.Entry
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 || first.Kind != audit.TopicCreated {
		t.Errorf("%v: %q", err, lines)
	}
	r := s.run("audit", "--limit", "1")
	same(t, "entries with a limit of 1", strings.Count(r.ok(), "\n"), 1)
	says(t, r.err, "left out")
	same(t, "nobody's entries", s.run("audit", "--by", "nobody").ok(), "")
}

func TestAuditFollows(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "first").ok()
	eventually(t, func() error {
		if s.run("audit").ok() == "" {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, written := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, s.args([]string{"audit", "--follow"}), strings.NewReader(""), written, io.Discard)
		_ = written.Close()
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	says(t, lines.Text(), "created topic first")
	s.run("topics", "create", "second").ok()
	lines.Scan()
	says(t, lines.Text(), "created topic second")
	cancel()
	same(t, "the exit code", <-ended, exitInterrupted)
}

func TestWithoutAnAuditLogThatIsSaid(t *testing.T) {
	r := newShell(t).run("audit")
	same(t, "stdout", r.ok(), "")
	says(t, r.err, "the broker has no audit log")
}

func TestTheSecretOfTheClusterIsRotated(t *testing.T) {
	redis := redistest.Single(t)
	s := newShell(t, "muster.store", "redis", "muster.redis.url", redis.URL(), "listeners", "SASL_PLAINTEXT://127.0.0.1:0",
		"muster.bootstrap.user", "admin:top secret", "authorizer.class.name", "muster", "connection.failed.authentication.delay.ms", "0")
	t.Setenv(cli.UserEnv, "admin")
	t.Setenv(cli.PasswordFileEnv, file(t, "admin.pw", "top secret\n"))
	says(t, s.run("secret", "rotate", "--help").ok(), "muster secret rotate", "10m", "ALTER on the cluster")
	s.run("users", "create", "alice", "--new-password-file", file(t, "alice.pw", "alices")).ok()
	s.run("secret", "rotate", "--user", "alice", "--password-file", file(t, "alice.pw", "alices")).fails(exitFailed, "CLUSTER_AUTHORIZATION_FAILED")
	r := decode[security.Rotation](s.run("secret", "rotate", "--json"))
	assert.True(t, !r.UsedFrom.Before(time.Now()) && r.OldAcceptedUpTo.After(r.UsedFrom), "%+v", r)
	s.run("secret", "rotate").fails(exitFailed, "it can be rotated again from")
	says(t, s.run("audit", "--kind", "secret-rotated").ok(), "User:admin", "rotated the secret of cluster kafka-cluster by AlterUserSCRAMCredentials")
}

func TestABrokerAloneHasNoSecretToRotate(t *testing.T) {
	newShell(t).run("secret", "rotate").fails(exitFailed, "does not share its store")
}
