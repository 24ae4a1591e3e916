package config

import (
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
)

func TestAListenerAndAMechanismOnItHaveSettingsOfTheirOwn(t *testing.T) {
	b := broker(t, map[string]string{
		"listeners":                 "INSIDE://:1,OUTSIDE://:2",
		"connections.max.reauth.ms": "1000",
		"listener.name.outside.connections.max.reauth.ms":               "2000",
		"listener.name.outside.scram-sha-256.connections.max.reauth.ms": "3000",
		"listener.name.inside.ssl.client.auth":                          "required",
	})
	for _, c := range []struct {
		listener, mechanism string
		want                time.Duration
	}{
		{"INSIDE", "", time.Second},
		{"INSIDE", "PLAIN", time.Second},
		{"OUTSIDE", "", 2 * time.Second},
		{"OUTSIDE", "PLAIN", 2 * time.Second},
		{"OUTSIDE", "SCRAM-SHA-256", 3 * time.Second},
	} {
		assert.Equal(t, b.Of(c.listener, c.mechanism).Duration("connections.max.reauth.ms"), c.want, "%s %s", c.listener, c.mechanism)
	}
	assert.Equal(t, b.Of("INSIDE", "").Get("ssl.client.auth"), "required", "inside: ssl.client.auth")
	assert.Equal(t, b.Of("OUTSIDE", "").Get("ssl.client.auth"), "none", "outside: ssl.client.auth")
}

func TestSettingsOfListenersAreChecked(t *testing.T) {
	for name, want := range map[string]string{
		"listener.name.other.ssl.client.auth":                 "no listener's name",
		"listener.name.PLAINTEXT.ssl.client.auth":             "no listener's name",
		"listener.name.plaintext.ssl.client.aut":              `did you mean "ssl.client.auth"`,
		"authorizer.class.name":                               "must be one of muster, ",
		"listener.name.plaintext.ssl.client.auth":             "must be one of none",
		"listener.name.plaintext.node.id":                     "cannot be set for that alone",
		"listener.name.plaintext.plain.ssl.client.auth":       "cannot be set for that alone",
		"listener.name.plaintext.digest-md5.sasl.jaas.config": "unknown",
	} {
		_, err := NewBroker(map[string]string{name: "x"})
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", name, err)
	}
}

func TestSettingsOfListenersWithoutEffectAreTold(t *testing.T) {
	name := "listener.name.plaintext.sasl.mechanism.inter.broker.protocol"
	b := broker(t, map[string]string{name: "PLAIN", "listener.name.plaintext.ssl.client.auth": "none"})
	assert.EqualSlices(t, b.Inert(), []string{name}, "without effect")
}

func TestSecretsAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{
		"muster.redis.url": true, "sasl.jaas.config": true, "muster.bootstrap.user": true, "node.id": false, "no.such.setting": false,
		"listener.name.a.sasl.jaas.config": true, "listener.name.a.plain.sasl.jaas.config": true, "listener.name.a.ssl.client.auth": false,
	} {
		if IsSecret(name) != want {
			t.Errorf("%s: secret is %v", name, !want)
		}
	}
}

func TestTheFirstUserHasANameAndAPassword(t *testing.T) {
	b := broker(t, map[string]string{"muster.bootstrap.user": "ann:a:b"})
	if name, password, ok := b.BootstrapUser(); name != "ann" || password != "a:b" || !ok {
		t.Errorf("%q, %q, %v", name, password, ok)
	}
	if _, _, ok := broker(t, nil).BootstrapUser(); ok {
		t.Error("there is one without the setting")
	}
	for _, value := range []string{"ann", "ann:", ":pw"} {
		_, err := NewBroker(map[string]string{"muster.bootstrap.user": value})
		assert.True(t, err != nil && !strings.Contains(err.Error(), value), "%s: %v", value, err)
	}
}
