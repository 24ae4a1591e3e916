package redis

import (
	"slices"
	"strings"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store/redis/conn"
	"muster/internal/store/storetest"
)

// A user who may run what CheckRights looks for, and nothing else, is enough.
func TestTheRightsThatAreLookedForSuffice(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the store's contract once more, with fewer rights")
	}
	rights := []string{"+@connection", "+config|get"}
	for _, words := range conn.NeededCommands("test-*") {
		name := strings.ToLower(words[0])
		if name == "xinfo" || name == "xgroup" || name == "memory" {
			name += "|" + strings.ToLower(words[1])
		}
		rights = append(rights, "+"+name)
	}
	slices.Sort(rights)
	server := redistest.Single(t, "user ann on >secret -@all ~test-*:* ~{test-*:* &test-*:* "+strings.Join(slices.Compact(rights), " "))
	url := "redis://ann:secret@" + server.Nodes[0].Addr()
	for name, cfg := range layouts {
		if testing.Short() && name != "Indexed" {
			continue
		}
		t.Run(name, func(t *testing.T) { storetest.Run(t, harness(func(*testing.T) string { return url }, cfg)) })
	}
}
