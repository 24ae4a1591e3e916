package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// Records of transactions are shown with what has become of these.
func TestRecordsTellOfTheirTransactions(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	put := func(id string, values ...string) *kgo.Client {
		c := client(t, b, kgo.TransactionalID(id))
		must(t, c.BeginTransaction())
		for _, v := range values {
			must(t, c.ProduceSync(t.Context(), toTopic("orders", v)).FirstErr())
		}
		return c
	}
	must(t, put("a", "kept").EndTransaction(t.Context(), kgo.TryCommit))
	must(t, put("b", "gone", "gone too").EndTransaction(t.Context(), kgo.TryAbort))
	must(t, client(t, b).ProduceSync(t.Context(), toTopic("orders", "plain")).FirstErr())
	put("c", "undecided")
	must(t, put("d", "later").EndTransaction(t.Context(), kgo.TryCommit))
	told := func(s searched) (out []string) {
		for _, r := range s.records {
			out = append(out, r.Value.Text+":"+r.Transaction)
		}
		return out
	}
	all := []string{"kept:committed", "gone:aborted", "gone too:aborted", "plain:", "undecided:open", "later:waiting"}
	// A transaction has ended when that is written down; its marker in the log may come a moment later.
	eventually(t, "the markers of the transactions that ended", func(context.Context) error {
		if got := told(searchAll(t, b, "orders", "order", "oldest")); !slices.Equal(got, all) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	for _, order := range []string{"oldest", "newest"} {
		all, committed := slices.Clone(all), []string{"kept:committed", "plain:"}
		if order == "newest" {
			slices.Reverse(all)
			slices.Reverse(committed)
		}
		if got := searchAll(t, b, "orders", "order", order); !slices.Equal(told(got), all) || got.end.Searched != 6 || *got.end.Total != 6 {
			t.Errorf("%s: %v, %+v", order, told(got), got.end)
		}
		if got := searchAll(t, b, "orders", "order", order, "isolation", "read_committed"); !slices.Equal(told(got), committed) || got.end.Searched != 2 || *got.end.Total != 2 {
			t.Errorf("%s, committed ones: %v, %+v", order, told(got), got.end)
		}
	}
}

// On Redis offsets are times: nothing is missed between them, and records are counted.
func TestRecordsAreSearchedOnRedis(t *testing.T) {
	for _, layout := range []string{"stream", "log"} {
		_, brokers := fleet(t, 2, func(c *broker.Config) {
			c.Properties["muster.http.listener"], c.Properties["muster.redis.layout"] = "127.0.0.1:0", layout
		})
		c := client(t, brokers[0], kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
		makeTopic(t, c, "orders", 4, nil)
		want := map[string]bool{}
		for i := range 60 {
			value := fmt.Sprint("v", i)
			eventually(t, "produce", func(ctx context.Context) error { return c.ProduceSync(ctx, toTopic("orders", value)).FirstErr() })
			want[value] = true
		}
		got := map[string]bool{}
		var searchedAll int64
		for _, b := range brokers {
			for _, order := range []string{"newest", "oldest"} {
				var s searched
				eventually(t, "Redis counts", func(context.Context) error {
					if s = searchAll(t, b, "orders", "limit", "9", "order", order); s.end.Total == nil {
						return fmt.Errorf("%+v", s.end)
					}
					return nil
				})
				for _, r := range s.records {
					got[r.Value.Text] = true
				}
				led := map[int32]bool{}
				for _, r := range s.records {
					led[r.Partition] = true
				}
				for _, e := range s.end.Elsewhere {
					assert.True(t, !led[e.Partition] && e.Broker != b.NodeID(), "%s: partition %d is elsewhere", layout, e.Partition)
				}
				if len(led)+len(s.end.Elsewhere) != 4 || s.end.Found != s.end.Searched || *s.end.Total != s.end.Searched || int(s.end.Searched) != len(s.records) {
					t.Errorf("%s: %v, %+v", layout, led, s.end)
				}
				if order == "newest" {
					searchedAll += s.end.Searched
				}
			}
		}
		assert.True(t, len(got) == len(want) && searchedAll == 60, "%s: found %d of %d, searched %d", layout, len(got), len(want), searchedAll)
	}
}

// A record that is very large, and one that unpacks to very much, are shown in part.
func TestVeryLargeRecordsAreShownInPart(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1", "message.max.bytes": "90000000", "socket.request.max.bytes": "104857600"})
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression()} {
		c := client(t, b, kgo.ProducerBatchMaxBytes(89_000_000), kgo.BrokerMaxWriteBytes(100_000_000), kgo.ProducerBatchCompression(codec))
		value := bytes.Repeat([]byte("0123456789abcdef"), 4<<20) // 64 MB
		must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("big"), Value: value}).FirstErr())
	}
	for _, order := range []string{"newest", "oldest"} {
		got := searchAll(t, b, "orders", "order", order, "value", "0123")
		if len(got.records) != 2 || got.records[0].Value.Size != 64<<20 || got.records[1].Value.Size != 64<<20 || got.records[0].Value.Shown != 16<<10 || got.end.Cut < 1 {
			t.Errorf("%s: %d records, %+v", order, len(got.records), got.end)
		}
	}
}

