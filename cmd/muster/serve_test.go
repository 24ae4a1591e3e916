package main

import "testing"

func TestServeInMemoryDoesNotWaitForMoreMembers(t *testing.T) {
	for _, c := range []struct {
		flags   serveFlags
		environ []string
		want    string
	}{
		{serveFlags{store: "mem"}, nil, "0"},
		{serveFlags{set: []string{"muster.store=mem"}}, nil, "0"},
		{serveFlags{}, []string{"MUSTER_STORE=mem"}, "0"},
		{serveFlags{store: "mem", set: []string{initialDelay + "=1234"}}, nil, "1234"},
		{serveFlags{store: "mem"}, []string{"MUSTER_GROUP_INITIAL_REBALANCE_DELAY_MS=1234"}, "1234"},
		{serveFlags{}, nil, ""}, // Kafka's default.
		{serveFlags{store: "disk"}, nil, ""},
		{serveFlags{store: "redis://127.0.0.1"}, nil, ""},
	} {
		props, err := c.flags.properties(c.environ)
		if err != nil {
			t.Fatal(err)
		}
		if got := props[initialDelay]; got != c.want {
			t.Errorf("with %+v and %v the delay is %q, want %q", c.flags, c.environ, got, c.want)
		}
	}
}
