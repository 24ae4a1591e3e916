package broker_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/redistest"
)

// watchMemory reports the largest heap beyond what there is now, until it is stopped.
func watchMemory(t *testing.T) (stop func() (megabytes int)) {
	t.Helper()
	before := heap()
	ctx, cancel := context.WithCancel(t.Context())
	most := make(chan uint64)
	go func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		var m runtime.MemStats
		largest := before
		for ctx.Err() == nil {
			<-look.C
			runtime.ReadMemStats(&m)
			largest = max(largest, m.HeapAlloc)
		}
		most <- largest
	}()
	return func() int {
		cancel()
		return int((<-most - before) >> 20)
	}
}

// bomb is a batch that takes next to nothing, and unpacks to records of a megabyte.
func bomb(t *testing.T, megabytes int) []byte {
	t.Helper()
	tmpl := record.PlainTemplate()
	tmpl.Codec = record.ZSTD
	recs := make([]record.Record, megabytes)
	value := make([]byte, 1<<20)
	for i := range recs {
		recs[i] = record.Record{OffsetDelta: int32(i), Timestamp: time.Now().UnixMilli(), Value: value}
	}
	b, err := record.Build(tmpl, recs)
	must(t, err)
	return b
}

func produceRequest(topic string, batch []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 60_000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{p}}}
	return req
}

// Batches that unpack to very much cost the broker no more than its share of memory for
// that, those that are too large are refused, and another producer goes on.
func TestSmallBatchesThatUnpackToMuchDoNotTakeTheMemory(t *testing.T) {
	s := redistest.Single(t)
	b := start(t, map[string]string{"muster.store": "redis", "muster.redis.url": s.URL(), "muster.redis.prefix": redistest.Prefix(t)})
	good := client(t, b)
	produce(t, good, "orders", 0, 1)
	for i := range 12 {
		produce(t, good, fmt.Sprint("bombed-", i), 0, 1)
	}
	for name, c := range map[string]struct {
		attackers, megabytes int
		want                 *kerr.Error
	}{"too large": {12, 200, kerr.MessageTooLarge}, "large": {4, 30, nil}} {
		batch := bomb(t, c.megabytes)
		stop := watchMemory(t)
		var all sync.WaitGroup
		for i := range c.attackers {
			all.Go(func() {
				a, err := stranded(b.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				defer a.Close()
				resp, err := a.ask(produceRequest(fmt.Sprint("bombed-", i), append([]byte(nil), batch...)))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
				got := kerr.ErrorForCode(p.ErrorCode)
				// So much at once takes a busy Redis longer than it is waited for: a producer tries again.
				for tries := 0; c.want == nil && kerr.IsRetriable(got) && tries < 600; tries++ {
					<-time.After(100 * time.Millisecond)
					if resp, err = a.ask(produceRequest(fmt.Sprint("bombed-", i), append([]byte(nil), batch...))); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					got = kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
				}
				assert.False(t, got != error(c.want) && (got != nil || c.want != nil), "%s: %v", name, got)
			})
		}
		var slowest time.Duration
		for i := range 20 {
			begun := time.Now()
			produce(t, good, "orders", 1+i, 1)
			slowest = max(slowest, time.Since(begun))
		}
		all.Wait()
		grown := stop()
		t.Logf("%s: %d batches of %d KB that unpack to %d MB: %d MB more memory at most; the slowest of 20 good appends took %v",
			name, c.attackers, len(batch)>>10, c.megabytes, grown, slowest)
		assert.True(t, grown <= 600, "%s: %d MB more memory", name, grown)
	}
}

// A producer's quota counts what is stored of packed records that are unpacked.
func TestAProducerIsHeldToWhatIsStoredOfItsRecords(t *testing.T) {
	clock := newQuotaClock()
	s := redistest.Single(t)
	b := start(t, map[string]string{"muster.store": "redis", "muster.redis.url": s.URL(), "muster.redis.prefix": redistest.Prefix(t)}, clock.set)
	const rate = 1 << 20
	produce(t, client(t, b), "orders", 0, 1)
	limit(t, b, "app", metadata.ProducerByteRate, rate)
	c := client(t, b, kgo.ClientID("app"), kgo.MaxVersions(kversion.V2_8_0())) // It names topics.
	resp, err := produceRequest("orders", bomb(t, 30)).RequestWith(t.Context(), c)
	must(t, err)
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(p.ErrorCode))
	}
	if wait := time.Duration(resp.ThrottleMillis) * time.Millisecond; wait < 15*time.Second {
		t.Errorf("for 30 MB at 1 MB/s it is told to wait %v", wait)
	}
}

