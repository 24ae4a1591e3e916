package main

import (
	"context"
	"strings"
	"testing"

	"muster/internal/redistest"
)

// In layout stream offsets stand for ids of entries, with gaps of millions in
// between. Two brokers share a Redis here: either can count, whoever leads.
func TestGroupsLagInRedisIsANumberOfRecords(t *testing.T) {
	redis := redistest.Single(t)
	shells, _ := twoShells(t, redis, "group.initial.rebalance.delay.ms", "0")
	s := shells[0]
	s.run("topics", "create", "orders", "-p", "4", "-c", "muster.redis.layout=stream").ok()
	s.run("topics", "create", "dense", "-p", "1", "-c", "muster.redis.layout=log").ok()
	var lines strings.Builder
	for partition := range 4 {
		lines.WriteString(recordLines(partition, 10, 0))
	}
	s.pipe(lines.String(), "produce", "orders", "--json-lines").ok()
	s.pipe(recordLines(0, 9, 0), "produce", "dense", "--json-lines").ok()
	c := s.member("billing", []string{"orders", "dense"})
	s.take(c, 49)
	c.Close()
	s.pipe(lines.String()+lines.String()+recordLines(2, 5, 0), "produce", "orders", "--json-lines").ok()
	s.pipe(recordLines(0, 3, 0), "produce", "dense", "--json-lines").ok()

	for _, s := range shells {
		g := s.describe("billing")
		var lags []int64
		for _, p := range g.Partitions {
			if p.Lag == nil || p.Committed == nil {
				t.Fatalf("%s is %+v", p.Name(), p)
			}
			lags = append(lags, *p.Lag)
			if p.Topic == "orders" && *p.LogEnd-*p.Committed <= *p.Lag {
				t.Errorf("%s has no gaps: %d to %d", p.Name(), *p.Committed, *p.LogEnd)
			}
		}
		if want := []int64{3, 20, 20, 25, 20}; len(lags) != len(want) || [5]int64(lags) != [5]int64(want) {
			t.Errorf("the lags are %v, want %v", lags, want)
		}
		same(t, "the total lag", *g.TotalLag, 88)
		says(t, s.run("groups", "list").ok(), "         88            0\n")
	}

	client := redis.Client(t)
	must(t, client.Do(context.Background(), client.B().Xtrim().Key("muster:orders:1").Maxlen().Threshold("7").Build()).Error())
	same(t, "the lag after a Redis client trimmed a stream", *s.describe("billing").TotalLag, 75)
}
