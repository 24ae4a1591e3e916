package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestListenersAdvertiseTheirOwnAddresses(t *testing.T) {
	b := serve(t, t.TempDir(),
		"--set", "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,BARE://127.0.0.1:0",
		"--set", "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,BARE:PLAINTEXT",
		"--set", "advertised.listeners=INSIDE://inside.example:1111,OUTSIDE://outside.example:2222",
	)
	for name, want := range map[string]string{
		"INSIDE": "inside.example:1111", "OUTSIDE": "outside.example:2222", "BARE": b.addrs["BARE"],
	} {
		assert.MustTrue(t, b.addrs[name] != "", "no listener %s in %v", name, b.addrs)
		w := dial(t, b.addrs[name])
		metadata := kmsg.NewPtrMetadataRequest()
		metadata.Version = 12
		brokers := ask[*kmsg.MetadataResponse](w, metadata).Brokers
		assert.MustEqual(t, len(brokers), 1, "%s: brokers", name)
		assert.Equal(t, net.JoinHostPort(brokers[0].Host, fmt.Sprint(brokers[0].Port)), want, "%s: Metadata", name)
		cluster := kmsg.NewPtrDescribeClusterRequest()
		described := ask[*kmsg.DescribeClusterResponse](w, cluster).Brokers
		assert.Equal(t, net.JoinHostPort(described[0].Host, fmt.Sprint(described[0].Port)), want, "%s: DescribeCluster", name)
	}
}

func TestSIGTERMDrains(t *testing.T) {
	onlyOn(t, "disk") // On Redis a broker that ends sends its clients to the others.
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "drained", 1)
	createTopic(t, b.addr(), "other", 1)
	parked, idle, busy := dial(t, b.addr()), dial(t, b.addr()), dial(t, b.addr())
	mustProduce(idle, "drained", 0, batch{values: []string{"kept"}})
	park(parked, fetchRequest("drained", 1, 0), time.Minute)
	for range 50 { // Time enough for the broker to begin with the fetch.
		mustProduce(busy, "other", 0, batch{values: []string{"busy"}})
	}
	answered := make(chan error, 1)
	go func() { answered <- produceUntilClosed(busy, "other") }()

	began := time.Now()
	b.signal(syscall.SIGTERM)
	wantCode(t, "the fetch that waited", fetched(t, next[*kmsg.FetchResponse](parked)).ErrorCode, nil)
	parked.wantClosed()
	idle.wantClosed()
	assert.NoError(t, (<-answered), "the busy connection")
	assert.NoError(t, b.wait(), "the broker ended")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the broker took %s to stop", took)
	}
	if c, err := net.Dial("tcp", b.addr()); err == nil {
		c.Close()
		t.Error("something still listens")
	}
}

// produceUntilClosed sends one Produce after another until the broker closes
// the connection, which it may do only between an answer and the next request
// that it reads: a request that was partly answered, or answered with anything
// but success, is an error.
func produceUntilClosed(w *wire, topic string) error {
	for {
		req := produceRequest(topic, 0, -1, batch{values: []string{"busy"}}.encode())
		w.nextID++
		if _, err := w.Write(w.format.AppendRequest(nil, req, w.nextID)); err != nil {
			return nil
		}
		frame, err := w.frame()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return nil
		case err != nil:
			return err
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		body, err := openResponse(frame, w.nextID, resp)
		if err == nil {
			err = resp.ReadFrom(body)
		}
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		}
		if err != nil {
			return err
		}
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	addr := startInProcess(t, "", map[string]string{"connections.max.idle.ms": "300"}).Addr()
	w := dial(t, addr)
	began := time.Now()
	ask[*kmsg.ApiVersionsResponse](w, kmsg.NewPtrApiVersionsRequest())
	w.wantClosed()
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("closed after %s, too early", took)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	for _, setting := range []string{"max.connections", "max.connections.per.ip"} {
		t.Run(setting, func(t *testing.T) {
			addr := startInProcess(t, "", map[string]string{setting: "3"}).Addr()
			var open []*wire
			for range 3 {
				w := dial(t, addr)
				ask[*kmsg.ApiVersionsResponse](w, kmsg.NewPtrApiVersionsRequest())
				open = append(open, w)
			}
			dial(t, addr).wantClosed()
			open[0].Close()
			// The broker notices the free place soon, not at once.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for !answers(addr) {
				assert.Must(t, ctx.Err(), "a free place is not used")
			}
		})
	}
}

// answers says whether the broker accepts a connection and answers on it.
func answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(rawRequest(18, 0, 1)); err != nil {
		return false
	}
	_, err = io.ReadFull(c, make([]byte, 8))
	return err == nil
}

func TestRequestsAboveTheLimitCloseTheConnection(t *testing.T) {
	addr := startInProcess(t, "", map[string]string{"socket.request.max.bytes": "10000"}).Addr()
	createTopic(t, addr, "limited", 1)
	fits := dial(t, addr)
	mustProduce(fits, "limited", 0, batch{values: []string{strings.Repeat("x", 9000)}})
	w := dial(t, addr)
	w.sendOnly(produceRequest("limited", 0, -1, batch{values: []string{strings.Repeat("x", 10_000)}}.encode()))
	w.wantClosed()
	mustProduce(fits, "limited", 0, batch{values: []string{"still open"}})
}
