package interop

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
	"muster/internal/logintest"
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
// logs in again a second before the end, and brokers let no one do so more than once a second.
const briefSession = 6 * time.Second

const adminPassword = "sesame"

// site is a broker where everybody logs in and rules say who may do what, and what clients
// need for it.
type site struct {
	t       *testing.T
	b       *process
	issuer  *issuer
	foreign string // a certificate of ann, by someone else, and its key
	trust   string // the certificate of the authority, in a PEM file
	keys    map[string]string
	admin   *kadm.Client
	signs   *logintest.Authority
}

// newSite starts a broker with all listeners. The user admin may do everything.
func newSite(t *testing.T) *site {
	t.Helper()
	a, dir := newAuthority(t), t.TempDir()
	s := &site{t: t, issuer: newIssuer(t), signs: a, trust: filepath.Join(dir, "trust.pem"), foreign: filepath.Join(dir, "foreign.pem"), keys: map[string]string{}}
	install(t, s.trust, a.PEM())
	install(t, s.foreign, keystore(t, newAuthority(t), "ann"))
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
		must(s.t, err)
	}
}

// allow makes rules for a user.
func (s *site) allow(user string, rules *kadm.ACLBuilder) {
	s.t.Helper()
	created, err := s.admin.CreateACLs(s.t.Context(), rules.Allow("User:"+user).AllowHosts())
	must(s.t, err)
	for _, c := range created {
		assert.Must(s.t, c.Err, "%+v", c)
	}
}

// topics creates topics of one partition.
func (s *site) topics(names ...string) {
	s.t.Helper()
	created, err := s.admin.CreateTopics(s.t.Context(), 1, 1, nil, names...)
	if err == nil {
		err = created.Error()
	}
	must(s.t, err)
}

// certificate issues a certificate for a name, and returns the PEM file with it and its key.
func (s *site) certificate(name string) string {
	s.t.Helper()
	if s.keys[name] == "" {
		s.keys[name] = filepath.Join(filepath.Dir(s.trust), name+".pem")
		install(s.t, s.keys[name], keystore(s.t, s.signs, name))
	}
	return s.keys[name]
}

func newAuthority(t *testing.T) *logintest.Authority {
	t.Helper()
	a, err := logintest.NewAuthority()
	must(t, err)
	return a
}

// keystore issues a certificate for a name, with its key.
func keystore(t *testing.T, by *logintest.Authority, name string) []byte {
	t.Helper()
	text, err := by.IssuePEM(name)
	must(t, err)
	return text
}

// issuer issues tokens, whose keys are in a file.
type issuer struct {
	*logintest.Issuer
	url string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i, err := logintest.NewIssuer()
	must(t, err)
	name := filepath.Join(t.TempDir(), "keys.json")
	install(t, name, i.KeySet)
	return &issuer{i, "file://" + name}
}

// token issues a token for a user, and says when it ends.
func (i *issuer) token(user, audience string, lasts time.Duration) (string, time.Time, error) {
	ends := time.Now().Add(lasts)
	token, err := i.Token(logintest.ClaimsOf(user, audience, ends))
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
