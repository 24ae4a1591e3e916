package main

import (
	"context"
	"strings"
	"testing"

	"muster"
	"muster/cmd/muster/internal/topics"
	"muster/internal/assert"
	"muster/internal/redistest"
)

// Two brokers share a Redis: either checks all partitions, whoever leads them.
func TestTopicsCheck(t *testing.T) {
	redis := redistest.Single(t)
	shells, _ := twoShells(t, redis)
	s := shells[0]
	s.run("topics", "create", "orders", "-p", "2", "-c", "muster.redis.layout=indexed").ok()
	s.run("topics", "create", "old", "-p", "1", "-c", "muster.redis.layout=stream").ok()
	for partition := range 2 {
		s.pipe(recordLines(partition, 10, 0), "produce", "orders", "--json-lines").ok()
	}
	s.pipe(recordLines(0, 1, 0), "produce", "old", "--json-lines").ok()
	client := redis.Client(t)
	for _, s := range shells {
		s.run("topics", "check", "orders").prints("" +
			"PARTITION  LAYOUT   LOG START  LOG END  RECORDS  DELETED  FINDINGS\n" +
			"        0  indexed          0       10       10        0         0\n" +
			"        1  indexed          0       10       10        0         0\n")
	}
	for _, c := range decode[[]topics.Checked](s.run("topics", "check", "orders", "--json")) {
		assert.True(t, c.NotChecked == nil && *c.Records == 10 && c.Findings != nil && len(c.Findings) == 0, "%+v", c)
	}
	says(t, s.run("topics", "check", "old").ok(), "stream          -        -        -        -         -\n", "not checked: in layout stream")

	must(t, client.Do(context.Background(), client.B().Xdel().Key("{muster:orders:1}:i").Id("10-0").Build()).Error())
	for _, s := range shells {
		r := s.run("topics", "check", "orders").fails(exitFailed, "2 findings in 1 partition")
		says(t, r.stdout, "\norders-1:\n  ", "  {muster:orders:1}:i has no entry that ends at offset 10, where the log does\n")
		assert.False(t, strings.Contains(r.stdout, "orders-0:"), "it finds something in partition 0:\n%s", r.stdout)
	}
	s.run("topics", "check", "orders", "--partition", "0").ok()
	s.run("topics", "check", "orders", "--partition", "1").fails(exitFailed, "2 findings in 1 partition")
	s.run("topics", "check", "orders", "--partition", "2").fails(exitUsage, "topic orders has no partition 2: it has 2 partitions")
	s.run("topics", "check", "nope").fails(exitFailed, `there is no topic "nope"`)
}

// More records than the broker looks at for one request.
func TestTopicsCheckGoesOnUntilTheEnd(t *testing.T) {
	redis := redistest.Single(t)
	s := &shell{t, startBroker(t, muster.Config{Redis: redis.URL()}).Addr()}
	s.run("topics", "create", "orders", "-p", "1", "-c", "muster.redis.layout=indexed").ok()
	s.pipe(strings.Repeat("v\n", 45_000), "produce", "orders").ok()
	s.run("topics", "check", "orders").prints("" +
		"PARTITION  LAYOUT   LOG START  LOG END  RECORDS  DELETED  FINDINGS\n" +
		"        0  indexed          0    45000    45000        0         0\n")
}

func TestTopicsCheckWithoutRedis(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "orders", "-p", "3").ok()
	out := s.run("topics", "check", "orders").ok()
	says(t, out, "        2  -               -        -        -        -         -\n", "not checked: its records are not in Redis")
	assert.Equal(t, strings.Count(out, "not checked"), 1, "it says the same twice:\n%s", out)
}
