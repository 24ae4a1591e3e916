package auth

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

// check holds what a memo says of itself against what it remembers.
func (m *Memo) check(t rapid.TB) {
	t.Helper()
	bytes := 0
	for r, a := range m.answers {
		bytes += len(r.name)
		assert.MustTrue(t, a.thing == r, "the answer for %v is one for %v", r, a.thing)
	}
	if bytes != m.bytes || bytes > memoBytes || len(m.answers) > memoAnswers {
		t.Fatalf("%d answers of %d bytes, which are said to be %d", len(m.answers), bytes, m.bytes)
	}
}

// site is a broker with rules, and connections to it.
type site struct {
	x     *Index
	all   naive
	conns [2]struct {
		memo   Memo
		who    Principal
		groups Groups
		host   string
	}
}

// change changes the rules, or the policy.
func (s *site) change(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "policy") == 0 {
		s.all.policy = Policy{AllowEveryone: rapid.Bool().Draw(t, "everyone")}
		if rapid.Bool().Draw(t, "super") {
			s.all.policy.SuperUsers = []Principal{"User:q"}
		}
		s.x = s.x.WithPolicy(s.all.policy)
		return
	}
	edit := s.x.Edit()
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		if len(s.all.rules) == 0 || rapid.Bool().Draw(t, "add") {
			r := genRule.Draw(t, "rule")
			edit.Add(r)
			s.all.add(r)
			continue
		}
		r := rapid.SampledFrom(s.all.rules).Draw(t, "old")
		edit.Remove(r)
		s.all.remove(r)
	}
	s.x = edit.Index()
}

// A memo answers as the index does, and as a scan of all rules does, whatever rules,
// policies, principals and hosts it was asked with before.
func TestAMemoAnswersAsTheIndexDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &site{x: New(Policy{})}
		for i := range s.conns {
			s.conns[i].who, s.conns[i].host = genPrincipal.Draw(t, "who"), genHost.Draw(t, "host")
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := &s.conns[rapid.IntRange(0, len(s.conns)-1).Draw(t, "connection")]
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				s.change(t)
			case 2:
				c.who = genPrincipal.Draw(t, "who")
			case 4:
				c.groups = genGroups.Draw(t, "groups")
			case 3:
				c.host = genHost.Draw(t, "host")
			}
			q := genRequest.Draw(t, "question")
			if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
				q.Name += strings.Repeat("a", memoName)
			}
			q.Principal, q.Groups, q.Host = c.who, c.groups, c.host
			got := c.memo.Rights(s.x, q)
			if want := s.x.Rights(q); got != want {
				t.Fatalf("%+v: the memo says %b, the index %b", q, got, want)
			}
			if want := s.all.decide(q).Allowed; got.Has(q.Operation) != want {
				t.Fatalf("%+v: the memo says %t, the rules %t", q, !want, want)
			}
			c.memo.check(t)
		}
	})
}

// everyTopic allows to read some topics.
func everyTopic(names []string) *Index {
	edit := New(Policy{}).Edit()
	for _, name := range names {
		edit.Add(Rule{Type: Topic, Pattern: Literal, Name: name, Principal: "User:p", Host: AnyHost, Operation: Read, Permission: Allow})
	}
	return edit.Index()
}

func numbered(n int, form string) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf(form, i))
	}
	return names
}

func TestAMemoIsAboutOnePrincipalItsGroupsAndItsHost(t *testing.T) {
	edit := New(Policy{}).Edit()
	edit.Add(Rule{Type: Topic, Pattern: Literal, Name: "t", Principal: "User:p", Host: "10.0.0.1", Operation: Read, Permission: Allow})
	edit.Add(Rule{Type: Topic, Pattern: Literal, Name: "t", Principal: "Group:g", Host: "10.0.0.2", Operation: Read, Permission: Allow})
	x := edit.Index()
	var m Memo
	for range 2 {
		for _, c := range []struct {
			who    Principal
			groups Groups
			host   string
			want   bool
		}{
			{"User:p", "", "10.0.0.1", true}, {"User:p", "", "10.0.0.2", false},
			{"User:p", "Group:g", "10.0.0.2", true}, {"User:p", "", "10.0.0.2", false}, // It has logged in again.
			{"User:p", "", "10.0.0.1", true}, {"User:q", "", "10.0.0.1", false},
		} {
			q := Request{Principal: c.who, Groups: c.groups, Host: c.host, Type: Topic, Name: "t"}
			assert.Equal(t, m.Rights(x, q).Has(Read), c.want, "%s of %q from %s", c.who, c.groups, c.host)
		}
	}
}

func TestAMemoRemembersSoMuchAndNoMore(t *testing.T) {
	for form, most := range map[string]int{"%d": memoAnswers, "%0128d": memoBytes / 128, "%0256d": memoBytes / memoName, "%0257d": 0} {
		var m Memo
		names := numbered(2*memoAnswers, form)
		x := everyTopic(names[1:])
		for i, name := range slices.Concat(names, names) {
			assert.MustEqual(t, m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: name}).Has(Read), name != names[0], "%d", i)
			m.check(t)
		}
		assert.Equal(t, len(m.answers), most, "%s: remembered", form)
	}
}

func TestAFullMemoBeginsAnewInTheEnd(t *testing.T) {
	var m Memo
	old, later := numbered(memoAnswers, "old-%d"), numbered(8, "new-%d")
	x := everyTopic(later)
	ask := func(name string) { m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: name}) }
	for _, name := range old {
		ask(name)
	}
	for i := range memoMisses {
		assert.MustTrue(t, m.answers[thing{Topic, later[0]}] == nil, "another topic drives out what is known after %d questions", i)
		ask(later[i%len(later)])
	}
	for _, name := range later {
		ask(name)
	}
	assert.Equal(t, len(m.answers), len(later), "remembered")
}

// The name of a request may lie in bytes that are used again.
func TestAMemoKeepsItsOwnNames(t *testing.T) {
	var m Memo
	frame := []byte("mine")
	x := everyTopic([]string{"mine"})
	m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: unsafe.String(&frame[0], len(frame))})
	copy(frame, "ours")
	if m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: "ours"}) != 0 || !m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: "mine"}).Has(Read) {
		t.Error("the answer for one name became that for another")
	}
}

// A connection that asks nothing more must not keep all rules of its time in memory.
func TestAMemoDoesNotKeepItsIndex(t *testing.T) {
	var m Memo
	asked := func() weak.Pointer[Index] {
		x := everyTopic([]string{"t"})
		m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: "t"})
		return weak.Make(x)
	}()
	runtime.GC()
	assert.True(t, asked.Value() == nil, "the index is still there")
	assert.Equal(t, m.Rights(everyTopic(nil), Request{Principal: "User:p", Host: "::1", Type: Topic, Name: "t"}), 0, "the rules of before are still believed")
}

func TestAQuestionThatWasAskedBeforeTakesNoMemory(t *testing.T) {
	var m Memo
	names := numbered(4, "topic-%d")
	x := everyTopic(names)
	ask := func() {
		for _, name := range names {
			m.Rights(x, Request{Principal: "User:p", Host: "::1", Type: Topic, Name: name})
		}
	}
	ask()
	assert.Equal(t, testing.AllocsPerRun(100, ask), 0, "allocations")
}
