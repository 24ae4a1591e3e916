package broker_test

import (
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
)

// A crowd of connections that guess passwords waits for its turns by itself: others who
// log in for the first time, from another address or by another name, do not wait for
// the crowd, but for a turn or two. What counts is the order in which the logins end.
func TestManyWhoGuessPasswordsDoNotDelayOthers(t *testing.T) {
	b := startSASL(t, map[string]string{"connection.failed.authentication.delay.ms": "0"})
	// As slow as can be, so that the crowd is there before its first turns are over.
	must(t, b.SetPasswordIterated(t.Context(), "slow", "slows", sasl.SHA512, sasl.MaxIterations))
	ended := b.Attempts()
	const crowd = 150
	from := func(address string) *wire {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		c, err := d.DialContext(t.Context(), "tcp", b.Addr())
		if err != nil {
			t.Skip("this system has one loopback address only:", err)
		}
		t.Cleanup(func() { c.Close() })
		must(t, c.SetDeadline(time.Now().Add(60*time.Second)))
		w := &wire{t, &stranger{Conn: c}}
		w.handshake("PLAIN")
		return w
	}
	ann, jim := from("127.0.0.2"), from("127.0.0.1")
	var guessers []*wire
	for range crowd {
		guessers = append(guessers, from("127.0.0.1"))
	}
	logs := func(w *wire, name, password string) {
		w.send(&kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: []byte(plain(name, password))})
	}
	for _, w := range guessers {
		logs(w, "slow", "guess")
	}
	logs(ann, "ann", "anns")
	logs(jim, "jim", "jims")
	waits, before := map[auth.Principal]bool{"User:ann": true, "User:jim": true}, 0
	for len(waits) > 0 {
		if a := <-ended; a.Err == nil {
			delete(waits, a.Principal)
		} else if before++; before >= crowd/2 {
			t.Fatalf("%v wait for %d of those who guess", waits, before)
		}
	}
	t.Logf("%d wrong passwords were looked at before", before)
	for _, w := range guessers {
		w.Close() // They leave the queue.
	}
}
