package conn

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// NeededCommands lists what a broker runs, each with arguments as it gives them: the rights of a
// user are about commands, keys and channels. A stream's key is a prefix and a name; the keys of
// its partition that are not for others have that in braces.
func NeededCommands(prefix string) [][]string {
	stream, hidden := prefix+":t", "{"+prefix+":t}:m"
	var list [][]string
	for _, of := range []struct{ key, commands string }{
		{"", "EVAL x 0|EVALSHA x 0|MULTI|EXEC|TIME|WAIT 0 1|PING|SCAN 0"},
		{stream, "XADD K * a b|XRANGE K - +|XREVRANGE K + -|XREAD STREAMS K 0|XLEN K|XDEL K 0-1|XTRIM K MAXLEN 0|XSETID K 0-1|XPENDING K g|" +
			"XINFO STREAM K|XINFO GROUPS K|XINFO CONSUMERS K g|XGROUP CREATE K g 0|XGROUP SETID K g 0|XGROUP DESTROY K g|" +
			"XGROUP CREATECONSUMER K g c|XGROUP DELCONSUMER K g c|EXISTS K|TYPE K|UNLINK K|MEMORY USAGE K|RENAME K " + hidden},
		{hidden, "XADD K * a b|HSET K a b|HSETNX K a b|HGET K a|HMGET K a|HGETALL K|HDEL K a|HINCRBY K a 1|" +
			"ZADD K 0 a|ZRANGE K 0 1|ZREM K a|ZREMRANGEBYSCORE K 0 1|SADD K a|SREM K a|SMEMBERS K|SISMEMBER K a|" +
			"SET K a|GET K|MGET K|DEL K|EXPIRE K 1|PEXPIRE K 1|PTTL K|PERSIST K|RENAMENX K " + stream},
		{prefix + ":__assigned", "PUBLISH K a|SUBSCRIBE K"},
	} {
		for command := range strings.SplitSeq(of.commands, "|") {
			words := strings.Fields(command)
			for i, w := range words {
				if w == "K" && i > 0 {
					words[i] = of.key
				}
			}
			list = append(list, words)
		}
	}
	return list
}

// rightsScript returns which of some commands the user may not run. The words of each end with
// a line feed. A command that the server does not know is none that the user lacks.
const rightsScript = `
local missing = {}
for i, command in ipairs(ARGV) do
  local words = {}
  for w in string.gmatch(command, '([^\n]*)\n') do words[#words + 1] = w end
  local known, may = pcall(redis.acl_check_cmd, unpack(words))
  if known and not may then missing[#missing + 1] = i end
end
return missing
`

// CheckRights fails if the user of a client may not run all that a broker does, on the keys and
// the channel of a prefix. A script may have run halfway when it comes to what it lacks.
func CheckRights(ctx context.Context, client rueidis.Client, prefix string) error {
	needed := NeededCommands(prefix)
	args := make([]string, len(needed))
	for i, words := range needed {
		args[i] = strings.Join(words, "\n") + "\n"
	}
	for address, node := range client.Nodes() {
		numbers, err := node.Do(ctx, node.B().Eval().Script(rightsScript).Numkeys(0).Arg(args...).Build()).AsIntSlice()
		var missing []string
		switch reply, ok := rueidis.IsRedisErr(err); {
		case ok && strings.HasPrefix(reply.Error(), "NOPERM"):
			missing = []string{"EVAL"}
		case err != nil:
			continue // Some servers cannot tell, and one that is away shows elsewhere.
		}
		for _, n := range numbers {
			missing = append(missing, commandText(needed[n-1], prefix))
		}
		if len(missing) > 0 {
			return rightsError(ctx, node, address, prefix, missing)
		}
	}
	return nil
}

// commandText names a command for people: with its subcommand, and the keys that it is for.
func commandText(words []string, prefix string) string {
	name := words[0]
	if name == "XINFO" || name == "XGROUP" || name == "MEMORY" {
		name += " " + words[1]
	}
	for _, w := range words[1:] {
		switch {
		case strings.HasPrefix(w, "{"):
			return name + " on {" + prefix + ":*"
		case strings.HasPrefix(w, prefix+":"):
			return name + " on " + prefix + ":*"
		}
	}
	return name
}

// mostMissing is how many commands an error names. If there are more, it is probably the keys.
const mostMissing = 8

func rightsError(ctx context.Context, node rueidis.Client, address, prefix string, missing []string) error {
	if more := len(missing) - mostMissing; more > 0 {
		missing = append(missing[:mostMissing], fmt.Sprintf("and %d more", more))
	}
	user, err := node.Do(ctx, node.B().AclWhoami().Build()).ToString()
	if err != nil {
		user = "<user>"
	}
	return fmt.Errorf("user %s of redis at %s may not run %s; give it what muster needs: ACL SETUSER %s ~%s:* ~{%s:* &%s:* +@all -@admin -@dangerous +info +role",
		user, address, strings.Join(missing, ", "), user, prefix, prefix, prefix)
}
