package listener

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
)

// halfSent takes memory for a frame that does not arrive; the frame goes when it is told to
// give way.
func halfSent(t *testing.T, b *budget, owner string, bytes int) *arrival {
	t.Helper()
	a := &arrival{owner: owner}
	a.giveWay = func() {
		go func() {
			b.arrived(a)
			b.give(bytes)
		}()
	}
	assert.MustTrue(t, b.take(a, bytes), "%s gets nothing", owner)
	return a
}

// took has a frame take memory, and says how long that took.
func took(t *testing.T, b *budget, a *arrival, bytes int) time.Duration {
	t.Helper()
	begun := time.Now()
	assert.MustTrue(t, b.take(a, bytes), "%s gets nothing", a.owner)
	return time.Since(begun)
}

func TestHalfSentFramesOfOneOwnerLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(400)
		for range 4 {
			halfSent(t, b, "hostile", 50)
		}
		more := &arrival{owner: "hostile", giveWay: func() {}}
		waited := make(chan time.Duration, 1)
		go func() { waited <- took(t, b, more, 50) }()
		synctest.Wait()
		assert.Equal(t, took(t, b, &arrival{owner: "good", giveWay: func() {}}, 60), 0, "another one waits")
		if d := <-waited; d != framePatience {
			t.Errorf("its own next frame waits %v for its oldest to give way", d)
		}
		assert.Equal(t, len(b.reading), 5, "frames are being read")
	})
}

func TestTheOldestHalfSentFrameOfWhoHasMostGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(400)
		all := map[string]*arrival{}
		for _, owner := range []string{"small", "large", "middle"} {
			for i := range map[string]int{"small": 1, "large": 3, "middle": 2}[owner] {
				all[fmt.Sprint(owner, i)] = halfSent(t, b, owner, 50)
				time.Sleep(time.Millisecond) // In synctest's time.
			}
		}
		good := &arrival{owner: "good", giveWay: func() {}}
		if d := took(t, b, good, 50); d > framePatience+framePatience/4 {
			t.Errorf("it waited %v", d)
		}
		for name, a := range all {
			assert.Equal(t, a.cut, name == "large0", "%s gives way", name)
		}
		assert.True(t, b.takeMore(100) && !b.takeMore(1), "frames that are being read take what is for requests that are handled")
	})
}

func TestFramesThatWaitForEachOtherAllEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(400)
		var all sync.WaitGroup
		var mu sync.Mutex
		done, cut := 0, 0
		for i := range 6 {
			all.Go(func() {
				a := &arrival{owner: fmt.Sprint(i), giveWay: func() {}}
				ok := b.take(a, 50)
				if ok {
					time.Sleep(time.Millisecond) // In synctest's time.
					ok = b.take(a, 100)          // There are 300 for all.
				}
				n := a.bytes
				b.arrived(a)
				b.give(n)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					done++
				} else {
					cut++
				}
			})
		}
		all.Wait()
		if done == 0 || done+cut != 6 || b.free != 400 || b.cutting != 0 || b.arrives != 0 || len(b.owners) != 0 {
			t.Errorf("%d got through, %d gave way; %+v", done, cut, b)
		}
	})
}

// A frame waits until a request that was handled has given back its memory, and no longer.
func TestMemoryThatIsGivenBackIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(400)
		handled := &arrival{owner: "one", giveWay: func() {}}
		took(t, b, handled, 400)
		b.arrived(handled)
		waited := make(chan time.Duration, 1)
		go func() { waited <- took(t, b, &arrival{owner: "other", giveWay: func() {}}, 50) }()
		synctest.Wait()
		time.Sleep(framePatience / 10) // In synctest's time; less than until those who wait look for themselves.
		b.give(400)
		if d := <-waited; d != framePatience/10 {
			t.Errorf("memory that was free after %v was taken after %v", framePatience/10, d)
		}
	})
}

// A client that sends half a frame loses its connection when another needs the memory, and
// that one is served.
func TestAHalfSentFrameEndsItsConnectionForTheSakeOfOthers(t *testing.T) {
	s, addr := start(t, Options{MaxRequest: 4 << 20}, echo)
	s.budget = newBudget(4 << 20)
	slow := make([]net.Conn, 3)
	for i := range slow {
		slow[i] = dial(t, addr)
		if _, err := slow[i].Write(append([]byte{0, 0x10, 0, 0}, make([]byte, 1<<20-1)...)); err != nil { // A byte is missing.
			t.Fatal(err)
		}
	}
	waitFor(t, "they hold what one address may have", func() bool {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return s.budget.arrives == 2<<20
	})
	good := dial(t, addr)
	body := bytes.Repeat([]byte("x"), 1<<20)
	sendFrame(t, good, body)
	if got := readFrame(t, good); !bytes.Equal(got, body) {
		t.Errorf("%d bytes came back", len(got))
	}
	waitFor(t, "a slow one is gone", func() bool { return s.Connections() < 4 })
}
