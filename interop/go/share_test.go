package interop

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

func numbered(what string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", what, i))
	}
	return out
}

// TestShareConsumerAcceptsByPolling has a member say nothing: with the next poll it accepts
// what it has been given. Who comes later gets only what is new.
func TestShareConsumerAcceptsByPolling(t *testing.T) {
	b := serve(t, t.TempDir(), shareSettings...)
	g := newShareGroup(t, b.addr(), "implicit", 2)
	g.write(0, numbered("a", 15)...)
	g.write(1, numbered("b", 15)...)
	m, seen := g.join(), map[string]int{}
	for len(seen) < 30 {
		for _, r := range m.take() {
			seen[string(r.Value)]++
			assert.Equal(t, r.DeliveryCount(), int32(1), "the delivery count of %s", r.Value)
		}
	}
	g.write(0, "last")
	for r := m.take(); ; r = m.take() { // By this poll the last ones are accepted.
		assert.Equal(t, string(r[0].Value), "last", "what comes when all is accepted")
		break
	}
	m.mustSay(kgo.AckAccept)
	g.isDone()
	m.Close()
	for v, n := range seen {
		assert.Equal(t, n, 1, "deliveries of %s", v)
	}
	g.write(1, "new")
	next := g.join().take()
	assert.Equal(t, string(next[0].Value), "new", "what the next member is given")
}

// TestShareConsumerReleasesAndRejects has a member accept, release and reject records: what is
// released comes again as often as the limit allows.
func TestShareConsumerReleasesAndRejects(t *testing.T) {
	b := serve(t, t.TempDir(), shareSettings...)
	g := newShareGroup(t, b.addr(), "explicit", 1, "share.delivery.count.limit", "3")
	g.write(0, "accept", "release", "reject", "second")
	m, counts := g.join(), map[string][]int32{}
	for len(counts["release"]) < 3 || len(counts["second"]) < 2 || len(counts["accept"]) == 0 || len(counts["reject"]) == 0 {
		for _, r := range m.take() {
			v, status := string(r.Value), kgo.AckAccept
			switch {
			case v == "release", v == "second" && r.DeliveryCount() == 1:
				status = kgo.AckRelease
			case v == "reject":
				status = kgo.AckReject
			}
			counts[v] = append(counts[v], r.DeliveryCount())
			m.mustSay(status, r)
		}
	}
	g.isDone()
	assert.Equal(t, fmt.Sprint(counts), "map[accept:[1] reject:[1] release:[1 2 3] second:[1 2]]", "delivery counts")
	g.write(0, "after")
	assert.Equal(t, string(m.take()[0].Value), "after", "what comes then")
}

// TestShareLocksExpire has a member keep records for longer than their lock: another one gets
// them, and the first is told so.
func TestShareLocksExpire(t *testing.T) {
	b := serve(t, t.TempDir(), shareSettings...)
	g := newShareGroup(t, b.addr(), "locks", 1, "share.record.lock.duration.ms", "300", "share.delivery.count.limit", "10")
	g.write(0, "one")
	slow, quick := g.join(), g.join()
	held, got := slow.take()[0], quick.take()[0]
	assert.Equal(t, got.Offset, held.Offset, "the offset of what came again")
	assert.MustTrue(t, got.DeliveryCount() > held.DeliveryCount(), "delivery counts %d and then %d", held.DeliveryCount(), got.DeliveryCount())
	failed, err := slow.say(t.Context(), kgo.AckAccept, held)
	must(t, err)
	assert.MustTrue(t, errors.Is(failed[0], kerr.InvalidRecordState), "accepting what another has been given: %v", failed)
	for {
		failed, err := quick.say(t.Context(), kgo.AckAccept, got)
		must(t, err)
		if len(failed) == 0 {
			break
		}
		// Its lock has run out, too, on a slow machine.
		assert.MustTrue(t, errors.Is(failed[0], kerr.InvalidRecordState), "an acknowledgement: %v", failed)
		got = quick.take()[0]
	}
	g.isDone()
}

// TestShareMemberCrashes has a member lose its connection: what it held is at once for others,
// long before its locks run out.
func TestShareMemberCrashes(t *testing.T) {
	b := serve(t, t.TempDir(), shareSettings...)
	g := newShareGroup(t, b.addr(), "crash", 1, "share.record.lock.duration.ms", "60000")
	g.write(0, numbered("r", 5)...)
	m := g.join()
	held := map[int64]bool{}
	for _, r := range m.take() {
		held[r.Offset] = true
	}
	m.crash()
	next := g.join()
	for n := 0; n < 5; {
		for _, r := range next.take() {
			assert.Equal(t, r.DeliveryCount() > 1, held[r.Offset], "whether %s comes again", r.Value)
			next.mustSay(kgo.AckAccept, r)
			n++
		}
	}
	g.isDone()
}

// TestShareMembersShareAPartition has two members hold records of one partition.
func TestShareMembersShareAPartition(t *testing.T) {
	b := serve(t, t.TempDir(), shareSettings...)
	g := newShareGroup(t, b.addr(), "pair", 1)
	g.write(0, numbered("r", 30)...)
	one, two := g.join(), g.join()
	held := map[int64]bool{}
	for _, m := range []*sharer{one, two, one, two} {
		records := m.take()
		assert.MustTrue(t, len(records) <= 10, "%d records, and no more than 10 were asked for", len(records))
		for _, r := range records {
			assert.MustFalse(t, held[r.Offset], "offset %d was given to two", r.Offset)
			assert.Equal(t, r.DeliveryCount(), int32(1), "the delivery count of offset %d", r.Offset)
			held[r.Offset] = true
		}
		if len(held) == 30 {
			break
		}
	}
	one.mustSay(kgo.AckAccept)
	two.mustSay(kgo.AckAccept)
	g.isDone()
}
