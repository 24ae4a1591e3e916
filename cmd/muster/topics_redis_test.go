package main

import (
	"context"
	"testing"

	"muster/cmd/muster/internal/topics"
	"muster/internal/redistest"
)

// RECORDS is a number of records in each layout, whatever the offsets are, and after some
// were deleted. Either broker counts all partitions.
func TestTopicsInRedisHaveNumbersOfRecords(t *testing.T) {
	redis := redistest.Single(t)
	shells, _ := twoShells(t, redis)
	s := shells[0]
	for _, layout := range []string{"stream", "indexed", "log"} {
		s.run("topics", "create", layout, "-p", "2", "-c", "muster.redis.layout="+layout).ok()
		for _, partition := range []int{0, 1} {
			s.pipe(recordLines(partition, 10, 0), "produce", layout, "--json-lines").ok()
			s.pipe(recordLines(partition, 10, 0), "produce", layout, "--json-lines").ok()
		}
	}
	client := redis.Client(t)
	for _, key := range []string{"muster:stream:0", "muster:indexed:1"} {
		must(t, client.Do(context.Background(), client.B().Xtrim().Key(key).Maxlen().Threshold("17").Build()).Error())
	}
	want := map[string]int64{"stream": 37, "indexed": 37, "log": 40}
	for _, s := range shells {
		for _, l := range decode[[]topics.Listed](s.run("topics", "list", "--json")) {
			same(t, "the records of "+l.Name, *l.Records, want[l.Name])
		}
		for name, n := range want {
			same(t, "the records of "+name, *decode[[]topics.Described](s.run("topics", "describe", name, "--json"))[0].Records, n)
		}
	}
}
