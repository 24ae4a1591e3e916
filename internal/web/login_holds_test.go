package web

import (
	"net"
	"testing"
	"time"

	"muster/internal/web/login"
)

// What someone was let in by must still do: the token has not ended, the password is the
// same, and they have not logged out.
func TestALoginHoldsNoLongerThanWhatItWasBy(t *testing.T) {
	f := newFake(t)
	f.users = map[string]string{"ann": "anns"}
	at := now
	a := newAPI(&Options{Reads: f, Gate: f, Now: func() time.Time { return at }}, &net.TCPAddr{})
	ann := login.Identity{Principal: "User:ann", Proof: "anns"}
	secret, _ := a.sessions.Begin(ann)
	token := &call{login: login.WayBearer, id: login.Identity{Principal: "User:tom"}, ends: now.Add(time.Minute)}
	for name, c := range map[string]*call{"password": {login: login.WayBasic, id: ann}, "cookie": {login: login.WayCookie, id: ann, secret: secret}, "token": token} {
		if !a.holds(c) {
			t.Errorf("%s: it does not hold", name)
		}
	}
	for name, c := range map[string]*call{
		"nobody": {login: login.None}, "another password": {login: login.WayBasic, id: login.Identity{Principal: "User:ann", Proof: "old"}},
		"another cookie": {login: login.WayCookie, id: ann, secret: "x"},
	} {
		if a.holds(c) {
			t.Errorf("%s: it holds", name)
		}
	}
	at = now.Add(time.Minute)
	if a.holds(token) {
		t.Error("a token holds though it has ended")
	}
}
