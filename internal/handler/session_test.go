package handler_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/handler"
)

// fakeSession answers as the test says, and remembers what it was asked.
type fakeSession struct {
	err     *kerr.Error
	login   handler.Login
	asked   string
	version int16
	token   []byte
	conn    *fakeConn
	library string
}

func (s *fakeSession) Software(name, version string) { s.library = name + " " + version }

func (s *fakeSession) Handshake(version int16, mechanism string) (*kerr.Error, []string) {
	s.version, s.asked = version, mechanism
	return s.err, []string{"A", "B"}
}

func (s *fakeSession) Authenticate(ctx context.Context, token []byte) handler.Login {
	s.token = token
	if !s.conn.released {
		panic("the frame is kept while a login may wait")
	}
	if len(s.conn.parked) <= len(s.conn.over) || ctx.Done() == nil {
		panic("a login that waits does not end when its client hangs up")
	}
	return s.login
}

func TestASessionLearnsTheLibraryOfItsClient(t *testing.T) {
	w := newWorld(t)
	for version, want := range map[int16]string{2: "", 3: "lib 1.2", 4: "lib 1.2"} {
		s := &fakeSession{}
		w.from(handler.Origin{Listener: "L", Session: s}, &kmsg.ApiVersionsRequest{Version: version, ClientSoftwareName: "lib", ClientSoftwareVersion: "1.2"})
		assert.Equal(t, s.library, want, "v%d", version)
	}
	s := &fakeSession{}
	w.from(handler.Origin{Listener: "L", Session: s}, &kmsg.ApiVersionsRequest{Version: 3, ClientSoftwareName: "no name\n", ClientSoftwareVersion: "1.2"})
	assert.Equal(t, s.library, "", "a name that is refused")
}

func TestALoginGoesToTheSessionOfItsConnection(t *testing.T) {
	w := newWorld(t)
	for version := int16(0); version <= 1; version++ {
		s := &fakeSession{err: kerr.UnsupportedSaslMechanism}
		got := w.from(handler.Origin{Listener: "L", Session: s}, &kmsg.SASLHandshakeRequest{Version: version, Mechanism: "C"}).(*kmsg.SASLHandshakeResponse)
		if s.asked != "C" || s.version != version || got.ErrorCode != 33 || !slices.Equal(got.SupportedMechanisms, []string{"A", "B"}) {
			t.Errorf("v%d: asked for %s in v%d, answered %+v", version, s.asked, s.version, got)
		}
	}
	for version := int16(0); version <= 2; version++ {
		s := &fakeSession{login: handler.Login{Answer: []byte("welcome"), Lifetime: 7 * time.Second}, conn: newFakeConn()}
		origin := handler.Origin{Listener: "L", Session: s, Conn: s.conn}
		got := w.from(origin, &kmsg.SASLAuthenticateRequest{Version: version, SASLAuthBytes: []byte("it is me")}).(*kmsg.SASLAuthenticateResponse)
		if string(s.token) != "it is me" || got.ErrorCode != 0 || got.ErrorMessage != nil || string(got.SASLAuthBytes) != "welcome" {
			t.Errorf("v%d: token %q, answered %+v", version, s.token, got)
		}
		assert.False(t, version >= 1 && got.SessionLifetimeMillis != 7000, "v%d: the session lasts %d ms", version, got.SessionLifetimeMillis)
		s.login = handler.Login{Error: kerr.SaslAuthenticationFailed, Message: "no"}
		got = w.from(origin, &kmsg.SASLAuthenticateRequest{Version: version, SASLAuthBytes: bytes.Repeat([]byte("x"), 1<<20)}).(*kmsg.SASLAuthenticateResponse)
		if got.ErrorCode != 58 || got.ErrorMessage == nil || *got.ErrorMessage != "no" || len(s.token) != 128<<10 {
			t.Errorf("v%d: %d bytes of the token kept, answered %+v", version, len(s.token), got)
		}
	}
}

func TestALoginWhereThereIsNoneOrNotNowIsIllegal(t *testing.T) {
	w := newWorld(t)
	for _, origin := range []handler.Origin{{Listener: "L"}, {Listener: "L", Session: &fakeSession{}, Illegal: true}} {
		if got := w.from(origin, &kmsg.SASLHandshakeRequest{Version: 1}).(*kmsg.SASLHandshakeResponse); got.ErrorCode != 34 || len(got.SupportedMechanisms) != 0 {
			t.Errorf("%+v", got)
		}
		if got := w.from(origin, &kmsg.SASLAuthenticateRequest{Version: 2}).(*kmsg.SASLAuthenticateResponse); got.ErrorCode != 34 {
			t.Errorf("%+v", got)
		}
	}
	if got := w.from(handler.Origin{Listener: "L", Illegal: true}, &kmsg.ApiVersionsRequest{}).(*kmsg.ApiVersionsResponse); got.ErrorCode != 34 || len(got.ApiKeys) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWhoSendsARequestIsToldInTheFormOfRules(t *testing.T) {
	for _, c := range []struct {
		origin          handler.Origin
		principal, host string
	}{
		{handler.Origin{Host: "10.0.0.1"}, "User:ANONYMOUS", "10.0.0.1"},
		{handler.Origin{Host: "fe80::1%eth0", Principal: "User:ann"}, "User:ann", "fe80::1"},
		{handler.Origin{Host: "::ffff:10.0.0.1"}, "User:ANONYMOUS", "10.0.0.1"},
		{handler.Origin{Host: "2001:DB8::0"}, "User:ANONYMOUS", "2001:db8::"},
	} {
		if principal, host := handler.Who(c.origin); principal != c.principal || host != c.host {
			t.Errorf("%+v: %s from %s", c.origin, principal, host)
		}
	}
}

func TestABrokerSendsNothingButWhatBrokersSend(t *testing.T) {
	w := newGuardedWorld(t)
	var told []audit.Entry
	w.h.SetAudit(func(e audit.Entry) { told = append(told, e) })
	// The first versions that brokers send.
	may := map[int16]int16{2: 0, 17: 0, 18: 0, 24: 4, 27: 0, 36: 0, 65: 0, 66: 0}
	for _, e := range handler.Table() {
		for version := max(e.Min, e.ServedFrom); version <= e.Max; version++ {
			req := kmsg.RequestForKey(e.Key)
			req.SetVersion(version)
			frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
			told = nil
			resp, err := w.h.Serve(t.Context(), aBroker, frame)
			if resp != nil {
				w.decode(req, resp)
			}
			least, ok := may[e.Key]
			if ok = ok && version >= least; ok != (err == nil) {
				t.Errorf("%s v%d: %v", e.Name(), version, err)
			}
			if ok {
				continue
			}
			if len(told) != 1 || told[0].Kind != audit.Denied || told[0].Principal != "Broker:muster" || told[0].Resources[0].Name != e.Name() {
				t.Errorf("%s v%d: the audit is told %+v", e.Name(), version, told)
			}
		}
	}
}
