package group

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAnyLossOfTheEndOfTheLogGivesNoEpochTwice has the store lose the end of its log now
// and then, though clients were told what that said. No epoch of the group or of its
// target is given out again; and clients that were answered since have nothing that the
// coordinator does not know of, or that another of them has.
func TestAnyLossOfTheEndOfTheLogGivesNoEpochTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &losing{consumers: newConsumers(t), epochs: map[int32]bool{}, targets: map[int32]bool{}}
		for _, c := range w.clients[:2] { // There is a group, and that is not lost.
			c.joined = true
			w.sendBeat(t, c, true)
		}
		w.floor = len(w.log)
		actions := map[string]func(*rapid.T){
			"beat": w.beat, "beat again": w.beat, "beat once more": w.beat, "all beat": w.allBeat, "join": w.join, "leave": w.leave, "subscribe": w.subscribe,
			"commit": w.commit, "task": w.task, "wait": w.wait, "topics": w.changeTopics, "configure": w.configure, "crash": w.load, "lose": w.lose, "lose more": w.lose,
		}
		for name, act := range actions {
			actions[name] = func(t *rapid.T) {
				act(t)
				w.checkGiven(t)
			}
		}
		t.Repeat(actions)
		w.settle(t)
		w.calm(t)
	})
}

// losing is consumers whose store may lose the end of the log.
type losing struct {
	*consumers
	floor   int            // batches that are not lost
	epochs  map[int32]bool // that the group was given
	targets map[int32]bool // likewise
	last    [2]int32
}

// maxLosses is how often the log loses its end: each time a group leaps to another share
// of a block of numbers, of which there are sixteen.
const maxLosses = 12

// lose has the log lose some batches at its end, and the shard be loaded under another
// leader epoch. All clients are told NOT_COORDINATOR, or are disconnected.
func (w *losing) lose(t *rapid.T) {
	n := min(rapid.IntRange(1, 6).Draw(t, "batches"), len(w.log)-w.floor)
	if n <= 0 || w.losses == maxLosses {
		t.Skip("nothing to lose")
	}
	w.log = w.log[:len(w.log)-n]
	w.losses++
	w.group, w.tear1 = nil, -1
	clear(w.members)
	for _, c := range w.clients {
		c.heard, c.resends = false, true
	}
	w.load(t)
	w.last = [2]int32{}
	if g := w.shard.consumer("g"); g != nil {
		w.last = [2]int32{g.Epoch, g.TargetEpoch}
	}
}

// checkGiven says whether an epoch was given out that had been before. Several may have
// been in one action; the last of them is looked at.
func (w *losing) checkGiven(t *rapid.T) {
	g := w.shard.consumer("g")
	if g == nil { // A group that is made anew has nothing to do with it.
		clear(w.epochs)
		clear(w.targets)
		return
	}
	now := [2]int32{g.Epoch, g.TargetEpoch}
	if now[0] != w.last[0] && w.epochs[now[0]] {
		t.Fatalf("epoch %d is given out again", now[0])
	}
	if now[1] != w.last[1] && w.targets[now[1]] {
		t.Fatalf("epoch %d has another target", now[1])
	}
	w.epochs[now[0]], w.targets[now[1]], w.last = true, true, now
}
