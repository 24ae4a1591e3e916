package broker_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	fsasl "github.com/twmb/franz-go/pkg/sasl"
	foauth "github.com/twmb/franz-go/pkg/sasl/oauth"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/logintest"
)

// tokens issues tokens, whose keys are in a file.
type tokens struct {
	t *testing.T
	*logintest.Issuer
	url string
}

func newTokens(t *testing.T) *tokens {
	t.Helper()
	i, err := logintest.NewIssuer()
	must(t, err)
	name := filepath.Join(t.TempDir(), "keys.json")
	must(t, os.WriteFile(name, i.KeySet, 0o600))
	return &tokens{t, i, "file://" + name}
}

func (k *tokens) issue(subject, audience string, lasts time.Duration) string {
	k.t.Helper()
	token, err := k.Token(logintest.ClaimsOf(subject, audience, time.Now().Add(lasts)))
	must(k.t, err)
	return token
}

func (k *tokens) login(token string) fsasl.Mechanism { return foauth.Auth{Token: token}.AsMechanism() }

// try sends a request as a client that logs in, and returns the error.
func try(t *testing.T, b *broker.Broker, login fsasl.Mechanism, secure *tls.Config) error {
	t.Helper()
	opts := []kgo.Opt{kgo.RequestRetries(0), kgo.RetryTimeout(time.Nanosecond)}
	if login != nil {
		opts = append(opts, kgo.SASL(login))
	}
	if secure != nil {
		opts = append(opts, kgo.DialTLSConfig(secure))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c := client(t, b, opts...)
	defer c.Close()
	_, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, c)
	return err
}

func TestClientsLogInByEachMechanismOverPlainTextAndTLS(t *testing.T) {
	issuer, a := newTokens(t), newAuthority(t)
	keystore, _ := a.files()
	scram := fscram.Auth{User: "ann", Pass: "anns"}
	wrong := fscram.Auth{User: "ann", Pass: "jims"}
	good := map[string]fsasl.Mechanism{
		"PLAIN, a user of the cluster":  fplain.Auth{User: "ann", Pass: "anns"}.AsMechanism(),
		"PLAIN, a user of the settings": fplain.Auth{User: "jim", Pass: "jims"}.AsMechanism(),
		"SCRAM-SHA-256":                 scram.AsSha256Mechanism(),
		"SCRAM-SHA-512":                 scram.AsSha512Mechanism(),
		"OAUTHBEARER":                   issuer.login(issuer.issue("ann", "kafka", time.Hour)),
	}
	bad := map[string]fsasl.Mechanism{
		"PLAIN":                          fplain.Auth{User: "ann", Pass: "jims"}.AsMechanism(),
		"SCRAM-SHA-256":                  wrong.AsSha256Mechanism(),
		"SCRAM-SHA-512":                  wrong.AsSha512Mechanism(),
		"SCRAM, a user of the settings":  fscram.Auth{User: "jim", Pass: "jims"}.AsSha256Mechanism(),
		"OAUTHBEARER, another audience":  issuer.login(issuer.issue("ann", "web", time.Hour)),
		"OAUTHBEARER, of another issuer": newTokens(t).login(newTokens(t).issue("ann", "kafka", time.Hour)),
	}
	for _, protocol := range []string{"SASL_PLAINTEXT", "SASL_SSL"} {
		b := startSASL(t, map[string]string{
			"listeners": "IN://127.0.0.1:0", "listener.security.protocol.map": "IN:" + protocol, "ssl.keystore.location": keystore,
			"sasl.enabled.mechanisms":                 "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
			"sasl.oauthbearer.jwks.endpoint.url":      issuer.url,
			"sasl.oauthbearer.expected.audience":      "kafka",
			"listener.name.in.plain.sasl.jaas.config": `a.PlainLoginModule required user_jim="jims";`,
		})
		var secure *tls.Config
		if protocol == "SASL_SSL" {
			secure = a.trusts()
		}
		for name, login := range good {
			assert.NoError(t, try(t, b, login, secure), "%s, %s", protocol, name)
		}
		for name, login := range bad {
			// franz-go gives up a token at the reason, and does not wait for the code.
			err := try(t, b, login, secure)
			assert.True(t, err != nil && (login.Name() == "OAUTHBEARER" || errors.Is(err, kerr.SaslAuthenticationFailed)), "%s, %s: %v", protocol, name, err)
		}
		assert.Error(t, try(t, b, nil, secure), "%s: a client that does not log in is served", protocol)
	}
}

