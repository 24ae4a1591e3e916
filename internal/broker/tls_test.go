package broker_test

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/gate"
)

// stores are key stores and trust stores as keytool and openssl write them.
var stores = filepath.Join("..", "keystore", "testdata")

// shown connects and returns what TLS came to be.
func shown(t *testing.T, b *broker.Broker, cfg *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	w := connect(t, b)
	cfg = cfg.Clone()
	cfg.ServerName = "localhost"
	c := tls.Client(w, cfg)
	err := c.HandshakeContext(t.Context())
	return c.ConnectionState(), err
}

func TestKeyStoresOfEveryKindServe(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"server.p12":  {"ssl.keystore.type": "PKCS12", "ssl.keystore.password": "storepass"},
		"server.jks":  {"ssl.keystore.type": "JKS", "ssl.keystore.password": "storepass", "ssl.key.password": "keypass"},
		"aes256.pem":  {"ssl.key.password": "keypass"},
		"openssl.p12": {"listener.name.ssl.ssl.keystore.password": "storepass", "ssl.keystore.password": "another"},
	} {
		settings["listeners"], settings["ssl.keystore.location"] = "SSL://127.0.0.1:0", filepath.Join(stores, name)
		b := start(t, settings)
		state, err := shown(t, b, &tls.Config{InsecureSkipVerify: true}) // #nosec G402 -- its name is looked at.
		assert.True(t, err == nil && state.PeerCertificates[0].Subject.CommonName == "server", "%s: %v", name, err)
	}
}

func TestTrustStoresOfEveryKindKnowClients(t *testing.T) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(stores, "plain.pem"), filepath.Join(stores, "plain.pem"))
	must(t, err)
	stranger := newAuthority(t).issue("server")
	for _, name := range []string{"trust.p12", "trust.jks", "server.cert.pem"} {
		b := start(t, map[string]string{
			"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": filepath.Join(stores, "plain.pem"), "ssl.client.auth": "required",
			"ssl.truststore.location": filepath.Join(stores, name), "ssl.truststore.password": "storepass",
		})
		roots := x509.NewCertPool()
		roots.AddCert(pair.Leaf)
		assert.NoError(t, try(t, b, nil, &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{pair}}), "%s", name)
		if err := try(t, b, nil, &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{stranger}}); err == nil {
			t.Errorf("%s: a stranger comes in", name)
		}
	}
}

func TestListenersSpeakOnlyTheVersionsAndSuitesOfTheirSettings(t *testing.T) {
	a := newAuthority(t)
	key, _ := a.files()
	const suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	for _, c := range []struct {
		settings     map[string]string
		older, newer bool
		suite        uint16
	}{
		{nil, true, true, 0},
		{map[string]string{"ssl.enabled.protocols": "TLSv1.3"}, false, true, 0},
		{map[string]string{"ssl.enabled.protocols": "TLSv1.2"}, true, false, 0},
		{map[string]string{"ssl.protocol": "TLSv1.2"}, true, false, 0},
		{map[string]string{"ssl.enabled.protocols": "TLSv1.2", "listener.name.ssl.ssl.enabled.protocols": "TLSv1.3"}, false, true, 0},
		{map[string]string{"ssl.cipher.suites": suite}, true, false, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
	} {
		all := map[string]string{"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": key}
		maps.Copy(all, c.settings)
		b := start(t, all)
		for version, served := range map[uint16]bool{tls.VersionTLS12: c.older, tls.VersionTLS13: c.newer, tls.VersionTLS11: false} {
			cfg := a.trusts()
			cfg.MinVersion, cfg.MaxVersion = version, version
			state, err := shown(t, b, cfg)
			if (err == nil) != served {
				t.Errorf("%v: %s: %v", c.settings, tls.VersionName(version), err)
			}
			if served && c.suite != 0 && state.CipherSuite != c.suite {
				t.Errorf("%v: %s", c.settings, tls.CipherSuiteName(state.CipherSuite))
			}
		}
	}
	for want, settings := range map[string]map[string]string{
		"TLSv1.1 is not supported":              {"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
		"SSLv3 is not supported":                {"ssl.protocol": "SSLv3"},
		"NO_SUCH_SUITE is not supported":        {"ssl.cipher.suites": "NO_SUCH_SUITE"},
		"is its password right?":                {"ssl.keystore.location": filepath.Join(stores, "server.p12"), "ssl.keystore.password": "sesame"},
		"ssl.key.password is not set":           {"ssl.keystore.location": filepath.Join(stores, "aes256.pem")},
		"muster.ssl.crl.location":               {"ssl.client.auth": "required", "ssl.truststore.location": key, "muster.ssl.crl.location": key},
		"muster.ssl.crl.location: stat no-such": {"ssl.client.auth": "required", "ssl.truststore.location": key, "muster.ssl.crl.location": "no-such"},
	} {
		all := map[string]string{"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": key}
		maps.Copy(all, settings)
		wantNoStart(t, all, want)
	}
}

func TestARevokedCertificateComesInNoMore(t *testing.T) {
	a := newAuthority(t)
	key, trust := a.files()
	ann, bob := a.issue("ann"), a.issue("bob")
	name := filepath.Join(t.TempDir(), "crl.pem")
	revoke := func(certificates ...tls.Certificate) {
		t.Helper()
		list, err := a.Revoke(certificates...)
		if err == nil {
			err = os.WriteFile(name, list, 0o600)
		}
		must(t, err)
	}
	revoke()
	b := start(t, map[string]string{
		"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": key, "ssl.truststore.location": trust, "ssl.client.auth": "requested",
		"listener.name.ssl.muster.ssl.crl.location": name,
	})
	attempts := b.Attempts()
	comesIn := func(c tls.Certificate) bool { return try(t, b, nil, a.trusts(c)) == nil }
	assert.MustTrue(t, comesIn(ann) && comesIn(bob), "nothing is revoked")
	revoke(ann)
	var told gate.Attempt
	for end := time.Now().Add(60 * time.Second); comesIn(ann); {
		for len(attempts) > 0 {
			<-attempts
		}
		assert.MustFalse(t, time.Now().After(end), "the list is not read again")
	}
	for told.Err == nil {
		told = <-attempts
	}
	assert.True(t, told.Mechanism == "TLS" && strings.Contains(told.Err.Error(), "revoked"), "%+v", told)
	assert.True(t, comesIn(bob), "bob is revoked too")
	assert.NoError(t, try(t, b, nil, a.trusts()), "who shows none, where that is allowed")
}
