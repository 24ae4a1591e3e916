package login

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/auth"
)

var now = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func TestASessionIsKnownByItsSecretUntilItEnds(t *testing.T) {
	at := now
	s := NewSessions(func() time.Time { return at })
	ann := Identity{Principal: "User:ann", Proof: "p"}
	secret, ends := s.Begin(ann)
	assert.True(t, ends.Equal(at.Add(12*time.Hour)) && len(secret) == 43, "it ends at %v, the secret is %q", ends, secret)
	other, _ := s.Begin(ann)
	assert.True(t, other != secret, "two secrets are the same")
	for _, wrong := range []string{"", "x", secret[1:], secret + "A", strings.ToUpper(secret)} {
		if _, _, found := s.Find(wrong); found {
			t.Errorf("%q is a secret", wrong)
		}
	}
	at = ends.Add(-time.Nanosecond)
	if id, until, found := s.Find(secret); !found || id != ann || !until.Equal(ends) {
		t.Errorf("before its end it is %v, %t", id, found)
	}
	at = ends
	if _, _, found := s.Find(secret); found {
		t.Error("it does not end")
	}
	if id, found := s.End(other); !found || id != ann {
		t.Errorf("ended was %v, %t", id, found)
	}
	if _, found := s.End(other); found || len(s.all) != 0 || s.order.Len() != 0 || len(s.of) != 0 || s.bytes != 0 {
		t.Errorf("left are %d, %d, %d, %d bytes", len(s.all), s.order.Len(), len(s.of), s.bytes)
	}
	if _, ends := s.Begin(Identity{Principal: "User:ann", Ends: at.Add(time.Minute)}); !ends.Equal(at.Add(time.Minute)) {
		t.Errorf("one that an issuer bounds ends at %v", ends)
	}
	if _, ends := s.Begin(Identity{Principal: "User:ann", Ends: at.Add(13 * time.Hour)}); !ends.Equal(at.Add(12 * time.Hour)) {
		t.Errorf("one that an issuer bounds late ends at %v", ends)
	}
}

// Of the secret nothing is kept.
func TestTheSecretOfASessionIsNotKept(t *testing.T) {
	s := NewSessions(time.Now)
	secret, _ := s.Begin(Identity{Principal: "User:ann"})
	if kept := fmt.Sprintf("%+v %+v", s.all, s.order.Front().Value); strings.Contains(kept, secret) {
		t.Errorf("%q is in %s", secret, kept)
	}
}

func TestSessionsAreBoundedByBytesAndTheOldestGo(t *testing.T) {
	s := NewSessions(time.Now)
	var secrets []string
	name := strings.Repeat("a", 10_000)
	for i := range 300 {
		secret, _ := s.Begin(Identity{Principal: auth.User(fmt.Sprint(name, i))})
		secrets = append(secrets, secret)
		assert.MustTrue(t, s.bytes <= maxSessionBytes, "%d bytes are kept", s.bytes)
	}
	if _, _, found := s.Find(secrets[0]); found {
		t.Error("the oldest is still there")
	}
	if _, _, found := s.Find(secrets[299]); !found {
		t.Error("the newest is not there")
	}
	if n := maxSessionBytes / (sessionBytes + len(name) + 10); len(s.all) < n-1 || len(s.of) != len(s.all) {
		t.Errorf("%d are kept, of %d users, want about %d", len(s.all), len(s.of), n)
	}
}

func TestWhoLogsInAgainAndAgainSendsAwayOnlyThemselves(t *testing.T) {
	s := NewSessions(time.Now)
	bob, _ := s.Begin(Identity{Principal: "User:bob"})
	first, _ := s.Begin(Identity{Principal: "User:ann"})
	second, _ := s.Begin(Identity{Principal: "User:ann"})
	for range maxSessionsOfOne - 1 {
		s.Begin(Identity{Principal: "User:ann"})
	}
	for secret, want := range map[string]bool{bob: true, first: false, second: true} {
		if _, _, found := s.Find(secret); found != want {
			t.Errorf("found is %t, want %t", found, want)
		}
	}
	assert.True(t, s.of["User:ann"] == maxSessionsOfOne && s.of["User:bob"] == 1, "there are %v", s.of)
}
