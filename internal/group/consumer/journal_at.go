package consumer

import (
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
)

// positions is where a member of a consumer group is, what it has yet to let go of included.
func (g *Group) positions(x *kind.Step, mem *Member) []journal.Position {
	if x.Image == nil {
		return nil
	}
	w, now := kind.Positions{B: &g.Base}, mem.Now()
	for _, list := range [][]modern.Held{now.Assigned, now.Pending} {
		for _, p := range list {
			if t := x.Image.TopicByID(p.Topic); t != nil {
				w.Add(t.Name, p.Number)
			}
		}
	}
	return x.TakePositions(&w)
}
