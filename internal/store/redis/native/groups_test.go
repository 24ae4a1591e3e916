package native

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
)

// bench is a stream that a test fills as it likes, and its groups.
type bench struct {
	t      *testing.T
	client rueidis.Client
	native *Groups
	stream redis.Stream
	key    string
}

func newBench(t *testing.T, url string, layout store.Layout) *bench {
	t.Helper()
	client, prefix := connect(t, url), redistest.Prefix(t)
	b := &bench{t: t, client: client, native: New(client, prefix)}
	b.stream = redis.Stream{TopicPartition: store.TopicPartition{Topic: "orders", Partition: 3}, Layout: layout}
	b.key = streamKey(prefix, b.stream.TopicPartition)
	return b
}

func streamKey(prefix string, tp store.TopicPartition) string { return redis.KeysOf(prefix, tp).Stream }

// do sends any command about the stream, and returns what it replies.
func (b *bench) do(command string, args ...string) rueidis.RedisResult {
	b.t.Helper()
	words := append([]string{command, b.key}, args...)
	if command == "XGROUP" || command == "XINFO" { // They have a word before the key.
		words = append([]string{command, args[0], b.key}, args[1:]...)
	}
	r := b.client.Do(context.Background(), b.client.B().Arbitrary(words[:1]...).Args(words[1:]...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		b.t.Fatalf("%q: %v", words, err)
	}
	return r
}

// add appends entries with the ids of offsets.
func (b *bench) add(offsets ...int64) {
	b.t.Helper()
	commands := make(rueidis.Commands, len(offsets))
	for i, o := range offsets {
		commands[i] = b.client.B().Xadd().Key(b.key).Id(b.stream.IDBefore(o+1)).FieldValue().FieldValue("v", "x").Build()
	}
	for _, r := range b.native.doMulti(context.Background(), commands) {
		if err := r.Error(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) move(group string, offset int64) {
	b.t.Helper()
	if err := b.native.MoveGroup(context.Background(), b.stream, group, offset); err != nil {
		b.t.Fatal(err)
	}
}

// group returns what XINFO GROUPS says, nothing if there is no such group.
func (b *bench) group(name string) map[string]string {
	b.t.Helper()
	groups, err := b.do("XINFO", "GROUPS").ToArray()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, g := range groups {
		fields, err := g.AsMap()
		if err != nil {
			b.t.Fatal(err)
		}
		found := make(map[string]string)
		for field, value := range fields {
			switch n, err := value.ToInt64(); {
			case value.IsNil():
				found[field] = "unknown"
			case err == nil:
				found[field] = strconv.FormatInt(n, 10)
			default:
				found[field], _ = value.ToString()
			}
		}
		if found["name"] == name {
			return found
		}
	}
	return nil
}

// want demands a group's place and lag.
func (b *bench) want(group, id, lag string) {
	b.t.Helper()
	g := b.group(group)
	if g["last-delivered-id"] != id || g["lag"] != lag {
		b.t.Errorf("group %s is at %s and lags %s (entries-read %s), not at %s lagging %s",
			group, g["last-delivered-id"], g["lag"], g["entries-read"], id, lag)
	}
}

func (b *bench) wantPosition(group string, offset int64, ok bool) {
	b.t.Helper()
	p, err := b.native.Positions(context.Background(), []redis.Stream{b.stream}, group)
	if err != nil || p[0].OK != ok || ok && p[0].Offset != offset {
		b.t.Errorf("group %s has position %+v, %v, not %d %v", group, p, err, offset, ok)
	}
}

// at returns the offset of a sequence in a millisecond, in layout stream.
func at(ms, seq int64) int64 { return ms<<10 | seq }

func TestGroupFollowsCommits(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		b := newBench(t, url, store.LayoutStream)
		b.move("g", 0) // There is no stream yet, and none must come of it.
		if n, err := b.do("EXISTS").ToInt64(); n != 0 || err != nil {
			t.Fatal("moving a group made a stream")
		}
		b.add(at(1000, 0), at(1000, 1), at(1001, 0), at(1005, 0), at(1005, 1))
		b.move("g", 0)
		b.want("g", "0-0", "5")
		b.move("g", at(1000, 0)) // the log start offset
		b.want("g", "999-1023", "5")
		b.move("g", at(1000, 2))
		b.want("g", "1000-1", "3")
		b.move("g", at(1005, 1))
		b.want("g", "1005-0", "1")
		b.move("g", at(1005, 2)) // the log end offset
		b.want("g", "1005-1", "0")
		b.add(at(1006, 0))
		b.want("g", "1005-1", "1")
		b.move("g", at(1000, 1)) // a rewind
		b.want("g", "1000-0", "5")
		b.move("g", at(2000, 0)) // beyond the end
		b.want("g", "1999-1023", "0")
	})
}

func TestGroupInLayoutLogLagsInBatches(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutLog)
	for _, next := range []string{"10-0", "20-0", "30-0"} { // Batches of ten records each.
		b.do("XADD", next, "b", "x")
	}
	b.move("g", 0)
	b.want("g", "0-0", "3")
	b.move("g", 10)
	b.want("g", "10-0", "2")
	b.move("g", 15) // in the midst of a batch, which is not done then
	b.want("g", "15-0", "2")
	b.move("g", 30)
	b.want("g", "30-0", "0")
}

