package source

import (
	"encoding/binary"
	"slices"
	"time"

	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// A shard's lock is held for a portion of its groups at a time: so many groups, or so
// many offsets, members and what these have, about a tenth of a millisecond. Requests get
// in between.
const (
	portionGroups = 32
	portionItems  = 512
)

// looking is what groups are read into. Its memory is used again from portion to portion
// and given up after each pass, in which there may have been a large one.
type looking struct {
	topics   map[string]*metadata.Topic // Of the image, to look up names that lie in bytes.
	image    *metadata.Image
	parts    int           // How many partitions there are.
	asked    []watch.Group // Whether they are quiet.
	again    []watch.Group // Those that are as they were.
	looks    []group.Look  // Those that may not be, and their places in the roll.
	places   []int
	groups   []watch.Group
	topicSet map[string]struct{}
}

// portion looks at groups until it is enough, and says how many of the roll are done. It is
// called under the shard's lock. A group that is quiet, not marked, and as its stamp says,
// is as it was.
func (l *looking) portion(s *group.Shard, roll []rolled, asked []watch.Group, marked *taken) int {
	l.looks, l.again, l.places = l.looks[:0], l.again[:0], l.places[:0]
	items := 0
	for i := range roll {
		if len(l.looks) == portionGroups || items >= portionItems {
			return i
		}
		e := &roll[i]
		if asked[i].Quiet != lag.Loud && !marked.has(e.mark) && e.stamp.Same() {
			asked[i].Same = true
			l.again = append(l.again, asked[i])
			continue
		}
		n := len(l.looks)
		l.looks = slices.Grow(l.looks, 1)[:n+1]
		if !s.LookAt(e.name, &l.looks[n]) {
			l.looks = l.looks[:n] // Deleted meanwhile.
			continue
		}
		e.stamp = s.Stamp(e.name)
		l.places = append(l.places, i)
		items += len(l.looks[n].Offsets)
		for j := range l.looks[n].Members {
			items += 1 + len(l.looks[n].Members[j].Parts)
		}
	}
	return len(roll)
}

// convert makes of what was seen what the watch wants. It needs no lock: what lies in bytes
// that clients sent is read here.
func (l *looking) convert() []watch.Group {
	l.groups = slices.Grow(l.groups[:0], len(l.looks))[:len(l.looks)]
	for i := range l.looks {
		look, g := &l.looks[i], &l.groups[i]
		g.Seen, g.Quiet, g.Same = nil, lag.Loud, false
		g.Row = list.GroupRow{Name: look.Name, Type: look.Type, State: look.State}
		g.Tells = journal.Assigns(look.Type) || look.State == "Stable" && look.ProtocolType == "consumer"
		g.Offsets = g.Offsets[:0]
		for _, o := range look.Offsets {
			g.Offsets = append(g.Offsets, watch.Offset{
				Part: watch.Part{Topic: o.Topic, Partition: o.Partition}, Committed: o.Offset, At: time.UnixMilli(o.At),
			})
		}
		l.convertMembers(look, g)
	}
	return l.groups
}

func (l *looking) convertMembers(look *group.Look, g *watch.Group) {
	g.Members = slices.Grow(g.Members[:0], len(look.Members))[:len(look.Members)]
	clear(l.topicSet)
	// Honest members have no partition twice. What others say of many is cut short.
	parts, names := l.parts, maxSubscribed
	for i := range look.Members {
		from, m := &look.Members[i], &g.Members[i]
		m.Reader, m.Parts = watch.Reader{ClientID: from.ClientID, Host: from.Host}, m.Parts[:0]
		for _, p := range from.Parts {
			if t := l.image.TopicByID(p.Topic); t != nil {
				m.Parts = append(m.Parts, watch.Part{Topic: t.Name, Partition: p.Partition})
			}
		}
		if g.Tells && !journal.Assigns(look.Type) {
			m.Parts = l.assigned(from.Assignment, m.Parts, parts)
			parts -= len(m.Parts)
			names -= l.subscribed(from.Subscription, names)
		}
		for _, list := range [...][]string{from.Topics, from.Regex} {
			for _, topic := range list {
				l.topicSet[topic] = struct{}{}
			}
		}
	}
	g.Topics = g.Topics[:0]
	for topic := range l.topicSet {
		g.Topics = append(g.Topics, topic)
	}
	slices.Sort(g.Topics)
}

// maxSubscribed is how many names of topics are read of the subscriptions of a group.
const maxSubscribed = 100_000

// assigned reads the partitions out of a consumer's assignment, at most so many, of those
// that exist. The bytes are whatever a client sent.
func (l *looking) assigned(b []byte, to []watch.Part, most int) []watch.Part {
	topics, b := listHead(b)
	for range topics {
		var name []byte
		var ok bool
		if name, b, ok = readName(b); !ok || len(b) < 4 {
			break
		}
		t := l.topics[string(name)]
		count := int(int32(binary.BigEndian.Uint32(b)))
		if b = b[4:]; count < 0 || count > len(b)/4 {
			break
		}
		for range count {
			index := int32(binary.BigEndian.Uint32(b))
			b = b[4:]
			if t == nil || index < 0 || int(index) >= len(t.Partitions) {
				continue
			}
			if len(to) >= most {
				return to
			}
			to = append(to, watch.Part{Topic: t.Name, Partition: index})
		}
	}
	return to
}

// subscribed notes the topics of a consumer's subscription that exist, and returns how
// many names it has read, at most so many.
func (l *looking) subscribed(b []byte, most int) int {
	topics, b := listHead(b)
	for i := range min(topics, most) {
		var name []byte
		var ok bool
		if name, b, ok = readName(b); !ok {
			return i
		}
		if t := l.topics[string(name)]; t != nil {
			l.topicSet[t.Name] = struct{}{}
		}
	}
	return min(topics, most)
}

// listHead reads what assignments and subscriptions begin with: a version, and how many
// topics there are.
func listHead(b []byte) (topics int, rest []byte) {
	if len(b) < 6 {
		return 0, nil
	}
	return max(int(int32(binary.BigEndian.Uint32(b[2:]))), 0), b[6:]
}

// readName reads a name with its length.
func readName(b []byte) (name, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	if n < 0 || n > len(b)-2 {
		return nil, nil, false
	}
	return b[2 : 2+n], b[2+n:], true
}
