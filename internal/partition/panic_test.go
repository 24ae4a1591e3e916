package partition

import "testing"

// A panic while an append begins ends the connection of its request. The partition is
// loaded again, and all others go on, however often that happens.
func TestAPanicWhileAnAppendBeginsLeavesThePartitionUsable(t *testing.T) {
	s, r := newPipe(t)
	for round := range maxUnderWay + 1 { // Each would keep a slot for ever.
		s.boom = true
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			r.part().Append(t.Context(), r.batch(producerAt{7, 0, 0}, 1), Produce{Acks: AcksAll}, func(Appended) {})
		}()
		if !r.part().mu.TryLock() {
			t.Fatal("the partition is locked")
		}
		if n := len(r.part().underWay); n != 0 {
			t.Fatalf("%d are under way", n)
		}
		r.part().mu.Unlock()
		if round%2 == 0 {
			s.queue = nil
		}
		for s.next(true) { // The log may yet tell of the append.
		}
	}
	s.opens(r, producerAt{8, 0, 0}, 0)
}