func TestLagStaysTrueWhateverRedisClientsDo(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutStream)
	for i := range int64(10) {
		b.add(at(1000+i, 0))
	}
	b.move("g", at(1003, 1))
	b.want("g", "1003-0", "6")

	b.do("XADD", "*", "v", "foreign")
	b.want("g", "1003-0", "7")

	b.do("XTRIM", "MINID", "1002-0") // behind the group
	b.want("g", "1003-0", "7")
	b.do("XTRIM", "MINID", "1006-0") // past the group
	b.move("g", at(1003, 1))
	b.want("g", "1003-0", "5")

	b.do("XDEL", "1008-0") // ahead of the group: Redis gives up on the lag of groups before it
	b.move("g", at(1003, 1))
	b.want("g", "1003-0", "unknown")
	b.move("g", at(1008, 1))
	b.want("g", "1008-0", "unknown") // at the deleted entry itself, too
	b.move("g", at(1009, 1))
	b.want("g", "1009-0", "1")
	b.do("XDEL", "1006-0")
	b.want("g", "1009-0", "1")

	b.do("XTRIM", "MAXLEN", "0")
	b.move("g", at(1009, 1))
	b.want("g", "1009-0", "0")
}

func TestStreamKeepsTheLayoutItWasMadeWith(t *testing.T) {
	b, ctx := newBench(t, redistest.Shared(t, redistest.KindCluster).URL(), store.LayoutStream), context.Background()
	made := []redis.Stream{{Layout: store.LayoutLog}, {Layout: store.LayoutStream, SequenceBits: 4}}
	for i := range made {
		made[i].TopicPartition = store.TopicPartition{Topic: "t", Partition: int32(i)}
		k := redis.KeysOf(b.native.prefix, made[i].TopicPartition)
		must(t, b.client.Do(ctx, b.client.B().Hset().Key(k.Meta).FieldValue().
			FieldValue("layout", string(made[i].Layout)).FieldValue("bits", "4").Build()).Error())
		b.stream, b.key = made[i], k.Stream
		b.add(17, 18, 19)
		b.stream.Layout, b.stream.SequenceBits = store.LayoutStream, 0 // what the topic's settings say now
		must(t, b.native.CreateGroup(ctx, b.stream, "g", 18))
		b.want("g", made[i].IDBefore(18), "2")
		b.move("g", 19)
		b.want("g", made[i].IDBefore(19), "1")
		b.do("XGROUP", "CREATE", "theirs", made[i].IDBefore(18))
		b.wantPosition("theirs", 18, true)
	}
}

func TestPendingEntriesOfRedisConsumersAreLeftAlone(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutStream)
	b.add(at(1, 0), at(2, 0), at(3, 0))
	b.do("XGROUP", "CREATE", "g", "0")
	read := b.client.B().Xreadgroup().Group("g", "consumer").Count(2).Streams().Key(b.key).Id(">").Build()
	if err := b.client.Do(context.Background(), read).Error(); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{at(3, 1), 0, at(2, 1)} {
		b.move("g", offset)
		if g := b.group("g"); g["pending"] != "2" || g["consumers"] != "1" {
			t.Errorf("after moving to %d: %v", offset, g)
		}
	}
	b.want("g", "2-0", "1")
}

func TestRedisGroupGivesAKafkaGroupItsFirstPosition(t *testing.T) {
	for _, layout := range []store.Layout{store.LayoutStream, store.LayoutLog} {
		t.Run(string(layout), func(t *testing.T) {
			b := newBench(t, redistest.Shared(t, redistest.KindCluster).URL(), layout)
			b.wantPosition("theirs", 0, false) // There is no stream.
			b.add(at(1, 0), at(2, 0), at(3, 0))
			b.do("XGROUP", "CREATE", "theirs", "0")
			b.wantPosition("theirs", 0, true)
			b.do("XGROUP", "SETID", "theirs", b.stream.IDBefore(at(2, 1)))
			b.wantPosition("theirs", at(2, 1), true)
			b.do("XGROUP", "SETID", "theirs", "$")
			b.wantPosition("theirs", at(3, 1), true)

			ctx := context.Background()
			if err := b.native.CreateGroup(ctx, b.stream, "theirs", at(1, 1)); err != nil {
				t.Fatal(err) // It exists, which is no error, and it stays.
			}
			b.wantPosition("theirs", at(3, 1), true)
			b.move("theirs", at(1, 1)) // It is theirs even when we move it.
			b.wantPosition("theirs", at(1, 1), true)

			if err := b.native.CreateGroup(ctx, b.stream, "ours", at(2, 1)); err != nil {
				t.Fatal(err)
			}
			b.want("ours", b.stream.IDBefore(at(2, 1)), "1")
			b.wantPosition("ours", 0, false)
			b.wantPosition("other", 0, false)
		})
	}
}

