package group

import "muster/internal/journal"

// atConsumer is where a member of a consumer group is, what it has yet to let go of included.
func (g *consumerGroup) atConsumer(x *step, mem *consumerMember) []journal.Position {
	if x.image == nil {
		return nil
	}
	w, now := whereabouts{b: &g.base}, mem.now()
	for _, list := range [][]heldPart{now.assigned, now.pending} {
		for _, p := range list {
			if t := x.image.TopicByID(p.topic); t != nil {
				w.add(t.Name, p.n)
			}
		}
	}
	return x.tellAt(&w)
}
