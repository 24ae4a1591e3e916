package interop

import (
	"sync"
	"testing"
	"time"
)

// flowSession is short, since crashed and stalled members must be missed, and yet so long
// that no other member is when the machine is busy.
const flowSession = 10 * time.Second

// flowGroups is how many groups run at the same time: each has up to four processes.
const flowGroups = 8

// TestGroupsDeliverEverythingWhileMembersComeAndGo has groups of every client,
// with every assignor it has, read a topic that is being written to while
// members join, leave, crash and stall.
func TestGroupsDeliverEverythingWhileMembersComeAndGo(t *testing.T) {
	addr := serve(t, t.TempDir(), groupSettings...).addr()
	tests := []struct{ client, assignor string }{
		{"franz-go", "range"},
		{"franz-go", "roundrobin"},
		{"franz-go", "sticky"},
		{"franz-go", "cooperative-sticky"},
		{"librdkafka", "range"},
		{"librdkafka", "roundrobin"},
		{"librdkafka", "cooperative-sticky"},
		{"sarama", "range"},
		{"sarama", "roundrobin"},
		{"sarama", "sticky"},
		{"sarama", "cooperative-sticky"},
		{"kafka-go", "range"},
		{"kafka-go", "roundrobin"},
		{"kafkajs", "roundrobin"},
		{anyClient, "range"},
		{anyClient, "roundrobin"},
	}
	// The groups mostly wait, so they do so at the same time: t.Parallel would
	// let through only as many as there are cores.
	var running sync.WaitGroup
	places := make(chan struct{}, flowGroups)
	for _, tt := range tests {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(tt.client+"/"+tt.assignor, func(t *testing.T) {
				name := "flow-" + tt.client + "-" + tt.assignor
				createTopic(t, addr, name, groupPartitions)
				comeAndGo(t, newGroup(t, addr, name, name, tt.client, tt.assignor, flowSession))
			})
		})
	}
	running.Wait()
}

// comeAndGo is the life of a group.
func comeAndGo(t *testing.T, g *liveGroup) {
	began := time.Now()
	w := startWriter(t, g.spec.Addr, g.spec.Topic)

	a, b := g.join("a"), g.join("b") // at the same time
	g.settles(a, b)
	g.movesOn()

	c := g.join("c")
	g.settles(a, b, c)
	g.movesOn()

	b.leave()
	g.settles(a, c)
	g.movesOn()

	// One joins while another leaves.
	d := g.join("d")
	c.leave()
	g.settles(a, d)
	g.movesOn()

	// One crashes, another joins before that is noticed.
	d.crash()
	e := g.join("e")
	g.settles(a, e)
	g.movesOn()

	// The oldest, and so maybe the leader, stalls until it is missed.
	a.stall()
	g.settles(e)
	g.movesOn()
	a.resume()
	g.settles(a, e)
	g.movesOn()

	ends := w.finish()
	g.reads(ends)
	g.commits(ends)
	for _, m := range []*memberProcess{a, e} {
		m.leave()
	}
	g.isEmpty()
	g.commits(ends)
	g.checkGenerations()
	unique, total := g.delivered.counts()
	t.Logf("%d records, %d deliveries, in %s", unique, total, time.Since(began).Round(time.Millisecond))
}
