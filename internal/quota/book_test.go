package quota

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

func client(name string) Key { return Key{Kind: Produced, HasName: true, Name: name} }

func TestEachKeyHasABucketOfItsOwn(t *testing.T) {
	b := NewBook(100, 1<<20)
	keys := []Key{
		client("a"), client("b"), {Kind: Fetched, HasName: true, Name: "a"}, {Kind: Produced, HasUser: true, User: "a"},
		{Kind: Produced, HasUser: true, User: "a", HasName: true}, {Kind: Produced, HasUser: true, User: "a", HasName: true, Name: "a"},
		{Kind: Produced, HasName: true},
	}
	for i, k := range keys {
		b.Bucket(k, limit(1), began).Take(float64(1+i), began) // One was there.
	}
	for i, k := range keys {
		if got := b.Bucket(k, limit(1), began).Level(began); got != -float64(i) {
			t.Errorf("%+v has %v, want %v", k, got, -i)
		}
	}
	if b.Len() != len(keys) {
		t.Errorf("%d buckets", b.Len())
	}
}

func TestABookGoesByTheLimitOfTheDay(t *testing.T) {
	b := NewBook(100, 1<<20)
	b.Bucket(client("a"), limit(1), began).Take(11, began)
	if wait := b.Bucket(client("a"), limit(5), began).Owing(began); wait != 2*time.Second {
		t.Errorf("wait %v", wait)
	}
}

func TestBucketsThatNobodyUsesAreForgotten(t *testing.T) {
	b := NewBook(100, 1<<20)
	for i := range 10 {
		b.Bucket(client(fmt.Sprint(i)), limit(1), began).Take(1e6, began)
	}
	almost := began.Add(Idle - time.Second)
	if b.Bucket(client("0"), limit(1), almost).Level(almost) > -1e5 {
		t.Error("a debt was forgotten too early")
	}
	later := began.Add(Idle)
	if b.Bucket(client("1"), limit(1), later).Level(later) != 1 {
		t.Error("a bucket came back after all that time")
	}
	for i := range 3 {
		b.Bucket(client(fmt.Sprint("new", i)), limit(1), later)
	}
	// All that were idle are gone, and the one that was used meanwhile is not.
	if b.Len() != 5 || b.Bucket(client("0"), limit(1), later).Level(later) == 0 {
		t.Errorf("%d buckets are left", b.Len())
	}
}

// Who has names that are larger than the whole book is not free of its quota by that.
func TestABookKeepsTheLastBucketWhateverItsSize(t *testing.T) {
	b := NewBook(100, 1000)
	long := client(strings.Repeat("long", 1000))
	for i := range 3 {
		assert.Equal(t, b.Bucket(long, limit(1), began).Level(began), float64(1-i), "there is at request %d", i)
		b.Bucket(long, limit(1), began).Take(1, began)
	}
	b.Bucket(client("short"), limit(1), began)
	assert.Equal(t, b.Len(), 1, "buckets")
}

func TestABookStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most, bytes = 20, 20_000
		b, now := NewBook(most, bytes), began
		var order []string // of use, without what was used again later
		for range 100 {
			name := strings.Repeat(fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "name"), ","), rapid.SampledFrom([]int{1, 1, 1, 2000}).Draw(t, "times"))
			now = now.Add(time.Second)
			b.Bucket(client(name), limit(1e9), now)
			order = append(slices.DeleteFunc(order, func(n string) bool { return n == name }), name)
			size := 0
			for e := b.used.Front(); e != nil; e = e.Next() {
				size += e.Value.(*page).key.size()
			}
			if b.Len() > most || b.Bytes() > bytes || size != b.Bytes() || len(b.buckets) != b.Len() {
				t.Fatalf("%d buckets, %d bytes, really %d", b.Len(), b.Bytes(), size)
			}
			at := len(order) - b.Len()
			for e := b.used.Front(); e != nil; e = e.Next() {
				if e.Value.(*page).key.Name != order[at] {
					t.Fatal("not those that were used last are kept")
				}
				at++
			}
		}
	})
}
