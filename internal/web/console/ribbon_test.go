package console_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// worldOfLetters makes members of a client id and a number, and rebalances out of when they
// settled, who joined, and which partitions moved.
const worldOfLetters = `
const id = (client, n) => client + "-" + String(n).padStart(8, "0") + "-0000-4000-8000-000000000000";
const member = (client, n, instanceId = null) => ({memberId: id(client, n), name: client, clientId: client, instanceId, assigned: []});
const rebalance = (at, moves, triggers = []) => ({settled: new Date(at * 1000).toISOString(), entry: {moves: moves.map(([from, to], partition) => ({topic: "orders", partition, from, to})), triggers}});
const show = (members, ...rebalances) => [...owners.ownersOf({members}, rebalances.reverse()).values()].map((o) => o.letter + " " + o.colour + " " + o.client).join(", ");
const s = id("steady", 1), f1 = id("flapper", 1), f2 = id("flapper", 2), f3 = id("flapper", 3);
`

// Whoever comes back is shown as before: there are as many letters as clients, and a number
// only where two of one name were there at once.
func testLetters(t *testing.T, p *page) {
	t.Helper()
	code := script(t, "src/owners.ts", "owners") + worldOfLetters
	for _, c := range []struct{ name, of, want string }{
		{"one that comes and goes", `show([member("steady", 1), member("flapper", 3)], rebalance(100, [[s, f1]]), rebalance(200, [[f1, s]]), rebalance(300, [[s, f2]]), rebalance(400, [[f2, s]]), rebalance(500, [[s, f3]]))`,
			"A 0 steady, B 1 flapper, B 1 flapper, B 1 flapper"},
		{"one that is replaced in one rebalance", `show([member("flapper", 2)], rebalance(100, [[undefined, f1]]), rebalance(200, [[f1, f2]]))`, "A 0 flapper, A 0 flapper"},
		{"one that was there before the journal tells", `show([member("flapper", 2)], rebalance(200, [[f1, s], [s, f1]]), rebalance(300, [[f1, f2]]))`, "A 0 flapper, A 0 flapper, B 1 steady"},
		{"two at once, one of whom was there before the journal tells", `show([], rebalance(100, [[undefined, f2]]), rebalance(200, [[f2, s]]), rebalance(300, [[f1, s]]))`, "A 0 steady, B 1 flapper, B2 2 flapper"},
		{"two at once, now", `show([member("flapper", 1), member("steady", 1), member("flapper", 2)])`, "A 0 flapper, B 1 steady, A2 2 flapper"},
		{"the old one went after the new one came", `show([member("flapper", 2)], rebalance(100, [[undefined, f1], [undefined, f1]]), rebalance(200, [[f1, f2]]), rebalance(300, [[], [f1, f2]]))`, "A 0 flapper, A2 1 flapper"},
		{"two that came at once and whose end is not known", `show([], rebalance(100, [[undefined, f1], [undefined, f2]]))`, "A 0 flapper, A2 1 flapper"},
		{"one that came and got nothing", `show([member("flapper", 2)], rebalance(100, [[undefined, f1]]), rebalance(200, [[f1, s]]), rebalance(300, [], [{kind: "joined", member: f2}]))`, "A 0 flapper, B 1 steady, A 0 flapper"},
		{"one that stayed without partitions", `show([member("flapper", 2)], rebalance(100, [[undefined, f1]]), rebalance(200, [[f1, undefined]]), rebalance(300, [[undefined, f2]]), rebalance(400, [], [{kind: "left", member: f1}]))`, "A 0 flapper, A2 1 flapper"},
		{"a static member that took its place quietly", `show([member("app", 9, "worker")], rebalance(100, [[undefined, id("worker", 1)]]))`, "A 0 worker, A 0 worker"},
		{"ids without a name, of which the journal knows whose they are", `show([{memberId: "kQ3bG7tWQ2mS3n2nq1p9Zw", name: "x", clientId: "app", instanceId: null}], rebalance(100, [[undefined, "aaaaaaaaaaaaaaaaaaaaaa"]], [{kind: "joined", member: "aaaaaaaaaaaaaaaaaaaaaa", clientId: "app"}]), rebalance(200, [["aaaaaaaaaaaaaaaaaaaaaa", "kQ3bG7tWQ2mS3n2nq1p9Zw"]]))`,
			"A 0 app, A 0 app"},
		{"ids that tell nothing", `show([], rebalance(100, [[undefined, "aaaaaaaaaaaaaaaaaaaaaa"]]), rebalance(200, [["aaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbb"]]))`, "A 0 bbbbbbbbbbbbbbbbbbbbbb, B 1 aaaaaaaaaaaaaaaaaaaaaa"},
	} {
		assert.Equal(t, evaluate[string](t, p, code, c.of), c.want, "%s", c.name)
	}
}

func TestAMemberThatComesAndGoesHasOneLetter(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	if _, err := w.admin.CreateTopic(t.Context(), 4, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	w.produce(40)
	join := func(name string) *kgo.Client {
		c := w.client(kgo.ClientID(name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(100*time.Millisecond),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		must(t, c.PollRecords(t.Context(), 1).Err())
		return c
	}
	join("steady")
	for range 2 {
		join("flapper").Close()
	}
	join("flapper")
	p := browser(t, "http://"+w.broker.HTTPAddr())
	p.expected = append(p.expected, "status of 404") // Without a committed offset there is no history.
	p.open("/groups/"+group+"?tab=time", says("flapper, 3 members in turn"))
	p.shoot("flapping")
	p.quiet("flapping")
}
