package source

import (
	"context"
	"slices"

	"muster/internal/group"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/watch"
	"muster/internal/watch/list"
)

// roll is the groups of a shard as the last pass saw them.
type roll struct {
	core    *group.Shard // Another one after each load.
	marks   *Marks
	entries []rolled // In order of name.
}

// rolled is a group of a roll.
type rolled struct {
	name  string
	mark  uint16
	stamp group.Stamp
	seen  *watch.Seen
}

// biteGroups is for how many groups it is asked at once whether they are quiet.
const biteGroups = 256

// Groups implements watch.Source. Groups that are as they were are told by their stamps
// and marks; the others are looked at.
func (s *Source) Groups(ctx context.Context, image *metadata.Image, quiet, take func([]watch.Group)) {
	l := &s.looking
	*l = looking{image: image, topics: map[string]*metadata.Topic{}, topicSet: map[string]struct{}{}}
	defer func() { *l = looking{} }()
	for _, t := range image.Topics() {
		l.topics[t.Name] = t
		l.parts += len(t.Partitions)
	}
	before := s.rolls
	s.rolls = map[int32]*roll{}
	for _, shard := range s.opts.Groups.Led() {
		if ctx.Err() != nil {
			return // The next pass begins anew.
		}
		r := before[shard]
		if r == nil {
			r = &roll{}
		}
		marked := &taken{}
		if m := s.marks.get(shard); m != r.marks || m == nil {
			r.marks, r.core = m, nil
		}
		if r.marks != nil {
			r.marks.take(marked)
		}
		if s.call(shard, r, marked) {
			s.rolls[shard] = r
			s.visit(ctx, shard, r, marked, quiet, take)
		}
	}
}

// call sees to it that the roll has the groups that there are; false says that there is
// no shard to look at. Groups come and go by records, so without marks they are the same;
// with some they are if there are as many and none of those marked is gone.
func (s *Source) call(shard int32, r *roll, marked *taken) bool {
	var names group.Names
	same := false
	there := s.opts.Groups.Look(shard, func(c machine.Core) {
		core := c.(*group.Shard)
		if r.core != core {
			r.core, marked.any, marked.all = core, true, true
		} else if same = !marked.any || !marked.all && core.Len() == len(r.entries) && r.complete(core, marked); same {
			return
		}
		names = core.Names()
	})
	if !there || same {
		return there
	}
	list := names.List()
	old := r.entries
	r.entries = make([]rolled, len(list))
	for i, name := range list {
		for len(old) > 0 && old[0].name < name {
			old = old[1:]
		}
		if len(old) > 0 && old[0].name == name {
			r.entries[i] = old[0]
		} else {
			r.entries[i] = rolled{name: name, mark: markOf(name)}
		}
	}
	return true
}

// complete says whether all groups of the roll that are marked are still there.
func (r *roll) complete(s *group.Shard, marked *taken) bool {
	for i := range r.entries {
		if e := &r.entries[i]; marked.has(e.mark) && !s.Has(e.name) {
			return false
		}
	}
	return true
}

// visit hands over the groups of a roll, those that are as they were without facts.
func (s *Source) visit(ctx context.Context, shard int32, r *roll, marked *taken, quiet, take func([]watch.Group)) {
	l := &s.looking
	for bite := range slices.Chunk(r.entries, biteGroups) {
		l.asked = slices.Grow(l.asked[:0], len(bite))[:len(bite)]
		for i := range bite {
			l.asked[i] = watch.Group{Row: list.GroupRow{Name: bite[i].name}, Seen: bite[i].seen}
		}
		quiet(l.asked)
		for done := 0; done < len(bite); {
			if ctx.Err() != nil {
				return
			}
			from := done
			if !s.opts.Groups.Look(shard, func(c machine.Core) {
				if c.(*group.Shard) == r.core {
					done += l.portion(r.core, bite[from:], l.asked[from:], marked)
				}
			}) || done == from {
				return // It is another broker's now, loads, or was loaded anew.
			}
			l.hand(bite[from:done], take)
		}
	}
}

// hand hands over what was seen of some groups of a roll.
func (l *looking) hand(some []rolled, take func([]watch.Group)) {
	if len(l.again) > 0 {
		take(l.again)
	}
	if len(l.looks) == 0 {
		return
	}
	groups := l.convert()
	for i := range groups {
		groups[i].Seen = some[l.places[i]].seen
	}
	take(groups)
	for i := range groups {
		some[l.places[i]].seen = groups[i].Seen
	}
}
