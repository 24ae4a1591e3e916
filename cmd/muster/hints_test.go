package main

import (
	"strings"
	"testing"

	"muster/internal/assert"
)

func TestANameWithASlipIsToldWithTheOneThatIsMeant(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "payments").ok()
	s.pipe("x\n", "produce", "payments").ok()
	s.run("consume", "payments", "--group", "billing", "--commit", "-n", "1").ok()
	s.run("topics", "describe", "payment").fails(exitFailed, `there is no topic "payment"`, `did you mean "payments"?`)
	s.run("groups", "describe", "biling").fails(exitFailed, `there is no group "biling"`, `did you mean "billing"?`)
	if r := s.run("topics", "describe", "unrelated").fails(exitFailed, `there is no topic`); strings.Contains(r.err, "did you mean") {
		t.Errorf("a guess: %s", r.err)
	}
}

func TestADenialNamesTheRuleThatIsMissing(t *testing.T) {
	s := newSecureShell(t)
	s.pipe("first", "users", "create", "alice").ok()
	s.run("topics", "create", "orders").ok()
	pw := file(t, "pw", "first")
	as := func(stdin string, args ...string) *result {
		return s.pipe(stdin, append(args, "--user", "alice", "--password-file", pw)...)
	}
	as("x\n", "produce", "orders").fails(exitFailed, "muster acls add alice write topic orders")
	as("", "consume", "orders", "-n", "1").fails(exitFailed, "muster acls add alice read topic orders")
	as("", "quotas", "set", "user=bob", "producer_byte_rate=1").fails(exitFailed, "muster acls add alice alter-configs cluster")
	as("", "groups", "describe", "billing").fails(exitFailed, "muster acls add alice describe group billing")
	as("", "acls", "add", "alice", "read", "topic", "orders").fails(exitFailed, "muster acls add alice alter cluster")
	as("", "secret", "rotate").fails(exitFailed, "muster acls add alice alter cluster")
	as("", "brokers", "drain", "1").fails(exitFailed, "muster acls add alice alter-configs cluster")
}

func TestAnEmptyListSaysThatRulesHideWhatIsThere(t *testing.T) {
	s := newSecureShell(t)
	for what, line := range map[string]string{"topics": "muster acls add alice describe topic '*'", "groups": "muster acls add alice describe group '*'"} {
		assert.Contains(t, s.run(what, "list").err, "there are no "+what+" yet", "the admin is told")
		s.pipe("first", "users", "create", "alice")
		r := s.run(what, "list", "--user", "alice", "--password-file", file(t, "pw", "first"))
		if r.ok(); !strings.Contains(r.err, "there are no "+what+" that User:alice may see") || !strings.Contains(r.err, line) {
			t.Errorf("alice is told %q", r.err)
		}
	}
}

func TestAVariableWithASlipIsToldWithTheOneThatIsMeant(t *testing.T) {
	s := newShell(t)
	t.Setenv("MUSTER_BROKR", s.broker)
	t.Setenv("MUSTER_NUM_PARTITIONS", "3") // It is a broker's, and may be there for it.
	r := s.run("topics", "create", "orders")
	r.ok()
	same(t, "the warning", r.err, "warning: environment variable MUSTER_BROKR has no effect; did you mean MUSTER_BROKER?\n")
}

func TestAQuotaWithASlipIsToldWithTheOneThatIsMeant(t *testing.T) {
	s := newShell(t)
	s.run("quotas", "set", "user=ann", "producer_byte_rat=1").fails(exitFailed, "the quotas are producer_byte_rate, ", `did you mean "producer_byte_rate"?`)
	same(t, "stderr without any", s.run("quotas", "list").err, "there are no quotas yet; set one with: muster quotas set user=NAME producer_byte_rate=1MiB\n")
	same(t, "stderr without a match", s.run("quotas", "list", "user=ann").err, "there are no quotas of user=ann\n")
}

func TestRemovingAQuotaThatIsNotThereFails(t *testing.T) {
	s := newShell(t)
	s.run("quotas", "remove", "user=nobody").fails(exitFailed, "there are no quotas of user=nobody")
	s.run("quotas", "set", "user=ann", "producer_byte_rate=1MiB", "consumer_byte_rate=1MiB").ok()
	s.run("quotas", "remove", "user=ann", "request_percentage").fails(exitFailed, "user=ann has no quota request_percentage; it has consumer_byte_rate, producer_byte_rate")
	s.run("quotas", "remove", "user=ann", "producer_byte_rate").prints("removed producer_byte_rate of user=ann\n")
	s.run("quotas", "remove", "user=ann").prints("removed consumer_byte_rate of user=ann\n")
}
