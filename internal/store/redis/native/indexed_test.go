package native

import (
	"context"
	"strconv"
	"testing"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
)

// indexed is a log of the indexed layout: two records, a marker, three records that Redis
// clients added, two records, four markers.
func indexed(t *testing.T, url string) (*bench, store.Log) {
	b := newBench(t, url, store.LayoutIndexed)
	s := redis.New(b.client, redis.Options{Prefix: b.native.prefix})
	t.Cleanup(func() { _ = s.Close() })
	ctx := context.Background()
	l, err := s.Open(ctx, b.stream.TopicPartition, 1, store.LogConfig{Layout: store.LayoutIndexed})
	must(t, err)
	add := func() {
		batch, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: 1, Value: []byte("a")}, {Timestamp: 2, Value: []byte("b"), OffsetDelta: 1}})
		must(t, err)
		_, err = l.Append(ctx, batch)
		must(t, err)
	}
	mark := func() {
		batch, err := record.BuildMarker(7, 0, record.Marker{Commit: true}, 3)
		must(t, err)
		_, err = l.Append(ctx, batch)
		must(t, err)
	}
	add()
	mark()
	for range 3 {
		b.do("XADD", "*", "value", "c")
	}
	_, err = l.(store.Refresher).Refresh(ctx)
	must(t, err)
	add()
	for range 20 { // more than are looked at at a time
		mark()
	}
	return b, l
}

// The index says where a group stands, and how many entries it has read, wherever that is.
func TestGroupOfAnIndexedTopicIsExactEverywhere(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		b, l := indexed(t, url)
		entries, err := b.do("XRANGE", "-", "+").AsXRange()
		must(t, err)
		last := entries[len(entries)-1].ID
		for offset, read := range []int{0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 7} {
			b.move("g", int64(offset))
			id := last
			if read < len(entries) {
				id = entries[max(read-1, 0)].ID
			}
			g := b.group("g")
			if g["entries-read"] != strconv.Itoa(read) || g["lag"] != strconv.Itoa(len(entries)-read) || read > 0 && g["last-delivered-id"] != id {
				t.Errorf("at offset %d: %v; want %d entries read, up to %s", offset, g, read, id)
			}
			if read == 0 {
				next, err := b.client.Do(context.Background(), b.client.B().Xreadgroup().Group("g", "c").Count(1).Streams().Key(b.key).Id(">").Build()).AsXRead()
				if err != nil || next[b.key][0].ID != entries[0].ID {
					t.Errorf("before the first entry it reads %v, %v", next, err)
				}
			}
		}
		_, end := l.Bounds()
		b.move("g", end)
		b.want("g", last, "0")

		// A group that Redis clients made is where it has read to.
		b.do("XGROUP", "CREATE", "theirs", "0")
		for i, want := range []int64{1, 2, 4, 5, 6, 7, 8} {
			b.do("XGROUP", "SETID", "theirs", entries[i].ID)
			b.wantPosition("theirs", want, true)
		}
		b.do("XGROUP", "SETID", "theirs", "0")
		b.wantPosition("theirs", 0, true)
		id, err := b.do("XADD", "*", "value", "no offset yet").ToString()
		must(t, err)
		b.do("XGROUP", "SETID", "theirs", id)
		b.wantPosition("theirs", end+1, true)
	})
}
