package broker_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
)

// startCertified starts a broker with four listeners: the first is open, on the second a
// certificate is the login, on the third it may be, and on the fourth it is only asked for.
func startCertified(t *testing.T, a *authority) *broker.Broker {
	t.Helper()
	keystore, truststore := a.files()
	return start(t, map[string]string{
		"listeners":                      "OPEN://127.0.0.1:0,NEEDED://127.0.0.1:0,ASKED://127.0.0.1:0,SASL://127.0.0.1:0",
		"listener.security.protocol.map": "OPEN:PLAINTEXT,NEEDED:SSL,ASKED:SSL,SASL:SASL_SSL",
		"inter.broker.listener.name":     "OPEN", "ssl.keystore.location": keystore, "ssl.truststore.location": truststore,
		"listener.name.needed.ssl.client.auth": "required", "listener.name.asked.ssl.client.auth": "requested", "listener.name.sasl.ssl.client.auth": "required",
		"ssl.principal.mapping.rules": "RULE:^CN=(good).*$/$1/",
	})
}

// visit shows a certificate to a listener and waits for its answer, or its end.
func visit(t *testing.T, b *broker.Broker, a *authority, listener int, own ...tls.Certificate) {
	t.Helper()
	c, err := tls.Dial("tcp", b.Addrs()[listener], a.trusts(own...))
	if err != nil {
		return // TLS before 1.3 says it here, later ones when something is read.
	}
	defer c.Close()
	_, _ = c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, &kmsg.ApiVersionsRequest{}, 7))
	_, _ = c.Read(make([]byte, 1))
}

func TestALoginByCertificateIsToldAsAnyOther(t *testing.T) {
	const open, needed, asked, sasl = 0, 1, 2, 3
	a, foreign := newAuthority(t), newAuthority(t)
	b := startCertified(t, a)
	attempts := b.Attempts()
	// None of these is a login by a certificate.
	visit(t, b, a, asked)
	visit(t, b, a, sasl, foreign.issue("good"))
	visit(t, b, foreign, needed, a.issue("good")) // It does not trust the broker.
	visit(t, b, a, open, a.issue("good"))
	for _, c := range []struct {
		listener  int
		own       []tls.Certificate
		principal string
		reason    string
	}{
		{needed, []tls.Certificate{a.issue("good")}, "User:good", ""},
		{asked, []tls.Certificate{a.issue("good")}, "User:good", ""},
		{needed, nil, "", "didn't provide a certificate"},
		{needed, []tls.Certificate{foreign.issue("good")}, "", "certificate signed by unknown authority"},
		{asked, []tls.Certificate{foreign.issue("good")}, "", "certificate signed by unknown authority"},
		{asked, []tls.Certificate{a.issue("other")}, "", "ssl.principal.mapping.rules"},
	} {
		visit(t, b, a, c.listener, c.own...)
		got := <-attempts
		if got.Mechanism != "TLS" || string(got.Principal) != c.principal || got.Again || (got.Err == nil) != (c.reason == "") {
			t.Errorf("want %q, %q, and is told %+v", c.principal, c.reason, got)
		}
		assert.False(t, got.Err != nil && !strings.Contains(got.Err.Error(), c.reason), "want %q, and is told %v", c.reason, got.Err)
	}
}

func TestTheAuditLogTellsOfLoginsByCertificate(t *testing.T) {
	a, foreign := newAuthority(t), newAuthority(t)
	b := startCertified(t, a)
	visit(t, b, a, 1, a.issue("good"))
	visit(t, b, a, 1, foreign.issue("good"))
	told := map[audit.Kind]audit.Entry{}
	awaitAudit(t, b, func(e audit.Entry) bool {
		told[e.Kind] = e
		return told[audit.Login].Kind != "" && told[audit.LoginFailed].Kind != ""
	})
	if e := told[audit.Login]; e.Principal != "User:good" || e.Host != "127.0.0.1" || e.Mechanism != "TLS" || e.Reason != "" {
		t.Errorf("of the login it tells %+v", e)
	}
	if e := told[audit.LoginFailed]; e.Principal != "" || e.Host != "127.0.0.1" || e.Mechanism != "TLS" || e.Reason == "" {
		t.Errorf("of the login that failed it tells %+v", e)
	}
}
