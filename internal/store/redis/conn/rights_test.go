package conn

import (
	"slices"
	"strings"
	"testing"

	"muster/internal/redistest"
)

// A user that lacks a single right is told which, and how to give it.
func TestAUserThatLacksARightIsToldWhich(t *testing.T) {
	const rule = "on >secret resetkeys resetchannels ~muster:* ~{muster:* &muster:* +@all -@admin -@dangerous +info +role"
	s := redistest.Single(t, "user ann "+rule)
	client := connect(t, "redis://ann:secret@"+s.Nodes[0].Addr())
	set := func(rules string) {
		t.Helper()
		if _, err := s.Nodes[0].Do(append([]string{"ACL", "SETUSER", "ann"}, strings.Fields(rules)...)...); err != nil {
			t.Fatal(err)
		}
	}
	lacks := func(what string, names ...string) {
		t.Helper()
		err := CheckRights(t.Context(), client, "muster")
		if len(names) == 0 {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		for _, name := range append(names, "user ann of redis at "+s.Nodes[0].Addr(), "ACL SETUSER ann ~muster:* ~{muster:* &muster:* +@all -@admin -@dangerous +info +role") {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, which does not say %q", what, err, name)
			}
		}
	}
	lacks("the user of the documentation")
	var tried []string
	for _, words := range NeededCommands("muster") {
		name := strings.ToLower(words[0])
		if slices.Contains(tried, name) {
			continue
		}
		tried = append(tried, name)
		set("-" + name)
		lacks("without "+name, strings.ToUpper(name))
		set("+" + name)
	}
	set("-@write")
	lacks("a reader", "XSETID on muster:*", "more; give")
	set("reset " + rule + " -xgroup|create")
	lacks("without a subcommand", "may not run XGROUP CREATE on muster:*;")
	set("reset " + rule + " resetkeys ~muster:*")
	lacks("without keys in braces", "HSET on {muster:*")
	set("reset " + rule + " resetchannels")
	lacks("without a channel", "PUBLISH on muster:*", "SUBSCRIBE on muster:*")
	set("reset " + rule)
	lacks("in the end")
	if err := CheckRights(t.Context(), client, "other"); err == nil || !strings.Contains(err.Error(), "~other:*") {
		t.Errorf("keys of another prefix: %v", err)
	}
}
