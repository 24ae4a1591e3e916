package interop

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// Hostile clients whose requests are all valid. Others must not notice, and the
// broker's memory and descriptors stay within bounds.

// validMemory is the most memory that the broker may take while clients ask for
// more than anybody needs.
const validMemory = 700 << 20

// bystander is a client that others must not disturb: it writes and reads
// records, and a member of a group says that it is alive.
type bystander struct {
	t      *testing.T
	good   *goodClient
	member *wire
	beat   *kmsg.HeartbeatRequest
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// newBystander makes a client and lets it work until it is done.
func newBystander(t *testing.T, addr string) *bystander {
	t.Helper()
	createTopic(t, addr, "good", 3)
	b := &bystander{t: t, good: newGoodClient(t, addr), member: dial(t, addr)}
	b.beat = joinAlone(b.member, "bystander")
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	b.ended.Go(func() {
		for ctx.Err() == nil {
			b.good.work(ctx, 1)
			resp := ask[*kmsg.HeartbeatResponse](b.member, b.beat)
			wantCode(t, "the bystander's heartbeat", resp.ErrorCode, nil)
		}
	})
	return b
}

// done ends the work, and checks it.
func (b *bystander) done() {
	b.t.Helper()
	b.stop()
	b.ended.Wait()
	b.good.check()
	b.t.Logf("the bystander made %d rounds, the longest took %s", b.good.n, b.good.longest.Round(time.Millisecond))
}

// joinAlone makes a connection the only member of a group, and returns its
// heartbeat.
func joinAlone(w *wire, group string) *kmsg.HeartbeatRequest {
	w.t.Helper()
	joined := joinFirst(w, group, nil)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, group, joined.Generation, joined.MemberID
	wantCode(w.t, "sync "+group, ask[*kmsg.SyncGroupResponse](w, sync).ErrorCode, nil)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.Generation, beat.MemberID = 3, group, joined.Generation, joined.MemberID
	return beat
}

// joinFirst joins a group that has no members, as soon as there is a coordinator.
func joinFirst(w *wire, group string, metadata []byte) *kmsg.JoinGroupResponse {
	w.t.Helper()
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version, find.CoordinatorKey = 1, group
	for deadline := time.Now().Add(wireTimeout); ; {
		found := ask[*kmsg.FindCoordinatorResponse](w, find)
		joined := ask[*kmsg.JoinGroupResponse](w, joinRequest(group, "", metadata))
		if found.ErrorCode == 0 && joined.ErrorCode == 0 {
			return joined
		}
		assert.MustFalse(w.t, time.Now().After(deadline), "join %s: error code %d, after %d of the coordinator", group, joined.ErrorCode, found.ErrorCode)
		<-time.After(50 * time.Millisecond)
	}
}

func joinRequest(group, member string, metadata []byte) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 3, group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 300_000, 1_000_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", metadata
	req.Protocols = append(req.Protocols, p)
	return req
}

func checkMemory(t *testing.T, b *process) {
	t.Helper()
	peak := b.peakMemory()
	t.Logf("the broker took %d MB", peak>>20)
	if peak > validMemory {
		t.Errorf("the broker took %d MB of memory, more than %d", peak>>20, int64(validMemory)>>20)
	}
}

// descriptors counts the open files of the broker.
func descriptors(t *testing.T, b *process) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.pid()))
	if err != nil {
		t.Skipf("open files cannot be counted here: %v", err)
	}
	return len(files)
}

