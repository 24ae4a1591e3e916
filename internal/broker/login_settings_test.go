package broker_test

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"testing"

	fplain "github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
	"muster/internal/broker"
)

func TestPlainTextBeyondThisMachineIsWarnedOf(t *testing.T) {
	for address, warned := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true} {
		var log lines
		start(t, map[string]string{"listeners": "SASL_PLAINTEXT://" + address, "muster.bootstrap.user": "ann:sesame"}, func(c *broker.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		assert.Equal(t, strings.Contains(log.String(), "log in over plain text"), warned, "%s: warned", address)
		if strings.Contains(log.String(), "sesame") {
			t.Errorf("a password is in the log: %s", log.String())
		}
	}
}

func TestListenersThatCannotBeWithTheirSettings(t *testing.T) {
	a := newAuthority(t)
	keystore, _ := a.files()
	for want, props := range map[string]map[string]string{
		"OAUTHBEARER needs":       {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER"},
		"must begin with":         {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "ftp://x"},
		"names none":              {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": ""},
		"sasl.jaas.config":        {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": "sesame"},
		"ssl.keystore.location":   {"listeners": "SASL_SSL://127.0.0.1:0"},
		"ssl.truststore.location": {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": keystore, "ssl.client.auth": "required"},
		"ssl.principal.mapping":   {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": keystore, "ssl.truststore.location": keystore, "ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:("},
		"${env:NO_SUCH_VARIABLE}": {"muster.bootstrap.user": "ann:${env:NO_SUCH_VARIABLE}"},
	} {
		wantNoStart(t, props, want)
	}
}

// KIP-684: with SASL_SSL a certificate is asked for only by the setting of the listener.
func TestACertificateBesidesALoginIsAskedForByTheListenersSetting(t *testing.T) {
	a := newAuthority(t)
	keystore, truststore := a.files()
	login := fplain.Auth{User: "ann", Pass: "anns"}.AsMechanism()
	for setting, asked := range map[string]bool{"ssl.client.auth": false, "listener.name.sasl_ssl.ssl.client.auth": true} {
		b := startSASL(t, map[string]string{"listeners": "SASL_SSL://127.0.0.1:0", "ssl.keystore.location": keystore, "ssl.truststore.location": truststore, setting: "required"})
		for name, c := range map[string]struct {
			secure *tls.Config
			ok     bool
		}{"none": {a.trusts(), !asked}, "one": {a.trusts(a.issue("x")), true}} {
			if err := try(t, b, login, c.secure); (err == nil) != c.ok {
				t.Errorf("%s, %s: %v", setting, name, err)
			}
		}
	}
}
