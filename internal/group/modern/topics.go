package modern

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"muster/internal/journal"
	"muster/internal/metadata"
)

// Topics is the topics that members subscribe to, as they were found.
type Topics struct {
	Found  []*metadata.Topic // by name
	Absent []string          // names that no topic has, sorted
}

// FindTopics finds topics by their names.
func FindTopics(image *metadata.Image, names []string) *Topics {
	l := &Topics{}
	if image == nil {
		return l
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if t := image.Topic(name); t != nil {
			l.Found = append(l.Found, t)
		} else {
			l.Absent = append(l.Absent, name)
		}
	}
	return l
}

// Name finds the name of a topic by its id.
func (l *Topics) Name(id metadata.TopicID) (string, bool) {
	if l == nil {
		return "", false
	}
	i := slices.IndexFunc(l.Found, func(t *metadata.Topic) bool { return t.ID == id })
	if i < 0 {
		return "", false
	}
	return l.Found[i].Name, true
}

// Changes says what happened to topics between two looks. Topics that are subscribed to
// since, or not any more, have not changed.
func (l *Topics) Changes(next *Topics) (out []journal.TopicChange) {
	was := make(map[string]*metadata.Topic, len(l.Found))
	for _, t := range l.Found {
		was[t.Name] = t
	}
	for _, t := range next.Found {
		old := was[t.Name]
		c := journal.TopicChange{Topic: t.Name, After: len(t.Partitions)}
		if old != nil {
			c.Before = len(old.Partitions)
		}
		switch _, missed := slices.BinarySearch(l.Absent, t.Name); {
		case old == nil && missed:
			c.Kind = journal.TopicCreated
		case old != nil && old.ID != t.ID:
			c.Kind = journal.TopicRecreated
		case old != nil && c.Before != c.After:
			c.Kind = journal.TopicGrown
		default:
			continue
		}
		out = append(out, c)
	}
	for _, name := range next.Absent {
		if old := was[name]; old != nil {
			out = append(out, journal.TopicChange{Topic: name, Kind: journal.TopicDeleted, Before: len(old.Partitions)})
		}
	}
	return out
}

// Hash is a number that changes when the topics do, zero if there are none.
func (l *Topics) Hash() int64 {
	if len(l.Found) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, t := range l.Found {
		_, _ = h.Write(t.ID[:])
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(t.Partitions))))
		_, _ = h.Write([]byte(t.Name))
		_, _ = h.Write([]byte{0})
	}
	return int64(h.Sum64())
}
