//go:build unix

package broker

import (
	"flag"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/coordinator"
	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/watch"
)

var benchGroups = flag.Int("groups", 10_000, "how many groups benchmarks have")

// BenchmarkPass is a pass over groups with 10 partitions each. Each group has a member that
// has all its partitions. They rest; or something is produced to all partitions between
// two passes; or all groups commit, too.
func BenchmarkPass(b *testing.B) {
	const partitions = 10
	groups := *benchGroups
	var passed atomic.Int64
	began := time.Now()
	cfg := Config{Properties: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "group.initial.rebalance.delay.ms": "0", "muster.audit.enable": "false",
	}, Logger: slog.New(slog.DiscardHandler)}
	cfg.Clock(func() time.Time { return began.Add(time.Duration(passed.Load()) * watch.Interval) }, nil)
	broker, err := Open(b.Context(), cfg)
	assert.Must(b, err)
	defer broker.Close()
	for _, t := range []metadata.NewTopic{{Name: metadata.OffsetsTopic}, {Name: "orders", Partitions: partitions, Replication: 1}} {
		if _, errs := broker.controller.CreateTopics(b.Context(), []metadata.NewTopic{t}, false); errs[0] != nil {
			b.Fatal(errs[0])
		}
	}
	members := make([]string, groups) // Their ids, once they have joined.
	commit := func(g int, at int64) {
		b.Helper()
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation = 8, fmt.Sprintf("group-%06d", g), -1
		if members[g] != "" {
			req.Generation, req.MemberID = 1, members[g]
		}
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic = "orders"
		for p := range int32(partitions) {
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset = p, at
			topic.Partitions = append(topic.Partitions, part)
		}
		req.Topics = append(req.Topics, topic)
		resp := broker.groups.Do(b.Context(), req.Group, coordinator.Client{}, req).(*kmsg.OffsetCommitResponse)
		assert.MustEqual(b, resp.Topics[0].Partitions[0].ErrorCode, 0, "commit")
	}
	for g := range groups {
		commit(g, 0)
		members[g] = joinAlone(b, broker, fmt.Sprintf("group-%06d", g), partitions)
	}
	broker.watch.Pass(b.Context())
	assert.MustEqual(b, broker.watch.Snapshot().Groups.Len(), groups, "groups")
	produce := func() {
		for p := range int32(partitions) {
			batch, err := record.Build(record.PlainTemplate(), []record.Record{{Value: []byte("x")}})
			assert.Must(b, err)
			done := make(chan error, 1)
			broker.manager.Get("orders", p).AppendOwn(b.Context(), batch, func(_ int64, err error) { done <- err })
			assert.Must(b, (<-done))
		}
	}
	at := int64(0)
	for _, c := range []struct {
		name    string
		between func()
	}{
		{"rest", func() {}},
		{"produced", produce},
		{"committed", func() {
			at++
			for g := range groups {
				commit(g, at)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range 40 { // Until what was before does not show in rates any more.
				passed.Add(1)
				broker.watch.Pass(b.Context())
			}
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				c.between()
				runtime.GC() // What was made between passes is not theirs to clear away.
				passed.Add(1)
				began := processorTime(b)
				b.StartTimer()
				broker.watch.Pass(b.Context())
				spent += processorTime(b) - began
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// processorTime is what this process has taken of it.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skip(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// joinAlone makes a member that has all partitions of orders.
func joinAlone(b *testing.B, broker *Broker, group string, partitions int32) (id string) {
	b.Helper()
	from := coordinator.Client{ID: "app-" + group, Host: "10.0.0.1"}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = 3, group, 1_000_000, 1_000_000, "consumer"
	sub := kmsg.NewConsumerMemberMetadata()
	sub.Topics = []string{"orders"}
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub.AppendTo(nil)}}
	joined := broker.groups.Do(b.Context(), group, from, join).(*kmsg.JoinGroupResponse)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Generation, sync.MemberID = 2, group, joined.Generation, joined.MemberID
	var all []int32
	for p := range partitions {
		all = append(all, p)
	}
	has := kmsg.NewConsumerMemberAssignment()
	has.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "orders", Partitions: all}}
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: has.AppendTo(nil)}}
	assert.MustEqual(b, broker.groups.Do(b.Context(), group, from, sync).(*kmsg.SyncGroupResponse).ErrorCode, 0, "join %d, sync", joined.ErrorCode)
	return joined.MemberID
}
