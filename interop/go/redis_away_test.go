package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/redistest"
)

// TestRedisGoesAwayAndComesBack kills Redis, and freezes it for longer than a
// broker's lease lasts, while clients produce and consume. Meanwhile requests get
// errors after which clients try again, on connections that stay, and the broker
// says once what is wrong, here and in /healthz. When Redis is back everything goes on by itself, and
// nothing acknowledged is lost.
func TestRedisGoesAwayAndComesBack(t *testing.T) {
	onlyOn(t, "redis")
	server := redistest.Single(t)
	web := fixedPort(t)
	f := startFleet(t, server.URL(), 1, "--http", web)
	broker := f.brokers[0]
	createTopic(t, f.addrs[0], fleetTopic, groupPartitions)
	createTopic(t, f.addrs[0], "aside", 1)
	wire := dial(t, broker.addr())
	w := startFleetWriters(t, f, fleetTopic)
	groups := f.groups("away-", fleetTopic)
	wantHealth(t, web, "")
	node := server.Nodes[0]
	outages := []struct {
		name       string
		away, back func()
	}{
		{"killed", node.Kill, func() { node.Start(t) }},
		{"frozen", node.Pause, node.Resume},
		{"killed again", node.Kill, func() { node.Start(t) }},
	}
	for _, o := range outages {
		before := w.history.count()
		o.away()
		wantHealth(t, web, "Redis cannot be reached")
		assert.NoError(t, asks(t, wire, false))
		o.back()
		began := time.Now()
		wantHealth(t, web, "")
		waitFor(t, "records to be acknowledged again", func() error {
			if n := w.history.count(); n < before+groupPartitions*20 {
				return fmt.Errorf("%d records, %d were when Redis went away", n, before)
			}
			return nil
		})
		goOn(t, time.Now(), groups, w)
		waitFor(t, "the connection to be served again", func() error { return asks(t, wire, true) })
		t.Logf("%s: consumption went on %s after Redis was back", o.name, time.Since(began).Round(time.Millisecond))
	}
	for what, want := range map[string]int{"Redis cannot be reached": len(outages), "Redis is back": len(outages)} {
		if n := strings.Count(broker.logs.String(), what); n != want {
			t.Errorf("the log says %d times %q, for %d outages:\n%s", n, what, len(outages), broker.logs)
		}
	}
	ends := w.finish()
	for _, g := range groups {
		g.reads(ends)
		g.commits(ends)
	}
	w.history.check(t, f.client(), fleetTopic)
	t.Logf("%d records acknowledged", w.history.count())
}

// asks produces, fetches and commits on one connection. If Redis is there the
// three should succeed, which may take a moment; if it is not they must fail, with
// errors after which clients try again.
func asks(t testing.TB, w *wire, there bool) error {
	t.Helper()
	one := batch{values: []string{"one"}}.encode()
	fetch := fetchRequest("aside", 0, 0)
	fetch.MaxWaitMillis = 100
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 7, "aside", -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "aside"
	topic.Partitions = append(topic.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	commit.Topics = append(commit.Topics, topic)
	codes := map[string]int16{
		"produce": produced(t, ask[*kmsg.ProduceResponse](w, produceRequest("aside", 0, -1, one))).ErrorCode,
		"fetch":   fetched(t, ask[*kmsg.FetchResponse](w, fetch)).ErrorCode,
		"commit":  ask[*kmsg.OffsetCommitResponse](w, commit).Topics[0].Partitions[0].ErrorCode,
	}
	for what, code := range codes {
		switch err := kerr.ErrorForCode(code); {
		case err != nil && !kerr.IsRetriable(err):
			t.Errorf("%s: %v, after which no client tries again", what, err)
		case there && err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case !there && err == nil && what != "fetch":
			t.Errorf("%s succeeds without Redis", what)
		}
	}
	return nil
}

// wantHealth waits until /healthz tells of a problem, or of none.
func wantHealth(t testing.TB, addr, problem string) {
	t.Helper()
	code := http.StatusOK
	if problem != "" {
		code = http.StatusServiceUnavailable
	}
	waitFor(t, fmt.Sprintf("/healthz to answer %d", code), func() error {
		resp, err := http.Get("http://" + addr + "/healthz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var health struct{ Problems []string }
		if err := json.NewDecoder(resp.Body).Decode(&health); err != nil {
			return err
		}
		if got := strings.Join(health.Problems, "\n"); resp.StatusCode != code || !strings.Contains(got, problem) {
			return fmt.Errorf("%d, %s", resp.StatusCode, got)
		}
		return nil
	})
}

// TestRedisSession runs the session that docs/redis.md shows.
func TestRedisSession(t *testing.T) {
	onlyOn(t, "redis")
	out, err := exec.Command(filepath.Join("..", "redis", "session.sh"), musterPath).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	assert.True(t, strings.HasSuffix(strings.TrimSpace(string(out)), "(empty array)"), "the groups are not gone:\n%s", out)
}