// Half-sent requests of one client do not hold up another, though they ask for more memory
// than there is for all: some of them give way, while none ends for the time that it takes.
func TestHalfSentRequestsDoNotHoldUpAnother(t *testing.T) {
	b := start(t, map[string]string{"message.max.bytes": "8000000"}, (*broker.Config).PatientWithFrames)
	good := client(t, b, kgo.ProducerBatchMaxBytes(4<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	produce(t, good, "orders", 0, 1)
	const size, all = 64 << 20, 8 // All of the 512 MB.
	ended := make(chan bool, all) // whether the connection was closed before all but the last byte was sent
	for range all {
		c, err := net.Dial("tcp", b.Addr())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		go func() {
			part := make([]byte, 1<<20)
			_, err := c.Write(binary.BigEndian.AppendUint32(nil, size))
			for sent := 0; err == nil && sent < size-1; sent += len(part) {
				_, err = c.Write(part[:min(len(part), size-1-sent)])
			}
			ended <- err != nil
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cut := 0
	for i := range all + 1 {
		appended := make(chan error, 1)
		good.Produce(ctx, &kgo.Record{Topic: "orders", Value: make([]byte, 3<<20)}, func(_ *kgo.Record, err error) { appended <- err })
		select {
		case err := <-appended:
			must(t, err)
		case <-ctx.Done(): // A client does not give up what it has sent.
			t.Fatalf("no append while %d of %d requests were half sent", all-i, all)
		}
		if i == all {
			break
		}
		select {
		case early := <-ended:
			if early {
				cut++
			}
		case <-ctx.Done():
			t.Fatalf("%d of %d half-sent requests hold up each other", all-i, all)
		}
	}
	t.Logf("%d of %d half-sent requests gave way before their end", cut, all)
	assert.True(t, cut != 0, "none of the half-sent requests gave way")
}

// Members with very much metadata are refused, so that they take neither memory nor disk.
func TestMembersWithMuchMetadataAreRefused(t *testing.T) {
	b := start(t, map[string]string{"muster.groups.max.bytes": "20000000", "group.initial.rebalance.delay.ms": "0"})
	good := client(t, b)
	produce(t, good, "orders", 0, 1)
	commit(t, good, "billing", "orders", 0, 1) // Now there are coordinators.
	stop := watchMemory(t)
	outcomes := map[int16]int{}
	for i := range 60 {
		a, err := stranded(b.Addr())
		must(t, err)
		t.Cleanup(func() { a.Close() })
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version, req.Group, req.ProtocolType = 3, fmt.Sprint("g", i), "consumer"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 1_800_000, 1_800_000
		size := 50_000_000
		if i >= 10 {
			size = 1_000_000
		}
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, size)}}
		resp, err := a.ask(req)
		for err == nil && resp.(*kmsg.JoinGroupResponse).ErrorCode == kerr.CoordinatorLoadInProgress.Code {
			resp, err = a.ask(req)
		}
		must(t, err)
		outcomes[resp.(*kmsg.JoinGroupResponse).ErrorCode]++
	}
	t.Logf("%v; %d MB more memory at most", outcomes, stop())
	assert.True(t, outcomes[-1] == 10 && outcomes[0] == 19 && outcomes[15] == 31, "outcomes by error: %v", outcomes)
}
