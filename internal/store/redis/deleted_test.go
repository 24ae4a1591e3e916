package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// TestRecordsFollowWhatARedisClientReadAndDeleted has a Redis client add an entry
// ahead of all others, read it, and delete it, as one does with a queue. What is
// appended next must come after it: a lower offset might be given twice, and
// whoever read the entry would never see the record.
func TestRecordsFollowWhatARedisClientReadAndDeleted(t *testing.T) {
	many := make([]record.Header, 6000) // More words than a script takes in one call.
	for how, headers := range map[string][]record.Header{"XDEL": nil, "XTRIM": nil, "XDEL, many headers": many, "XTRIM, many headers": many} {
		for _, reopened := range []bool{false, true} {
			t.Run(fmt.Sprint(how, ", reopened ", reopened), func(t *testing.T) {
				b := newBed(t, inStreams)
				l, key := b.open(1), b.keys().stream
				b.append(l, b.valued("a"))
				b.do("XGROUP", "CREATE", key, "g", "0")
				ahead := time.Now().Add(time.Hour).UnixMilli()
				b.do("XADD", key, fmt.Sprintf("%d-7", ahead), "value", "theirs")
				read := func() string { return b.do("XREADGROUP", "GROUP", "g", "c", "NOACK", "STREAMS", key, ">") }
				if got := read(); !strings.Contains(got, "theirs") {
					t.Fatal(got)
				}
				if strings.HasPrefix(how, "XDEL") {
					b.do("XDEL", key, fmt.Sprintf("%d-7", ahead))
				} else {
					b.do("XTRIM", key, "MAXLEN", "0")
				}
				if reopened {
					l = b.open(2)
				}
				batch := b.batchOf(record.Record{Value: []byte("ours"), Headers: headers}, record.Record{Value: []byte("and more")})
				if at := b.append(l, batch); at.BaseOffset <= millis(ahead, 7) || at.LastOffset != at.BaseOffset+1 {
					t.Errorf("the next records are at %+v, after an entry at %d that was deleted", at, millis(ahead, 7))
				}
				if got := read(); !strings.Contains(got, "ours") || !strings.Contains(got, "and more") {
					t.Errorf("the next that the group reads is %.200s", got)
				}
				if n := len(b.values(l)); n != map[string]int{"XD": 3, "XT": 2}[how[:2]] {
					t.Errorf("the log has %d records", n)
				}
			})
		}
	}
}

// TestAnAppendWhoseProducerCannotBeNotedLeavesNothing has something else than a
// hash where producers are kept.
func TestAnAppendWhoseProducerCannotBeNotedLeavesNothing(t *testing.T) {
	for name, cfg := range map[string]store.LogConfig{"Log": inBatches, "Stream": inStreams} { // Indexed has them in the index.
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			b.append(l, b.valued("a"))
			b.do("SET", b.keys().producers, "x")
			template := record.PlainTemplate()
			template.ProducerID, template.ProducerEpoch, template.BaseSequence = 5, 1, 0
			batch, err := record.Build(template, []record.Record{{Value: []byte("b")}, {Value: []byte("c"), OffsetDelta: 1}})
			must(t, err)
			if at, err := l.Append(b.ctx, batch); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("appended at %+v, %v", at, err)
			}
			if n := b.do("XLEN", b.keys().stream); n != "1" {
				t.Errorf("%s entries are in the stream", n)
			}
		})
	}
}
