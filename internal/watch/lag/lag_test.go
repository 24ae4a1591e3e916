package lag

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLagIsWhatIsThereToRead(t *testing.T) {
	for _, c := range []struct {
		name      string
		committed int64
		bounds    Bounds
		counted   *Count
		want      Count
	}{
		{"in the middle", 40, Bounds{10, 100}, nil, Count{60, false}},
		{"at the end", 100, Bounds{10, 100}, nil, Count{}},
		{"beyond the end", 170, Bounds{10, 100}, nil, Count{}},
		{"before the start: what was deleted is not there to read", 3, Bounds{10, 100}, nil, Count{90, false}},
		{"an empty log", 3, Bounds{10, 10}, nil, Count{}},
		{"counted", 5 << 20, Bounds{1 << 20, 9 << 20}, &Count{7, false}, Count{7, false}},
		{"estimated", 5 << 20, Bounds{1 << 20, 9 << 20}, &Count{7, true}, Count{7, true}},
		{"counted before the last commit", 9 << 20, Bounds{1 << 20, 9 << 20}, &Count{7, true}, Count{}},
		{"a count that is no count", 5, Bounds{0, 9}, &Count{-3, false}, Count{}},
	} {
		if got := Of(c.committed, c.bounds, c.counted); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLagIsNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(0, math.MaxInt64)
		b := Bounds{offset.Draw(t, "start"), offset.Draw(t, "end")}
		committed := rapid.Int64Range(-1, math.MaxInt64).Draw(t, "committed")
		if got := Of(committed, b, nil); got.Records < 0 || got.Records > b.End {
			t.Fatalf("%+v", got)
		}
	})
}

func TestTotalsAddUpAndStayInRange(t *testing.T) {
	var total Total
	total.add(Count{3, false})
	total.add(Count{9, true})
	total.add(Count{2, false})
	if want := (Total{Lag: 14, Max: 9, Approximate: true}); total != want {
		t.Errorf("%+v, want %+v", total, want)
	}
	total.add(Count{math.MaxInt64, false})
	if total.Lag != math.MaxInt64 {
		t.Errorf("%d", total.Lag)
	}
}

func TestShortNumbersAreCloseAndInOrder(t *testing.T) {
	for n := range int64(2048) {
		if got := shorten(n).value(); got != n {
			t.Fatalf("%d became %d", n, got)
		}
	}
	check := func(n int64) {
		got := shorten(n).value()
		if off := math.Abs(float64(got)-float64(n)) / float64(n); off > 0.0005 {
			t.Fatalf("%d became %d, which is off by %.4f %%", n, got, 100*off)
		}
		if shorten(n) < shorten(n-1) || shorten(n) == gap {
			t.Fatalf("the code of %d is %x, and that of %d is %x", n, shorten(n), n-1, shorten(n-1))
		}
	}
	for n := int64(2048); n < math.MaxInt64/2; n += n/97 + 1 {
		check(n)
	}
	for bit := 11; bit < 63; bit++ { // Where numbers round up to a power of two.
		check(1<<bit - 1)
		check(1 << bit)
	}
	check(math.MaxInt64)
	if shorten(-5) != 0 || shorten(math.MinInt64) != 0 {
		t.Error("a negative number is not 0")
	}
	if seconds(shorten(1500)) != 1.5 {
		t.Error("an age is not in seconds")
	}
}
