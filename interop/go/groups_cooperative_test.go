package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster/internal/assert"
)

// calmSession is so long that no member is missed however slow the machine is.
const calmSession = time.Minute

// TestCooperativeGroupsKeepReadingWhatDoesNotMove adds a fourth member to a
// group of three, and holds the join phase open meanwhile. Of the three, each
// must give up one partition, and read the others all the time.
func TestCooperativeGroupsKeepReadingWhatDoesNotMove(t *testing.T) {
	addr := serve(t, t.TempDir(), groupSettings...).addr()
	// Sarama has this assignor too, but it fetches on the connection on which it
	// waits for its JoinGroup, and a broker answers a connection's requests in
	// order.
	for _, client := range []string{"franz-go", "librdkafka"} {
		t.Run(client, func(t *testing.T) {
			name := "cooperative-" + client
			createTopic(t, addr, name, groupPartitions)
			g := newGroup(t, addr, name, name, client, "cooperative-sticky", calmSession)
			w := startWriter(t, addr, name)
			a, b, c := g.join("a"), g.join("b"), g.join("c")
			three := []*memberProcess{a, b, c}
			before := g.settles(three...)
			g.movesOn()
			seen := historyLengths(three)

			// The join phase lasts until the third has joined again.
			c.stall()
			d := g.join("d")
			g.becomes("PreparingRebalance")
			g.readsOn(slices.Concat(before["a"], before["b"])...)
			g.becomes("PreparingRebalance")
			c.resume()

			after := g.settles(a, b, c, d)
			for i, m := range three {
				checkMoved(t, m, seen[i], before[m.spec.ClientID], after[m.spec.ClientID], 1)
			}
			checkMoved(t, d, 0, nil, after["d"], 0)
			g.movesOn()

			// What the fourth leaves behind comes on top of what the others have.
			seen = historyLengths(three)
			d.leave()
			last := g.settles(three...)
			for i, m := range three {
				checkMoved(t, m, seen[i], after[m.spec.ClientID], last[m.spec.ClientID], 0)
			}
			ends := w.finish()
			g.reads(ends)
			g.commits(ends)
			g.checkGenerations()
		})
	}
}

// readsOn waits until each of the partitions has delivered so many more records
// that a member has had ten heartbeats, each of which tells it to join again.
func (g *liveGroup) readsOn(partitions ...int32) {
	g.t.Helper()
	perSecond := int(time.Second/writerPace) * writerBurst / groupPartitions
	want := 10 * perSecond * g.spec.HeartbeatMillis / 1000
	before := map[int32]int{}
	for _, p := range partitions {
		before[p] = g.delivered.of(p)
	}
	waitFor(g.t, g.spec.Group+" to read on", func() error {
		for p, n := range before {
			if got := g.delivered.of(p) - n; got < want {
				return fmt.Errorf("partition %d: %d of %d more records came", p, got, want)
			}
		}
		return nil
	})
}

func historyLengths(members []*memberProcess) []int {
	lengths := make([]int, len(members))
	for i, m := range members {
		lengths[i] = len(m.history())
	}
	return lengths
}

// checkMoved checks that a member gave up as many partitions, in exchange for
// nothing, and was told about no others, since its history had a length.
func checkMoved(t *testing.T, m *memberProcess, since int, before, after []int32, gives int) {
	t.Helper()
	var gone []int32
	for _, p := range before {
		if !slices.Contains(after, p) {
			gone = append(gone, p)
		}
	}
	assert.True(t, len(gone) == gives, "member %s had %v and has %v: want %d moved away", m.spec.ClientID, before, after, gives)
	for _, r := range m.history()[since:] {
		for _, p := range r.Partitions {
			switch {
			case r.Event == eventAssigned && slices.Contains(before, p):
				t.Errorf("member %s was given partition %d, which it had", m.spec.ClientID, p)
			case r.Event != eventAssigned && !slices.Contains(gone, p):
				t.Errorf("member %s had partition %d %s, which it keeps", m.spec.ClientID, p, r.Event)
			}
		}
	}
}
