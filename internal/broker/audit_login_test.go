package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/audit"
)

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
	if e.Principal != "User:ANONYMOUS" || e.Host != "127.0.0.1" || e.Broker != 1 || len(e.Resources) != 1 {
		t.Errorf("it tells %+v", e)
	}
	for _, e := range all {
		if e.Kind == audit.TopicCreated {
			t.Errorf("it tells of a change that did not happen: %+v", e)
		}
	}
}
