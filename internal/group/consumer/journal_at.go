package consumer

import (
	"muster/internal/group/kind"
	"muster/internal/journal"
)

// Positions is where a member of a consumer group is, what it has yet to let go of included.
func (g *Group) Positions(x *kind.Step, mem *Member) []journal.Position {
	if x.Image == nil {
		return nil
	}
	w, now := kind.Positions{B: &g.Base}, mem.Now()
	for _, list := range [][]Held{now.Assigned, now.Pending} {
		for _, p := range list {
			if t := x.Image.TopicByID(p.Part.Topic); t != nil {
				w.Add(t.Name, p.Part.Number)
			}
		}
	}
	return x.TakePositions(&w)
}