func TestDestroyedGroupsAreGone(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		b, ctx := newBench(t, url, store.LayoutStream), context.Background()
		var tps []store.TopicPartition
		for p := range int32(20) {
			b.stream.Partition = p
			b.key = streamKey(b.native.prefix, b.stream.TopicPartition)
			tps = append(tps, b.stream.TopicPartition)
			if p%3 == 0 {
				continue // There is no stream.
			}
			b.add(at(1, 0))
			for _, group := range []string{"a", "b", "c"}[:p%3+1] {
				b.move(group, 0)
			}
			b.do("XGROUP", "CREATE", "theirs", "$")
		}
		if err := b.native.DestroyGroups(ctx, tps, []string{"a", "b", "theirs", "nobody's"}); err != nil {
			t.Fatal(err)
		}
		for _, tp := range tps {
			if tp.Partition%3 == 0 {
				continue
			}
			k := redis.KeysOf(b.native.prefix, tp)
			b.key = k.Stream
			if b.group("a") != nil || b.group("b") != nil || b.group("theirs") != nil {
				t.Errorf("partition %d still has a group that was destroyed", tp.Partition)
			}
			members, err := b.client.Do(ctx, b.client.B().Smembers().Key(k.Groups).Build()).AsStrSlice()
			if kept := b.group("c") != nil; kept != (tp.Partition%3 == 2) || err != nil || len(members) != map[bool]int{true: 1}[kept] {
				t.Errorf("partition %d: group c exists: %v, ours are %q, %v", tp.Partition, kept, members, err)
			}
		}
	})
}

// TestEntriesReadIsRightAfterAnyMoves moves a group about at random while
// entries are added and trimmed, and counts for itself.
func TestEntriesReadIsRightAfterAnyMoves(t *testing.T) {
	for _, layout := range []store.Layout{store.LayoutStream, store.LayoutLog} {
		t.Run(string(layout), func(t *testing.T) {
			b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), layout)
			random := rand.New(rand.NewPCG(1, 2))
			var offsets []int64
			next := at(1, 0)
			for step := range 200 {
				var added []int64
				for range random.IntN(8) {
					next += 1 + random.Int64N(3000)
					added = append(added, next)
				}
				b.add(added...)
				if offsets = append(offsets, added...); len(offsets) == 0 {
					continue
				}
				if random.IntN(10) == 0 {
					cut := random.IntN(len(offsets))
					b.do("XTRIM", "MINID", b.stream.IDBefore(offsets[cut]+1))
					offsets = offsets[cut:]
				}
				target := random.Int64N(next + 2)
				if random.IntN(2) == 0 {
					target = offsets[random.IntN(len(offsets))] + 1
				}
				b.move("g", target)
				lag := 0
				for _, o := range offsets {
					if o >= target {
						lag++
					}
				}
				b.want("g", b.stream.IDBefore(target), strconv.Itoa(lag))
				if t.Failed() {
					t.Fatalf("at step %d", step)
				}
			}
		})
	}
}

func TestLagOverALongWayIsEstimated(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutStream)
	const entries = 20 * maxCounted
	offsets := make([]int64, entries)
	for i := range offsets {
		offsets[i] = at(int64(1000+i/4), int64(i%4)) // Four in every millisecond.
	}
	b.add(offsets...)
	for _, i := range []int{entries / 2, entries / 3, entries * 3 / 4} {
		b.move("g", offsets[i])
		lag, err := strconv.Atoi(b.group("g")["lag"])
		if want := entries - i; err != nil || lag < want-4 || lag > want+4 {
			t.Errorf("the lag is %d (%v), not about %d", lag, err, want)
		}
	}
	near := entries - 100
	b.move("g", offsets[near])
	b.want("g", b.stream.IDBefore(offsets[near]), fmt.Sprint(entries-near))
	b.move("g", offsets[3])
	b.want("g", b.stream.IDBefore(offsets[3]), fmt.Sprint(entries-3))
}

func TestCountingSkipsLargeEntries(t *testing.T) {
	b := newBench(t, redistest.Shared(t, redistest.KindSingle).URL(), store.LayoutLog)
	large := make([]byte, maxCountedBytes/8)
	for i := range int64(40) {
		b.do("XADD", b.stream.IDBefore(i+1), "b", string(large))
	}
	b.move("g", 20)
	b.want("g", "20-0", "20")
	b.move("g", 5)
	b.want("g", "5-0", "35")
}
