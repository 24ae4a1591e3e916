package redis

import (
	"slices"
	"strings"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store/redis/conn"
)

// limited starts a Redis and returns the URL of a user who may run what CheckRights looks
// for, and nothing else.
func limited(t *testing.T) string {
	t.Helper()
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
	return "redis://ann:secret@" + server.Nodes[0].Addr()
}
