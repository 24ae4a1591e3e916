package metrics

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// levelsOf shows who is in.
func levelsOf(claims []claim) (out string) {
	for _, c := range claims {
		out += fmt.Sprintf("%s:%d ", c.name, c.level)
	}
	return out
}

func admit(t *testing.T, a *admission, now time.Time, budget int, want string, claims ...claim) {
	t.Helper()
	used := a.admit(now, claims, budget)
	if got := levelsOf(claims); got != want {
		t.Errorf("%s of %d: %s, want %s", now.Format("15:04"), budget, got, want)
	}
	assert.True(t, used <= max(budget, 0), "%d are used of %d", used, budget)
}

func TestGroupsWithMembersOrLagComeFirst(t *testing.T) {
	idle := claim{name: "a", whole: 5, parts: 10}
	busy, other := claim{name: "b", first: true, whole: 5, parts: 10}, claim{name: "c", first: true, whole: 5, parts: 10}
	for _, c := range []struct {
		budget int
		want   string
	}{
		{45, "a:2 b:2 c:2 "},
		{44, "a:1 b:2 c:2 "},
		{34, "a:0 b:2 c:2 "},
		{29, "a:1 b:2 c:1 "}, // There is no room for the partitions of c, but for a as a whole.
		{20, "a:0 b:2 c:1 "},
		{19, "a:1 b:1 c:1 "}, // The partitions of b would hide c.
		{14, "a:0 b:1 c:1 "},
		{9, "a:0 b:1 c:0 "},
		{4, "a:0 b:0 c:0 "},
		{0, "a:0 b:0 c:0 "},
		{-5, "a:0 b:0 c:0 "},
	} {
		admit(t, &admission{}, noon, c.budget, c.want, idle, busy, other)
	}
}

func TestWhoIsInStaysForAnHour(t *testing.T) {
	a := &admission{}
	admit(t, a, noon, 20, "a:2 b:0 ", claim{name: "a", first: true, whole: 5, parts: 10}, claim{name: "b", whole: 5 + 1, parts: 10})
	// Its last member leaves, and b gets members.
	idle, busy := claim{name: "a", whole: 5, parts: 10}, claim{name: "b", first: true, whole: 6, parts: 10}
	admit(t, a, noon.Add(stay-time.Second), 20, "a:2 b:0 ", idle, busy)
	admit(t, a, noon.Add(stay), 20, "a:0 b:2 ", idle, busy)
	admit(t, a, noon.Add(stay+time.Minute), 20, "a:0 b:2 ", claim{name: "a", first: true, whole: 5, parts: 10}, claim{name: "b", whole: 6, parts: 10})
}

func TestWhoIsInMayGetMoreAndStaysWithThat(t *testing.T) {
	a := &admission{}
	small := claim{name: "a", whole: 5, parts: 10}
	admit(t, a, noon, 10, "a:1 ", small)
	admit(t, a, noon.Add(30*time.Minute), 20, "a:2 ", small)
	admit(t, a, noon.Add(80*time.Minute), 21, "a:2 b:1 ", small, claim{name: "b", first: true, whole: 5, parts: 10})
	admit(t, a, noon.Add(91*time.Minute), 21, "a:1 b:2 ", small, claim{name: "b", first: true, whole: 5, parts: 10})
}

func TestWhoIsGoneIsForgotten(t *testing.T) {
	a := &admission{}
	admit(t, a, noon, 20, "a:2 ", claim{name: "a", whole: 5, parts: 10})
	admit(t, a, noon, 20, "b:2 ", claim{name: "b", whole: 5, parts: 10})
	assert.Equal(t, len(a.in), 1)
	admit(t, a, noon, 16, "a:0 b:2 ", claim{name: "a", first: true, whole: 5, parts: 10}, claim{name: "b", whole: 5, parts: 10})
}

// TestAdmissionKeepsItsPromises goes through some hours of groups that come, go, grow and
// change: the number of series is never exceeded, who is in stays for an hour unless it or
// others grow, and no one is left out while there is room for it.
func TestAdmissionKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &admission{}
		now, budget := noon, rapid.IntRange(0, 200).Draw(t, "budget")
		since := map[string]time.Time{}
		var before []claim
		for range rapid.IntRange(1, 30).Draw(t, "scrapes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "minutes")) * time.Minute)
			claims := drawClaims(t, before)
			used := a.admit(now, claims, budget)
			sum, grown := 0, false
			for i := range claims {
				c := &claims[i]
				sum += []int{0, c.whole, c.whole + c.parts}[c.level]
				old := find(before, c.name)
				grown = grown || old != nil && (c.whole > old.whole || c.parts > old.parts)
			}
			assert.MustTrue(t, sum == used && used <= budget, "%d are used, %d are told, of %d", sum, used, budget)
			for i := range claims {
				c := &claims[i]
				old := find(before, c.name)
				if old != nil && old.level > c.level && now.Sub(since[c.name]) < stay && !grown {
					t.Fatalf("%s falls to %d after %s: %+v", c.name, c.level, now.Sub(since[c.name]), claims)
				}
				if c.level == counted && used+c.whole <= budget {
					t.Fatalf("%s is left out though there is room: %d of %d, %+v", c.name, used, budget, claims)
				}
				if old == nil || old.level != c.level || now.Sub(since[c.name]) >= stay {
					since[c.name] = now
				}
			}
			before = claims
		}
	})
}

func find(claims []claim, name string) *claim {
	for i := range claims {
		if claims[i].name == name {
			return &claims[i]
		}
	}
	return nil
}

func drawClaims(t *rapid.T, before []claim) (out []claim) {
	for n := range 8 {
		c := claim{name: fmt.Sprint(n), first: rapid.Bool().Draw(t, "first")}
		old := find(before, c.name)
		switch {
		case rapid.IntRange(0, 9).Draw(t, "gone") == 0:
			continue
		case old == nil || rapid.IntRange(0, 9).Draw(t, "grows") == 0:
			c.whole, c.parts = rapid.IntRange(1, 20).Draw(t, "whole"), rapid.IntRange(0, 60).Draw(t, "parts")
		default:
			c.whole, c.parts = old.whole, old.parts
		}
		out = append(out, c)
	}
	return out
}
