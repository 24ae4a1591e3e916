package gate

import (
	"errors"
	"fmt"
	"testing"

	"muster/internal/auth"
	"muster/internal/meter"
)

func TestLoginsAreCounted(t *testing.T) {
	meters := meter.New()
	sasl, ssl := &Gate{name: "SASL", mechanisms: []string{"PLAIN"}}, &Gate{name: "SSL", mapping: &auth.Mapping{}}
	all := &Gates{all: []*Gate{sasl, ssl}}
	told := 0
	sasl.OnLogin(func(Attempt) { told++ })
	all.Count(&meters.Logins)
	if got := len(meters.Logins.Read()); got != 4 {
		t.Errorf("%d kinds are known before there is any", got)
	}
	bad := errors.New("wrong password")
	tell := func(g *Gate, a Attempt) {
		for _, told := range g.told {
			told(a)
		}
	}
	tell(sasl, Attempt{Listener: "SASL", Mechanism: "PLAIN", Principal: "User:ann"})
	tell(sasl, Attempt{Listener: "SASL", Mechanism: "PLAIN", Err: bad})
	tell(sasl, Attempt{Listener: "SASL", Mechanism: "made up", Err: bad})
	tell(sasl, Attempt{Listener: "SASL", Mechanism: PeerMechanism, Principal: peerPrincipal})
	tell(ssl, Attempt{Listener: "SSL", Mechanism: byCertificate, Err: bad})
	want := map[meter.Labels]float64{
		{"SASL", "PLAIN", "success"}: 1, {"SASL", "PLAIN", "failure"}: 1, {"SASL", "other", "failure"}: 1,
		{"SSL", "TLS", "success"}: 0, {"SSL", "TLS", "failure"}: 1,
	}
	if got := meters.Logins.Read(); fmt.Sprint(got) != fmt.Sprint(want) || told != 4 {
		t.Errorf("%v, told of %d", got, told)
	}
}
