package handler_test

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

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

// rightsSlice is how many requests are served at a time.
const rightsSlice = 200

// benchmarkRights serves requests of connections to two brokers in turn: one without an
// authorizer, and one with 10,000 rules. What it reports is the processor's time of its own
// thread, which depends little on what else the machine does, and of the ratios of any two
// turns the median: how much more the one with rules takes.
func benchmarkRights(b *testing.B, request func(w *world) kmsg.Request) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	guarded := newGuardedWorld(b)
	guarded.allow(tenThousand()...)
	worlds := []*world{newWorld(b), guarded.world}
	times := make([][]float64, len(worlds))
	serve := make([]func(), len(worlds))
	for i, w := range worlds {
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, request(w), 7)[4:]
		own := make([]byte, len(frame))
		origin := handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: alice, Conn: newFakeConn()}
		serve[i] = func() {
			copy(own, frame) // The handler may change what it is given.
			resp, err := w.h.Serve(b.Context(), origin, own)
			must(b, err)
			if resp.Pending() {
				<-resp.Ready()
			}
			resp.Release()
		}
	}
	for b.Loop() {
		for i := range worlds {
			before := used(b)
			for range rightsSlice {
				serve[i]()
			}
			times[i] = append(times[i], float64(used(b)-before)/rightsSlice)
		}
	}
	ratios := make([]float64, len(times[0]))
	for i := range ratios {
		ratios[i] = times[1][i] / times[0][i]
	}
	b.ReportMetric(median(times[0]), "ns/none")
	b.ReportMetric(median(times[1]), "ns/rules")
	b.ReportMetric(100*(median(ratios)-1), "%more")
}

func median(s []float64) float64 {
	slices.Sort(s)
	return s[len(s)/2]
}

// used is how long this thread has used the processor.
func used(b *testing.B) time.Duration {
	var at syscall.Timespec
	const ofThread = 3 // CLOCK_THREAD_CPUTIME_ID
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, ofThread, uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
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
