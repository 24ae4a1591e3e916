package handler_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/handler"
)

// seat is a connection with an authorizer behind it, which may log in again.
type seat struct {
	*guardedWorld
	origin handler.Origin
}

func newSeat(w *guardedWorld, host string) *seat {
	return &seat{w, handler.Origin{Listener: "L", Host: host, Principal: alice, Conn: newFakeConn()}}
}

// produces returns the error of a Produce to topic t.
func (s *seat) produces() int16 {
	s.t.Helper()
	return s.from(s.origin, s.produceRequest(9, 0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
}

func (s *seat) want(code int16, when string) {
	s.t.Helper()
	assert.Equal(s.t, s.produces(), code, "%s: error", when)
}

func TestAConnectionGoesByTheNewestRules(t *testing.T) {
	w := newGuardedWorld(t)
	s := newSeat(w, "127.0.0.1")
	s.want(topicDenied, "without a rule")
	w.may(alice, auth.Write, auth.Topic, "t")
	s.want(0, "with a rule")
	s.want(0, "with a rule, from memory")
	w.allow(rule(auth.Everyone, auth.Deny, auth.Write, auth.Topic, "t"))
	s.want(topicDenied, "denied to everybody")
	w.revoke(auth.Everyone)
	s.want(0, "without that")
	w.revoke(alice)
	s.want(topicDenied, "without any rule again")
}

func TestAConnectionThatLogsInAgainHasTheRightsOfItsNewName(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Write, auth.Topic, "t")
	s := newSeat(w, "127.0.0.1")
	for range 2 {
		for _, c := range []struct {
			who  auth.Principal
			want int16
		}{{alice, 0}, {bob, topicDenied}, {root, 0}, {"", topicDenied}} {
			s.origin.Principal = c.who
			s.want(c.want, string(c.who))
		}
	}
}

func TestARuleForAHostMeansItsConnections(t *testing.T) {
	w := newGuardedWorld(t)
	r := rule(alice, auth.Allow, auth.Write, auth.Topic, "t")
	r.Host = "2001:db8::1"
	w.allow(r)
	for host, want := range map[string]int16{"2001:db8:0:0::1": 0, "2001:db8::2": topicDenied, "127.0.0.1": topicDenied} {
		s := newSeat(w, host)
		s.want(want, host)
		s.want(want, host+", from memory")
	}
	s := newSeat(w, "2001:db8::1")
	s.want(0, s.origin.Host)
	s.origin.Host = "2001:db8::2"
	s.want(topicDenied, "from another host, in the place of the same connection")
}

func TestOnlyAConnectionWithRulesRemembersAnything(t *testing.T) {
	w, free := newGuardedWorld(t), &guardedWorld{newWorld(t)}
	for name, s := range map[string]*seat{"without an authorizer": newSeat(free, "::1"), "a super user": newSeat(w, "::1")} {
		s.origin.Principal = root
		if s.want(0, name); *s.origin.Conn.Place() != nil {
			t.Errorf("%s: %+v is kept", name, *s.origin.Conn.Place())
		}
	}
	s := newSeat(w, "::1")
	s.produces()
	kept := *s.origin.Conn.Place()
	s.produces()
	if kept == nil || *s.origin.Conn.Place() != kept {
		t.Errorf("%v is kept, %v before", *s.origin.Conn.Place(), kept)
	}
}

// What is remembered is the answer, not that it was told.
func TestEachRequestIsDeniedAnew(t *testing.T) {
	w, _, _, counted := denialLog(t)
	s := newSeat(w, "127.0.0.1")
	for i := 1; i <= 3; i++ {
		s.from(s.origin, s.produceRequest(9, 0, 1))
		if len(*counted) != i {
			t.Errorf("%d denials of %d requests", len(*counted), i)
		}
	}
}

func TestTheClientIDOfTheLastRequestIsKept(t *testing.T) {
	w := newWorld(t)
	var last string
	long := strings.Repeat("x", 257)
	for _, c := range []struct{ id, kept string }{{"one", "one"}, {"two", "two"}, {long, "two"}, {"", ""}} {
		req := kmsg.NewPtrApiVersionsRequest()
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(c.id)).AppendRequest(nil, req, 1)[4:]
		if _, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L", LastID: &last}, frame); err != nil {
			t.Fatal(err)
		}
		assert.Equal(t, last, c.kept, "kept after %q", c.id)
	}
}