// However many search at once, some are answered, the others told to try again, and the
// broker goes on.
func TestManySearchesAtOnceAreBounded(t *testing.T) {
	b := startHTTP(t, nil)
	c := client(t, b)
	produce(t, c, "orders", 0, 500)
	codes := make(chan int, 100)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			resp, err := http.Get("http://" + b.HTTPAddr() + web.Prefix + "/topics/orders/records?jq=" + url.QueryEscape("[range(1e9)]"))
			if err != nil {
				codes <- 0
				return
			}
			_ = resp.Body.Close() // Who goes away without reading ends the search.
			codes <- resp.StatusCode
		})
	}
	produce(t, c, "orders", 500, 10)
	all.Wait()
	close(codes)
	answered := 0
	for code := range codes {
		switch code {
		case http.StatusOK:
			answered++
		case http.StatusServiceUnavailable:
		default:
			t.Errorf("one was answered with %d", code)
		}
	}
	assert.True(t, answered != 0, "nobody was answered")
	eventually(t, "a search", func(context.Context) error {
		if code, body := ask(t, b, "/topics/orders/records"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	http.DefaultClient.CloseIdleConnections()
}

// Those who search and do not read hold no place: others search meanwhile.
func TestSlowReadersKeepNobodyFromSearching(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	c := client(t, b)
	for range 8 {
		must(t, c.ProduceSync(t.Context(), toTopic("orders", strings.Repeat("x", 900_000))).FirstErr())
	}
	for range 6 { // More than may search at a time.
		conn, err := net.Dial("tcp", b.HTTPAddr())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := fmt.Fprintf(conn, "GET %s/topics/orders/records?bytes=1048576 HTTP/1.1\r\nHost: localhost\r\n\r\n", web.Prefix); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a search", func(context.Context) error {
		if code, body := ask(t, b, "/topics/orders/records?limit=1"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}

// Who reads the records of a search slowly does not keep the broker from stopping.
func TestSlowReadersDoNotKeepTheBrokerFromStopping(t *testing.T) {
	t.Parallel()
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	c := client(t, b)
	for range 8 {
		// Each of these bytes is told with six.
		must(t, c.ProduceSync(t.Context(), toTopic("orders", strings.Repeat("\x01", 900_000))).FirstErr())
	}
	conn, err := net.Dial("tcp", b.HTTPAddr())
	must(t, err)
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := fmt.Fprintf(conn, "GET %s/topics/orders/records?bytes=1048576 HTTP/1.1\r\nHost: localhost\r\n\r\n", web.Prefix); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 64<<10)); err != nil { // It is being answered.
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- b.Close() }()
	pace, late := time.NewTicker(100*time.Millisecond), time.After(time.Minute)
	defer pace.Stop()
	for {
		select {
		case err := <-stopped:
			assert.NoError(t, err)
			return
		case <-late: // By then less than half has been read.
			t.Fatal("it waits for one who reads slowly")
		case <-pace.C:
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = io.ReadFull(conn, make([]byte, 32<<10))
		}
	}
}

// Records are for those who may read the topic, and not for strangers from afar.
func TestRecordsAreForThoseWhoMayReadThem(t *testing.T) {
	b := startHTTP(t, nil)
	produce(t, client(t, b), "orders", 0, 1)
	code, body := ask(t, b, "/topics/orders/records", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.1") })
	assert.True(t, code == http.StatusForbidden && strings.Contains(body, "do not see what is in records"), "a stranger gets %d %s", code, body)
	b = startHTTP(t, map[string]string{"authorizer.class.name": "muster", "super.users": "User:jim"})
	code, body = ask(t, b, "/topics/orders/records")
	if code != http.StatusForbidden || !strings.Contains(body, `"READ"`) || !strings.Contains(body, "muster acls add") {
		t.Errorf("who may not read gets %d %s", code, body)
	}
}
