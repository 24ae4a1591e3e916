package keystore

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestKeysAreReadFromStoresOfEveryKind(t *testing.T) {
	for name, p := range map[string]Passwords{
		"plain.pem": {}, "aes256.pem": {Key: "keypass"}, "aes128.pem": {Key: "keypass"}, "des3.pem": {Key: "keypass"}, "sha1.pem": {Store: "keypass"},
		"server.p12": {Store: "storepass"}, "openssl.p12": {Store: "storepass", Key: "storepass"}, "legacy.p12": {Store: "storepass"},
		"server.jks": {Store: "storepass", Key: "keypass"},
	} {
		cert, err := Certificate(read(t, name), p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(cert.Certificate) != 1 || cert.Leaf.Subject.CommonName != "server" {
			t.Errorf("%s: %d certificates, of %s", name, len(cert.Certificate), cert.Leaf.Subject)
		}
	}
}

func TestStoresThatCannotBeReadSayWhy(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Passwords
		want string
	}{
		{"aes256.pem", Passwords{}, "ssl.key.password is not set"},
		{"aes256.pem", Passwords{Key: "wrong"}, "is ssl.key.password right?"},
		{"des3.pem", Passwords{Key: "storepass"}, "is ssl.key.password right?"},
		{"scrypt.pem", Passwords{Key: "keypass"}, "not supported; openssl pkcs8 -topk8"},
		{"server.p12", Passwords{Store: "wrong"}, "is its password right?"},
		{"server.p12", Passwords{}, "is its password right?"},
		{"server.p12", Passwords{Store: "storepass", Key: "other"}, "that of the store"},
		{"server.jks", Passwords{Store: "wrong", Key: "keypass"}, "is its password right?"},
		{"server.jks", Passwords{Store: "storepass", Key: "wrong"}, "is its password right?"},
		{"server.jks", Passwords{Store: "storepass"}, "is its password right?"},
		{"trust.jks", Passwords{Store: "storepass"}, "no private key"},
		{"server.cert.pem", Passwords{}, "private key"},
	} {
		if _, err := Certificate(read(t, c.name), c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %+v: %v", c.name, c.p, err)
		}
	}
	if _, err := Certificate([]byte{0xce, 0xce, 0xce, 0xce, 0}, Passwords{}); err == nil || !strings.Contains(err.Error(), "JCEKS") {
		t.Error(err)
	}
}

func TestTrustedCertificatesAreReadFromStoresOfEveryKind(t *testing.T) {
	want, err := Certificates(read(t, "server.cert.pem"), Passwords{})
	if err != nil || len(want) != 1 {
		t.Fatal(want, err)
	}
	for _, name := range []string{"trust.p12", "trust.jks", "server.p12", "plain.pem", "openssl.p12"} {
		got, err := Certificates(read(t, name), Passwords{Store: "storepass"})
		if err != nil || len(got) != 1 || !bytes.Equal(got[0].Raw, want[0].Raw) {
			t.Errorf("%s: %d certificates, %v", name, len(got), err)
		}
	}
	if got, err := Certificates(read(t, "server.jks"), Passwords{Store: "storepass"}); err != nil || len(got) != 1 {
		t.Errorf("the certificates of keys: %d, %v", len(got), err)
	}
	for _, name := range []string{"trust.p12", "trust.jks"} {
		if _, err := Certificates(read(t, name), Passwords{Store: "wrong"}); err == nil || !strings.Contains(err.Error(), "is its password right?") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for what, content := range map[string]string{"nothing": "", "text": "no certificate", "a zero": "0 s:CN=x\n"} {
		if got, err := Certificates([]byte(content), Passwords{}); err == nil {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestTruncatedAndChangedStoresAreErrors(t *testing.T) {
	p := Passwords{Store: "storepass", Key: "keypass"}
	for _, name := range []string{"server.jks", "server.p12", "aes256.pem"} {
		content := read(t, name)
		if name != "server.jks" {
			p.Key = map[string]string{"server.p12": "storepass", "aes256.pem": "keypass"}[name]
		}
		for i := 0; i < len(content); i += 29 {
			_, _ = Certificate(content[:i], p) // No panic.
		}
		if _, err := Certificate(content[:len(content)/2], p); err == nil {
			t.Errorf("half of %s is a store", name)
		}
	}
}

func FuzzStores(f *testing.F) {
	for _, name := range []string{"server.jks", "trust.jks", "aes256.pem", "plain.pem"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(_ *testing.T, content []byte) {
		_, _ = ParseRevoked(content)
		if isDER(content) {
			return // PKCS#12 says itself how much work its password takes.
		}
		p := Passwords{Store: "storepass", Key: "keypass"}
		_, _ = Certificate(content, p)
		_, _ = Certificates(content, p)
	})
}

// A store may hold the certificate of another key. TLS would only fail at the first client.
func TestAKeyAndACertificateBelongTogether(t *testing.T) {
	root := issue(t, nil, "root", 1)
	ann, bob := issue(t, root, "ann", 2), issue(t, root, "bob", 3)
	if got, err := joined(ann.key, []*x509.Certificate{ann.cert, root.cert}); err != nil || got.Leaf != ann.cert || len(got.Certificate) != 2 {
		t.Errorf("the key of the certificate: %+v, %v", got, err)
	}
	for what, chain := range map[string][]*x509.Certificate{
		"that of another": {bob.cert, root.cert}, "that of its issuer": {root.cert, ann.cert}, "none": nil,
	} {
		if _, err := joined(ann.key, chain); err == nil {
			t.Errorf("a key with a certificate, %s, is taken", what)
		}
	}
	if _, err := joined("no key", []*x509.Certificate{ann.cert}); err == nil {
		t.Error("what is no key is taken for one")
	}
}
