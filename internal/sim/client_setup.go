package sim

import (
	"fmt"
	"slices"
	"time"
)

// versions are those of one generation of libraries, after its JoinGroup.
type versions struct{ join, sync, heartbeat, leave, commit int16 }

var eras = [10]versions{
	{0, 0, 0, 0, 2}, {1, 0, 0, 0, 2}, {2, 1, 1, 1, 3}, {3, 1, 1, 1, 4}, {4, 2, 2, 2, 6},
	{5, 3, 3, 3, 7}, {6, 4, 4, 4, 8}, {7, 5, 4, 4, 8}, {8, 5, 4, 5, 8}, {9, 5, 4, 5, 9},
}

// static members exist from this version of JoinGroup.
const staticJoin = 5

func (w *world) addClients(g *groupPlan) {
	for i := range g.clients {
		w.Apart(func() {
			c := w.addClient(g, i, "")
			if c.instance != nil && w.Chance(g.twins) {
				// Another process with the same instance id, by mistake.
				twin := w.addClient(g, i, "-twin")
				twin.versions, twin.instance, twin.odd = c.versions, c.instance, true
			}
		})
	}
}

func (w *world) addClient(g *groupPlan, i int, suffix string) *client {
	c := &client{
		peer:  peer{w: w, name: fmt.Sprintf("%s-client-%d%s", g.id, i, suffix)},
		group: g, protocols: slices.Clone(g.protocols), topics: []string{topicName(0)},
		versions:  eras[g.oldest+int16(w.Rand.IntN(int(g.newest-g.oldest)+1))],
		session:   w.Between(6*time.Second, 15*time.Second).Truncate(time.Millisecond),
		rebalance: w.Between(5*time.Second, 25*time.Second).Truncate(time.Millisecond),
		early:     w.Rand.IntN(2) == 0,
	}
	if g.patient {
		c.session = w.Between(20*time.Second, 45*time.Second).Truncate(time.Millisecond)
	}
	if g.slow {
		c.rebalance = w.Between(6*time.Minute, 7*time.Minute).Truncate(time.Millisecond)
	}
	c.interval = c.session / time.Duration(3+w.Rand.IntN(2))
	if c.versions.join >= staticJoin && w.Chance(g.static) {
		id := fmt.Sprintf("instance-%d", i)
		c.instance = &id
	}
	if w.Rand.IntN(2) == 0 {
		c.topics = append(c.topics, topicName(1))
	}
	c.shuffle()
	if g.odd && i > 0 && w.Rand.IntN(2) == 0 {
		c.odd, c.protocols = true, c.protocols[:1]
	}
	w.clients = append(w.clients, c)
	c.startLater(w.About(3 * time.Second))
	c.planLife()
	return c
}

// shuffle changes which protocols the client likes best.
func (c *client) shuffle() {
	c.w.Rand.Shuffle(len(c.protocols), func(i, j int) { c.protocols[i], c.protocols[j] = c.protocols[j], c.protocols[i] })
}