// TestRequestsThatWaitEndWithTheirClients lets many clients begin a wait and go
// away. The broker must let go of their connections, soon and not only when the
// wait would have been over.
func TestRequestsThatWaitEndWithTheirClients(t *testing.T) {
	const each = 100
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "prey", 3)
	by := newBystander(t, b.addr())
	first := dial(t, b.addr())
	joinAlone(first, "prey") // It never joins again, so that others wait.
	before := descriptors(t, b)

	var conns []net.Conn
	wait := func(req kmsg.Request) {
		w := dial(t, b.addr())
		w.sendOnly(req)
		conns = append(conns, w)
	}
	fetch := fetchRequest("prey", 0, 0, 1, 2)
	fetch.MaxWaitMillis = math.MaxInt32
	for i := range each {
		metadata := make([]byte, 100)
		if i%10 == 0 {
			metadata = make([]byte, 500_000)
		}
		wait(joinRequest("prey", "", metadata))
		wait(fetch)
	}
	waitForDescriptors(t, b, func(n int) bool { return n >= before+2*each })
	for _, c := range conns {
		c.Close()
	}
	waitForDescriptors(t, b, func(n int) bool { return n <= before+10 })
	by.done()
	checkMemory(t, b)
}

func waitForDescriptors(t *testing.T, b *process, ok func(int) bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(descriptors(t, b)); {
		if time.Now().After(deadline) {
			t.Fatalf("the broker has %d open files, a minute later", descriptors(t, b))
		}
		<-time.After(50 * time.Millisecond)
	}
}

// TestConnectionsLeaveDescriptorsToTheStore opens more connections than the broker
// may have open files. Who is connected can still make topics and write to them,
// which needs files.
func TestConnectionsLeaveDescriptorsToTheStore(t *testing.T) {
	if storeKind != "disk" {
		t.Skip("only a store on disk needs files")
	}
	limited := []string{"-c", `ulimit -n 256 && exec "$0" "$@"`, musterPath, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir()}
	b := start(t, exec.Command("sh", limited...), 1)
	w := dial(t, b.addr())
	ask[*kmsg.ApiVersionsResponse](w, kmsg.NewPtrApiVersionsRequest()) // It is accepted.
	for range 400 {
		dial(t, b.addr())
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "many", 300, 1
	create.Version, create.TimeoutMillis = 5, 30_000
	create.Topics = append(create.Topics, topic)
	created := ask[*kmsg.CreateTopicsResponse](w, create)
	wantCode(t, "create a topic", created.Topics[0].ErrorCode, nil)
	for i := range topic.NumPartitions {
		mustProduce(w, "many", i, batch{values: []string{"x"}})
	}
}

// TestFetchSessionsOfPartitionsThatDoNotExistTakeLittle makes many sessions of
// very many partitions.
func TestFetchSessionsOfPartitionsThatDoNotExistTakeLittle(t *testing.T) {
	b := serve(t, t.TempDir())
	by := newBystander(t, b.addr())
	req := fetchRequest(strings.Repeat("no such topic", 10), 0, make([]int32, 100_000)...)
	for i := range req.Topics[0].Partitions {
		req.Topics[0].Partitions[i].Partition = int32(i)
	}
	req.SessionEpoch = 0
	sessions := 0
	for range 60 {
		w := dial(t, b.addr())
		resp := ask[*kmsg.FetchResponse](w, req)
		if n := len(resp.Topics[0].Partitions); resp.ErrorCode != 0 || n != 100_000 {
			t.Fatalf("error code %d, %d partitions", resp.ErrorCode, n)
		}
		if resp.SessionID != 0 {
			sessions++
		}
		w.Close()
	}
	t.Logf("%d of 60 requests got a session", sessions)
	by.done()
	checkMemory(t, b)
}

// TestRequestsLargerThanMemoryAreTurnedAway sends requests that name far more than
// the broker has room for. Their connections end, and nothing else happens.
func TestRequestsLargerThanMemoryAreTurnedAway(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "prey", 1)
	by := newBystander(t, b.addr())
	fetch := fetchRequest("prey", 0, make([]int32, 3_000_000)...)
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Version, groups.Groups = 5, make([]string, 50_000_000)
	produce := produceRequest("prey", 0, -1, nil)
	produce.Topics[0].Partitions = make([]kmsg.ProduceRequestTopicPartition, 10_000_000)
	for _, req := range []kmsg.Request{fetch, groups, produce} {
		w := dial(t, b.addr())
		_, _ = w.Write(w.format.AppendRequest(nil, req, 1)) // It may be cut off already.
		w.wantClosed()
	}
	by.done()
	checkMemory(t, b)
}
