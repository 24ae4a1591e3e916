package native

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
)

func TestMoverMovesOnlyToTheNewestOffset(t *testing.T) {
	s := redistest.Single(t)
	b := newBench(t, s.URL(), store.LayoutStream)
	for i := range int64(1000) {
		b.add(at(1+i, 0))
	}
	m := NewMover(b.native, MoverOptions{Every: time.Hour})
	for i := range int64(1000) {
		m.Move(b.stream, "g", at(1+i, 1))
		m.Move(b.stream, "h", at(1+i, 0))
	}
	m.Close(context.Background())
	b.want("g", "1000-0", "0")
	b.want("h", "999-1023", "1")
	if n := called(s.Nodes[0], "evalsha"); n != 1 {
		t.Errorf("2000 commits caused %d calls", n)
	}
}

func TestMoverMovesAllTheTime(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindCluster).URL(), store.LayoutStream)
	m := NewMover(b.native, MoverOptions{Every: 10 * time.Millisecond})
	defer m.Close(context.Background())
	for i := range int64(5) {
		b.add(at(1+i, 0))
		m.Move(b.stream, "g", at(1+i, 1))
		redistest.Eventually(t, "the group to move", func() bool {
			return b.group("g")["last-delivered-id"] == b.stream.IDBefore(at(1+i, 1))
		})
	}
}

func TestDestroyedGroupDoesNotComeBack(t *testing.T) {
	b, ctx := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutStream), context.Background()
	b.add(at(1, 0))
	m := NewMover(b.native, MoverOptions{Every: time.Millisecond})
	for range 50 {
		m.Move(b.stream, "g", at(1, 1))
		m.Move(b.stream, "other", at(1, 1))
		if err := m.Destroy(ctx, []store.TopicPartition{b.stream.TopicPartition}, []string{"g"}); err != nil {
			t.Fatal(err)
		}
		if b.group("g") != nil {
			t.Fatal("the group is there")
		}
	}
	m.Close(ctx)
	if b.group("g") != nil || b.group("other") == nil {
		t.Error("the wrong group is there")
	}
}

func TestMoverWaitsForRedis(t *testing.T) {
	s := redistest.Single(t)
	b := newBench(t, s.URL(), store.LayoutStream)
	b.add(at(1, 0), at(2, 0))
	var log bytes.Buffer
	m := NewMover(b.native, MoverOptions{Every: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	m.Move(b.stream, "g", at(1, 1))
	m.Move(b.stream, "h", at(1, 1))
	s.Nodes[0].Kill()
	m.round(context.Background())
	m.Move(b.stream, "h", at(2, 1))
	m.round(context.Background())
	s.Nodes[0].Start(t)
	redistest.Eventually(t, "the client to connect again", func() bool { return b.client.Do(context.Background(), b.client.B().Ping().Build()).Error() == nil })
	m.Close(context.Background())
	b.want("g", "1-0", "1")
	b.want("h", "2-0", "0")
	if log.Len() != 0 {
		t.Errorf("the mover logged: %s", log.String())
	}
}

func TestMoverLogsAnErrorOnce(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutStream)
	b.do("SET", "not a stream")
	var log bytes.Buffer
	m := NewMover(b.native, MoverOptions{Every: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		m.Move(b.stream, "g", at(1, 1))
		m.round(context.Background())
	}
	m.Close(context.Background())
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "WRONGTYPE") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

func TestMoverHoldsABoundedNumberOfMoves(t *testing.T) {
	m := NewMover(New(nil, "p"), MoverOptions{Every: time.Hour})
	for p := range int32(moverLimit + 10) {
		m.Move(redis.Stream{TopicPartition: store.TopicPartition{Topic: "t", Partition: p}}, "g", 1)
	}
	m.Move(redis.Stream{TopicPartition: store.TopicPartition{Topic: "t"}}, "g", 7)
	if len(m.waiting) != moverLimit {
		t.Errorf("%d moves wait", len(m.waiting))
	}
	if p := m.waiting[moveKey{store.TopicPartition{Topic: "t"}, "g"}]; p.offset != 7 {
		t.Errorf("a move that waits was not replaced: %+v", p)
	}
	clear(m.waiting)
	m.Close(context.Background())
}
