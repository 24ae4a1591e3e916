package interop

import (
	"fmt"
	"testing"
	"time"
)

// restartSession is what members have time for after a restart of the broker,
// and what it would take to miss them.
const restartSession = 20 * time.Second

// TestBrokerRestartKeepsAStableGroup restarts the broker under Stable groups. The
// members must go on in the same generation, without noticing more than lost
// connections, for longer than it would take to miss them.
func TestBrokerRestartKeepsAStableGroup(t *testing.T) {
	onlyOn(t, "disk") // On Redis a broker alone hands over to no one, and its successor waits for its lease.
	const topic = "kept"
	data, addr := t.TempDir(), fixedPort(t)
	flags := append([]string{"--listen", addr}, groupSettings...)
	b := serve(t, data, flags...)
	createTopic(t, addr, topic, groupPartitions)
	w := startWriter(t, addr, topic)
	// The other clients join again when they lose a connection.
	var groups []*keptGroup
	for _, client := range []string{"franz-go", "librdkafka"} {
		g := newGroup(t, addr, "kept-"+client, topic, client, "range", restartSession)
		groups = append(groups, &keptGroup{liveGroup: g, members: []*memberProcess{g.join("a"), g.join("b"), g.join("c")}})
	}
	for name, stop := range map[string]func(*testing.T, *process){"SIGTERM": terminateBroker, "SIGKILL": killBroker} {
		for _, g := range groups {
			g.remember()
		}
		began := time.Now()
		stop(t, b)
		down := time.Since(began)
		b = serve(t, data, flags...)
		t.Logf("%s: the broker ended after %s and was back after %s", name, down, time.Since(began))
		for _, g := range groups {
			g.countBeats()
		}
		for _, g := range groups {
			g.checkKept(name)
		}
	}
	ends := w.finish()
	for _, g := range groups {
		g.reads(ends)
		g.commits(ends)
		g.checkGenerations()
	}
}

// keptGroup is a group, and how it was before a restart.
type keptGroup struct {
	*liveGroup
	members []*memberProcess
	before  generation
	seen    []int
	beats   []int // at the restart
}

func (g *keptGroup) remember() {
	g.t.Helper()
	g.settles(g.members...)
	g.movesOn()
	g.before, g.seen = g.current(), historyLengths(g.members)
}

func (g *keptGroup) countBeats() {
	g.beats = nil
	for _, m := range g.members {
		g.beats = append(g.beats, m.beats())
	}
}

func (g *keptGroup) checkKept(signal string) {
	g.t.Helper()
	g.movesOn()
	want := g.spec.SessionMillis/g.spec.HeartbeatMillis + 5
	for i, m := range g.members {
		waitFor(g.t, "heartbeats of "+g.spec.Client, func() error {
			if got := m.beats() - g.beats[i]; got < want {
				return fmt.Errorf("%d of %d heartbeats of member %s since the restart", got, want, m.spec.ClientID)
			}
			return nil
		})
	}
	g.settles(g.members...)
	if after := g.current(); after.number != g.before.number {
		g.t.Errorf("%s, %s: the generation was %d and is %d", g.spec.Group, signal, g.before.number, after.number)
	}
	for i, m := range g.members {
		if h := m.history(); len(h) != g.seen[i] {
			g.t.Errorf("%s, %s: member %s noticed the restart: %+v", g.spec.Group, signal, m.spec.ClientID, h[g.seen[i]:])
		}
	}
}
