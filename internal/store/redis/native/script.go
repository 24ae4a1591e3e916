package native

import (
	"context"
	"crypto/sha1"
	"encoding/hex"

	"github.com/redis/rueidis"
)

// script is a Lua script that is called many times at once. Package rueidis can
// do that too, but loads the script into every node first, each time, and fails
// if one of them is away.
type script struct {
	text, sha string
}

// scriptCall is one call of a script.
type scriptCall struct {
	keys, args []string
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// each calls the script for all calls, in pipelines. A server that does not
// have it, after a restart or a failover, is given it with the call.
func (s *script) each(ctx context.Context, client rueidis.Client, calls []scriptCall) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, 0, len(calls))
	for chunk := calls; len(chunk) > 0; chunk = chunk[min(pipelineLength, len(chunk)):] {
		commands := make(rueidis.Commands, min(pipelineLength, len(chunk)))
		for i, c := range chunk[:len(commands)] {
			commands[i] = client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
		}
		results = append(results, client.DoMulti(ctx, commands...)...)
	}
	var again []int
	var commands rueidis.Commands
	for i, r := range results {
		if reply, ok := rueidis.IsRedisErr(r.Error()); ok && reply.IsNoScript() {
			c := calls[i]
			again = append(again, i)
			commands = append(commands, client.B().Eval().Script(s.text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build())
		}
	}
	if len(commands) > 0 {
		for i, r := range client.DoMulti(ctx, commands...) {
			results[again[i]] = r
		}
	}
	return results
}
