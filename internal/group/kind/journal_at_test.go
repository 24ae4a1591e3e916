package kind

import "testing"

func TestOfVeryManyPartitionsNothingIsTold(t *testing.T) {
	for n, want := range map[int32]int{MaxAt: MaxAt, MaxAt + 1: 0} {
		g := &Base{ID: "g"}
		g.Offsets = map[string]*TopicOffsets{"t": {Parts: map[int32]Kept{}}}
		w, x := Positions{B: g}, &Step{}
		w.Add("u", 0)
		for p := range n {
			g.Offsets["t"].Parts[p] = Kept{At: 5}
			w.Add("t", p)
		}
		if got := x.TakePositions(&w); len(got) != want || len(w.List) > MaxAt {
			t.Errorf("%d partitions: %d are told", n, len(got))
		}
		if got := x.TakePositions(&w); got != nil {
			t.Errorf("a second member of the step: %d are told", len(got))
		}
	}
}
