package main

import (
	"strings"
	"testing"
	"time"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/security"
	"muster/internal/redistest"
)

func TestTheSecretOfTheClusterIsRotated(t *testing.T) {
	redis := redistest.Single(t)
	s := newShell(t, "muster.store", "redis", "muster.redis.url", redis.URL(), "listeners", "SASL_PLAINTEXT://127.0.0.1:0",
		"muster.bootstrap.user", "admin:top secret", "authorizer.class.name", "muster", "connection.failed.authentication.delay.ms", "0")
	t.Setenv(cli.UserEnv, "admin")
	t.Setenv(cli.PasswordFileEnv, file(t, "admin.pw", "top secret\n"))
	wantIn(t, s.run("secret", "rotate", "--help").ok(), "muster secret rotate", "10m", "ALTER on the cluster")
	s.run("users", "create", "alice", "--new-password-file", file(t, "alice.pw", "alices")).ok()
	s.run("secret", "rotate", "--user", "alice", "--password-file", file(t, "alice.pw", "alices")).fails(exitFailed, "CLUSTER_AUTHORIZATION_FAILED")
	r := decode[security.Rotation](s.run("secret", "rotate", "--json"))
	if r.UsedFrom.Before(time.Now()) || !r.OldAcceptedUpTo.After(r.UsedFrom) {
		t.Errorf("%+v", r)
	}
	s.run("secret", "rotate").fails(exitFailed, "it can be rotated again from")
	wantIn(t, s.run("audit", "--kind", "secret-rotated").ok(), "User:admin", "rotated the secret of cluster kafka-cluster by AlterUserSCRAMCredentials")
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}

func TestABrokerAloneHasNoSecretToRotate(t *testing.T) {
	newShell(t).run("secret", "rotate").fails(exitFailed, "does not share its store")
}