func TestAChangedPasswordCountsForTheNextLogin(t *testing.T) {
	b := startSASL(t, nil)
	old := fplain.Auth{User: "ann", Pass: "anns"}.AsMechanism()
	c := client(t, b, kgo.SASL(old))
	produce(t, c, "orders", 0, 10)
	for _, h := range []sasl.Hash{sasl.SHA256, sasl.SHA512} {
		must(t, b.SetPassword(t.Context(), "ann", "another", h))
	}
	produce(t, c, "orders", 10, 10) // Sessions go on, as in Kafka.
	assert.ErrorIs(t, try(t, b, old, nil), kerr.SaslAuthenticationFailed, "the old password")
	for _, login := range []fsasl.Mechanism{fplain.Auth{User: "ann", Pass: "another"}.AsMechanism(), fscram.Auth{User: "ann", Pass: "another"}.AsSha512Mechanism()} {
		if err := try(t, b, login, nil); err != nil {
			t.Errorf("the new password, %s: %v", login.Name(), err)
		}
	}
}

func TestTheFirstUserIsMadeOnceAndMayDoEverything(t *testing.T) {
	t.Setenv("MUSTER_TEST_PW", "sesame:open")
	props := map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "muster.store": "disk", "log.dir": t.TempDir(), "muster.bootstrap.user": "root:${env:MUSTER_TEST_PW}",
	}
	login := fscram.Auth{User: "root", Pass: "sesame:open"}
	for range 2 { // The second time there is a user.
		b := start(t, props)
		for _, m := range []fsasl.Mechanism{login.AsSha256Mechanism(), login.AsSha512Mechanism()} {
			if err := try(t, b, m, nil); err != nil {
				t.Errorf("%s: %v", m.Name(), err)
			}
		}
		if !b.Image().Rules.IsSuper("User:root", "") || b.Image().Users.Len() != 1 {
			t.Errorf("super: %v; %v", b.Image().Rules.IsSuper("User:root", ""), b.Image().Users)
		}
		must(t, b.Close())
		t.Setenv("MUSTER_TEST_PW", "changed")
	}
}

func TestACertificateSaysWhoAClientIs(t *testing.T) {
	a, foreign := newAuthority(t), newAuthority(t)
	keystore, truststore := a.files()
	for _, wanted := range []string{"required", "requested"} {
		b := start(t, map[string]string{
			"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": keystore, "ssl.truststore.location": truststore,
			"listener.name.ssl.ssl.client.auth": wanted, "ssl.principal.mapping.rules": "RULE:^CN=(good|odd).*$/$1/",
		})
		for name, c := range map[string]struct {
			secure *tls.Config
			ok     bool
		}{
			"one of ours":         {a.trusts(a.issue("good")), true},
			"one without a name":  {a.trusts(a.issue("bad")), false}, // No rule makes a user of it.
			"one of another hand": {a.trusts(foreign.issue("good")), false},
			"none":                {a.trusts(), wanted == "requested"},
		} {
			if err := try(t, b, nil, c.secure); (err == nil) != c.ok {
				t.Errorf("%s, %s: %v", wanted, name, err)
			}
		}
	}
}

func TestRulesMakeUsersOfTheNamesInTokens(t *testing.T) {
	issuer := newTokens(t)
	b := start(t, map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER", "connection.failed.authentication.delay.ms": "0", "muster.http.listener": "127.0.0.1:0",
		"sasl.oauthbearer.jwks.endpoint.url": issuer.url, "sasl.oauthbearer.expected.audience": "kafka",
		"listener.name.sasl_plaintext.oauthbearer.muster.oauthbearer.principal.mapping.rules": `RULE:^([^@]+)@example\.org$/$1/L`,
	})
	attempts := b.Attempts()
	for subject, want := range map[string]string{"Ann@example.org": "ann", "ann@example.com": "", "ann": ""} {
		token := issuer.issue(subject, "kafka", time.Hour)
		err := try(t, b, issuer.login(token), nil)
		assert.Equal(t, err == nil, want != "", "%s: %v", subject, err)
		if want != "" {
			a := <-attempts
			for a.Err != nil { // Those of others before it.
				a = <-attempts
			}
			assert.Equal(t, a.Principal, auth.User(want), "%s", subject)
		}
		code, _ := people(t, b, nil, http.MethodGet, "/groups", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
		assert.Equal(t, code == http.StatusOK, want != "", "%s over HTTP: %d", subject, code)
	}
	wantNoStart(t, map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER",
		"sasl.oauthbearer.jwks.endpoint.url": issuer.url, "muster.oauthbearer.principal.mapping.rules": "RULE:(/x/",
	}, "muster.oauthbearer.principal.mapping.rules")
}
