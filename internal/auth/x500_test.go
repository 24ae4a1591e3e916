package auth

import (
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"muster/internal/assert"
)

// The certificates were made by keytool, and their names printed by Java.
func TestNamesOfRealCertificates(t *testing.T) {
	rest, err := os.ReadFile("testdata/certificates.pem")
	assert.Must(t, err)
	want := []string{
		`CN=alice,OU=Data,O=Example\, Inc.,L=Berlin,ST=Berlin,C=DE`,
		`1.2.840.113549.1.9.1=#160d62406578616d706c652e636f6d,CN=bob+UID=u7,OU=A\=B\+C,DC=example,DC=com`,
		`CN=Zoë \"Z\" \<z\>,2.5.4.5=#130134,O=\#1`,
	}
	for _, name := range want {
		block, after := pem.Decode(rest)
		assert.MustTrue(t, block != nil, "a certificate is missing")
		rest = after
		cert, err := x509.ParseCertificate(block.Bytes)
		assert.Must(t, err)
		if got, err := SubjectName(cert.RawSubject); err != nil || got != name {
			t.Errorf("%s, %v, not %s", got, err, name)
		}
	}
}

func TestSubjectsThatAreNoneOrUnclear(t *testing.T) {
	for der, want := range map[string]string{
		"":                               "the certificate's subject",
		"05":                             "the certificate's subject",
		"300000":                         "bytes follow",
		"30023100":                       "a part without a value",
		"310d300b060355040313046a6f6865": "the certificate's subject",
		"300d310b3009060355040314026ae9": "not UTF-8", // T61, where Java writes a replacement character
		"300d310b300906035504030c02c080": "not UTF-8",
		"30820fff":                       "the certificate's subject",
	} {
		raw, err := hex.DecodeString(der)
		assert.Must(t, err)
		if got, err := SubjectName(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", der, got, err)
		}
	}
	if _, err := SubjectName(make([]byte, maxSubject+1)); err == nil || !strings.Contains(err.Error(), "more than 16384") {
		t.Errorf("%v", err)
	}
}

func FuzzSubjectName(f *testing.F) {
	for _, der := range []string{"3000", "300f310d300b06035504030c04616c6963", "300d310b3009060355040314026ae9"} {
		raw, err := hex.DecodeString(der)
		assert.Must(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		name, err := SubjectName(raw)
		if err != nil {
			return
		}
		assert.MustTrue(t, utf8.ValidString(name) && len(name) <= 40*len(raw) && !strings.Contains(name, "\x00"), "%x: %q", raw, name)
	})
}
