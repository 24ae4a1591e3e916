package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// Listeners of a site: clients log in by SASL in plain text and under TLS, or are known by
// their certificate. Sessions of the last one are brief.
const (
	inPlainText   = "PLAINTEXT_LOGIN"
	underTLS      = "TLS_LOGIN"
	byCertificate = "CERTIFICATE"
	inBrief       = "BRIEF"
)

// briefSession is how long a login lasts on the listener where it does not last. franz-go
// logs in again a second before the end, and brokers let nobody do so more than once a second.
const briefSession = 6 * time.Second

const adminPassword = "sesame"

// site is a broker where everybody logs in and rules say who may do what, and what clients
// need for it.
type site struct {
	t       *testing.T
	b       *process
	issuer  *issuer
	foreign string // a certificate of ann, by somebody else, and its key
	trust   string // the certificate of the authority, in a PEM file
	keys    map[string]string
	admin   *kadm.Client
	signs   *authority
}

// newSite starts a broker with all listeners. The user admin may do everything.
func newSite(t *testing.T) *site {
	t.Helper()
	a, dir := newAuthority(t), t.TempDir()
	s := &site{t: t, issuer: newIssuer(t), signs: a, trust: filepath.Join(dir, "trust.pem"), foreign: filepath.Join(dir, "foreign.pem"), keys: map[string]string{}}
	install(t, s.trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	install(t, s.foreign, newAuthority(t).issue("ann"))
	password := filepath.Join(dir, "password")
	install(t, password, []byte(adminPassword))
	var listeners, protocols []string
	for _, l := range [][2]string{{inPlainText, "SASL_PLAINTEXT"}, {underTLS, "SASL_SSL"}, {byCertificate, "SSL"}, {inBrief, "SASL_SSL"}} {
		listeners, protocols = append(listeners, l[0]+"://127.0.0.1:0"), append(protocols, l[0]+":"+l[1])
	}
	flags := append([]string{}, groupSettings...)
	for _, setting := range []string{
		"listeners=" + strings.Join(listeners, ","), "listener.security.protocol.map=" + strings.Join(protocols, ","),
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"sasl.oauthbearer.jwks.endpoint.url=" + s.issuer.url, "sasl.oauthbearer.expected.audience=kafka",
		"ssl.keystore.location=" + s.certificate("broker"), "ssl.truststore.location=" + s.trust,
		"listener.name.certificate.ssl.client.auth=required", `ssl.principal.mapping.rules=RULE:^CN=([a-z]+).*$/$1/`,
		fmt.Sprintf("listener.name.brief.scram-sha-256.connections.max.reauth.ms=%d", briefSession.Milliseconds()),
		"authorizer.class.name=muster", "muster.bootstrap.user=admin:${file:" + password + "}",
	} {
		flags = append(flags, "--set", setting)
	}
	s.b = serve(t, t.TempDir(), flags...)
	login := plain.Auth{User: "admin", Pass: adminPassword}.AsMechanism()
	s.admin = kadm.NewClient(connect(t, s.b.addrs[inPlainText], kgo.SASL(login)))
	return s
}

// of is the same site for a part of the test.
func (s *site) of(t *testing.T) *site {
	part := *s
	part.t = t
	return &part
}

// setPassword makes a user, or changes their password: by one request for each mechanism, since
// Kafka does not take two changes of a user in one.
func (s *site) setPassword(user, password string) {
	s.t.Helper()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		altered, err := s.admin.AlterUserSCRAMs(s.t.Context(), nil, []kadm.UpsertSCRAM{{User: user, Mechanism: mechanism, Iterations: 4096, Password: password}})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// allow makes rules for a user.
func (s *site) allow(user string, rules *kadm.ACLBuilder) {
	s.t.Helper()
	created, err := s.admin.CreateACLs(s.t.Context(), rules.Allow("User:"+user).AllowHosts())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range created {
		if c.Err != nil {
			s.t.Fatalf("%+v: %v", c, c.Err)
		}
	}
}

// topics creates topics of one partition.
func (s *site) topics(names ...string) {
	s.t.Helper()
	created, err := s.admin.CreateTopics(s.t.Context(), 1, 1, nil, names...)
	if err == nil {
		err = created.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// certificate issues a certificate for a name, and returns the PEM file with it and its key.
func (s *site) certificate(name string) string {
	s.t.Helper()
	if s.keys[name] == "" {
		s.keys[name] = filepath.Join(filepath.Dir(s.trust), name+".pem")
		install(s.t, s.keys[name], s.signs.issue(name))
	}
	return s.keys[name]
}

// authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.last++
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(a.last), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue makes a certificate for 127.0.0.1, and for a client of that name.
func (a *authority) issue(name string) []byte {
	cert, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: []string{"Muster"}}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
}

// issuer issues tokens, whose keys are in a file.
type issuer struct {
	signer jose.Signer
	url    string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "keys.json")
	install(t, name, set)
	return &issuer{signer: signer, url: "file://" + name}
}

// token issues a token for a user, and says when it ends.
func (i *issuer) token(user, audience string, lasts time.Duration) (string, time.Time, error) {
	now := time.Now()
	ends := now.Add(lasts)
	claims := fmt.Sprintf(`{"sub":%q,"aud":%q,"iat":%d,"exp":%.3f}`, user, audience, now.Unix(), float64(ends.UnixMilli())/1000)
	signed, err := i.signer.Sign([]byte(claims))
	if err != nil {
		return "", ends, err
	}
	token, err := signed.CompactSerialize()
	return token, ends, err
}

// tlsOf is Go's side of TLS, with a certificate to show if there is one.
func tlsOf(trust, own string) (*tls.Config, error) {
	text, err := os.ReadFile(trust)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	cfg.RootCAs.AppendCertsFromPEM(text)
	if own != "" {
		pair, err := tls.LoadX509KeyPair(own, own)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
