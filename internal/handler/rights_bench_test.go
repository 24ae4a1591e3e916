package handler_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/handler"
)

// tenThousand are rules of 1,000 users, and for alice what she needs of topic t.
func tenThousand() []auth.Rule {
	rules := []auth.Rule{rule(alice, auth.Allow, auth.Read, auth.Topic, "t"), rule(alice, auth.Allow, auth.Write, auth.Topic, "t")}
	for i := 0; len(rules) < 10_000; i++ {
		r := rule(auth.User(fmt.Sprintf("user-%d", i%1000)), auth.Allow, auth.Read, auth.Topic, fmt.Sprintf("team-%d.orders.%d", i%97, i))
		rules = append(rules, r)
		r.Pattern, r.Operation, r.Name = auth.Prefixed, auth.Write, fmt.Sprintf("team-%d.app-%d.", i%97, i)
		rules = append(rules, r)
		r.Principal, r.Name = alice, fmt.Sprintf("t%d", i)
		rules = append(rules, r)
	}
	return rules[:10_000]
}

// benchmarkRights serves a request without an authorizer, and with one and 10,000 rules.
func benchmarkRights(b *testing.B, request func(w *world) kmsg.Request) {
	run := func(b *testing.B, w *world) {
		req := request(w)
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
		own := make([]byte, len(frame))
		b.ReportAllocs()
		for b.Loop() {
			copy(own, frame) // The handler may change what it is given.
			resp, err := w.h.Serve(b.Context(), handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: alice}, own)
			if err != nil {
				b.Fatal(err)
			}
			if resp.Pending() {
				<-resp.Ready()
			}
			resp.Release()
		}
	}
	b.Run("rules=none", func(b *testing.B) { run(b, newWorld(b)) })
	b.Run("rules=10000", func(b *testing.B) {
		w := newGuardedWorld(b)
		w.allow(tenThousand()...)
		run(b, w.world)
	})
}

func BenchmarkProduceWithRules(b *testing.B) {
	benchmarkRights(b, func(w *world) kmsg.Request { return w.produceRequest(9, 0) })
}

func BenchmarkFetchWithRules(b *testing.B) {
	benchmarkRights(b, func(w *world) kmsg.Request {
		(&guardedWorld{w}).as(root, w.produceRequest(9, 0, 1))
		req := waitingFetch(0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
		second := req.Topics[0].Partitions[0]
		second.Partition = 1
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, second)
		return req
	})
}
