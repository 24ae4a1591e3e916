package auth

import (
	"fmt"
	"strings"
	"testing"

	"muster/internal/assert"
)

func TestGroupsAreBoundedAndInOneForm(t *testing.T) {
	many := make([]string, MaxGroups+1)
	for i := range many {
		many[i] = fmt.Sprint("g", i)
	}
	for _, c := range []struct {
		names []string
		want  Groups
		fails bool
	}{
		{nil, "", false},
		{[]string{"b", "a", "b"}, "Group:a\x00Group:b", false},
		{[]string{"a b", "*"}, "Group:*\x00Group:a b", false},
		{many[:MaxGroups], "", false},
		{many, "", true},
		{[]string{""}, "", true},
		{[]string{" a"}, "", true},
		{[]string{"a\x00Group:b"}, "", true},
		{[]string{strings.Repeat("x", maxGroupBytes)}, "", true},
	} {
		got, err := GroupsOf(c.names)
		assert.True(t, (err != nil) == c.fails && (c.want == "" || got == c.want) && (err == nil || got == ""), "%.40q: %.40q, %v", c.names, got, err)
	}
}

// A rule for everyone has one spelling; one for a group of that name is none.
func TestARuleForAGroupIsForAllWhoAreInIt(t *testing.T) {
	edit := New(Policy{}).Edit()
	edit.Add(Rule{Type: Topic, Pattern: Literal, Name: "t", Principal: "Group:payments", Host: AnyHost, Operation: Read, Permission: Allow})
	edit.Add(Rule{Type: Topic, Pattern: Literal, Name: "t", Principal: "Group:interns", Host: AnyHost, Operation: Read, Permission: Deny})
	edit.Add(Rule{Type: Topic, Pattern: Literal, Name: "t", Principal: "Group:*", Host: AnyHost, Operation: Write, Permission: Allow})
	x := edit.Index()
	for _, c := range []struct {
		groups []string
		want   bool
	}{{nil, false}, {[]string{"payments"}, true}, {[]string{"others", "payments"}, true}, {[]string{"others"}, false}, {[]string{"interns", "payments"}, false}} {
		groups, err := GroupsOf(c.groups)
		assert.Must(t, err)
		q := Request{Principal: "User:ann", Groups: groups, Host: "::1", Operation: Read, Type: Topic, Name: "t"}
		if got := x.Allows(q); got != c.want || x.Decide(q).Allowed != c.want {
			t.Errorf("%v: %t", c.groups, got)
		}
		if q.Operation = Write; x.Allows(q) {
			t.Errorf("%v: Group:* is for everyone", c.groups)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		x.Rights(Request{Principal: "User:ann", Groups: "Group:others\x00Group:payments", Host: "::1", Type: Topic, Name: "t"})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
