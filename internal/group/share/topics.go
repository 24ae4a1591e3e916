package share

import (
	"bytes"
	"maps"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/metadata"
)

// topics is the partitions of which the share coordinator has state for the group, or is asked
// to have or to delete it (record 15).
type topics struct {
	stored       bool        // there is a record
	initializing []partition // sorted, as the others
	initialized  []partition
	deleting     []metadata.TopicID
	names        map[metadata.TopicID]string // of all of these
	bytes        int64                       // that the group is counted for them
}

// What a topic and a partition are counted for.
const (
	topicWeight = 160
	partWeight  = 32
)

// weightOf is what a group is counted for topics.
func weightOf(v *schema.ShareTopics) (n int64) {
	for _, list := range [][]schema.ShareTopic{v.Initializing, v.Initialized} {
		for i := range list {
			n += int64(topicWeight + len(list[i].Name) + partWeight*len(list[i].Partitions))
		}
	}
	for _, d := range v.Deleting {
		n += int64(topicWeight + len(d.Name))
	}
	return n
}

// set replays the record, or its tombstone.
func (t *topics) set(v *schema.ShareTopics) {
	*t = topics{stored: v != nil, names: map[metadata.TopicID]string{}}
	if v == nil {
		return
	}
	read := func(list []schema.ShareTopic) (out []partition) {
		for i := range list {
			t.names[list[i].Topic] = list[i].Name
			for _, n := range list[i].Partitions {
				out = append(out, partition{Topic: list[i].Topic, Number: n})
			}
		}
		return modern.Sorted(out)
	}
	t.initializing, t.initialized = read(v.Initializing), read(v.Initialized)
	for _, d := range v.Deleting {
		t.names[d.Topic] = d.Name
		t.deleting = append(t.deleting, d.Topic)
	}
	t.deleting = sortedIDs(t.deleting)
	t.bytes = weightOf(v)
}

func compareIDs(a, b metadata.TopicID) int { return bytes.Compare(a[:], b[:]) }

func sortedIDs(list []metadata.TopicID) []metadata.TopicID {
	sort.Slice(list, func(i, j int) bool { return compareIDs(list[i], list[j]) < 0 })
	return slices.Compact(list)
}

// value is what the record says.
func (t *topics) value() *schema.ShareTopics {
	v := &schema.ShareTopics{Initializing: t.write(t.initializing), Initialized: t.write(t.initialized)}
	for _, id := range t.deleting {
		v.Deleting = append(v.Deleting, schema.ShareDeletedTopic{Topic: id, Name: t.names[id]})
	}
	return v
}

func (t *topics) write(list []partition) (out []schema.ShareTopic) {
	for _, e := range modern.TopicsOf(list) {
		out = append(out, schema.ShareTopic{Topic: e.Topic, Name: t.names[e.Topic], Partitions: e.Partitions})
	}
	return out
}

// edit returns a copy, to be changed and written.
func (t *topics) edit() *topics {
	next := *t
	next.names = map[metadata.TopicID]string{}
	maps.Copy(next.names, t.names)
	return &next
}

// record is the record that makes these the topics of a group.
func (t *topics) record(group string) *schema.ShareTopicsRecord {
	return &schema.ShareTopicsRecord{Group: group, Value: t.value()}
}

// write makes other topics those of the group.
func (g *Group) write(x *kind.Step, next *topics) {
	x.Weigh(g.ID)
	x.Write(next.record(g.ID))
}

// fits says whether a group may have these topics, nil if it may. One that is not there has none.
func (t *topics) fits(x *kind.Step, id string) *kerr.Error {
	r := t.record(id)
	if !x.Fits(r) {
		return kerr.InvalidRequest
	}
	more := weightOf(r.Value)
	if g, ok := x.Groups[id].(*Group); ok {
		more -= g.topics.bytes
	} else {
		more += groupBytes
	}
	return x.RoomFor(id, more)
}

// begin notes that the share coordinator is asked to initialize partitions.
func (t *topics) begin(parts []partition, image *metadata.Image) {
	t.initializing = union(t.initializing, parts)
	asked := countsOf(parts)
	for _, p := range parts {
		if topic := image.TopicByID(p.Topic); topic != nil {
			t.names[p.Topic] = topic.Name
		}
	}
	t.deleting = slices.DeleteFunc(slices.Clone(t.deleting), func(id metadata.TopicID) bool { return asked[id] > 0 })
}

// end notes that it has, or has not, done so.
func (t *topics) end(done, failed []partition) {
	t.initializing = without(without(t.initializing, done), failed)
	t.initialized = union(t.initialized, done)
}

// clear notes that the share coordinator is asked to delete what it has of some topics.
func (t *topics) clear(ids []metadata.TopicID) {
	gone := func(p partition) bool { _, ok := slices.BinarySearchFunc(ids, p.Topic, compareIDs); return ok }
	t.initializing = slices.DeleteFunc(slices.Clone(t.initializing), gone)
	t.initialized = slices.DeleteFunc(slices.Clone(t.initialized), gone)
	t.deleting = sortedIDs(slices.Concat(t.deleting, ids))
}

// forget forgets what is no partition any more. The share coordinator does so by itself.
func (t *topics) forget(image *metadata.Image) (changed bool) {
	gone := func(p partition) bool {
		topic := image.TopicByID(p.Topic)
		return topic == nil || int(p.Number) >= len(topic.Partitions)
	}
	if !slices.ContainsFunc(t.initialized, gone) && !slices.ContainsFunc(t.initializing, gone) &&
		!slices.ContainsFunc(t.deleting, func(id metadata.TopicID) bool { return image.TopicByID(id) == nil }) {
		return false
	}
	t.initialized = slices.DeleteFunc(slices.Clone(t.initialized), gone)
	t.initializing = slices.DeleteFunc(slices.Clone(t.initializing), gone)
	t.deleting = slices.DeleteFunc(slices.Clone(t.deleting), func(id metadata.TopicID) bool { return image.TopicByID(id) == nil })
	return true
}

// all is the partitions of which there may be state.
func (t *topics) all(image *metadata.Image) []partition {
	out := slices.Concat(t.initialized, t.initializing)
	for _, id := range t.deleting {
		out = append(out, partitionsOf(image, id)...)
	}
	return modern.Sorted(out)
}

// partitionsOf is all partitions of a topic, none if it is gone.
func partitionsOf(image *metadata.Image, id metadata.TopicID) (out []partition) {
	if image == nil {
		return nil
	}
	if t := image.TopicByID(id); t != nil {
		for n := range t.Partitions {
			out = append(out, partition{Topic: id, Number: int32(n)})
		}
	}
	return out
}

// idsOf lists the topics of partitions, which are sorted.
func idsOf(parts []partition) (out []metadata.TopicID) {
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			out = append(out, p.Topic)
		}
	}
	return out
}

// countsOf says how many of the partitions each topic has.
func countsOf(parts []partition) map[metadata.TopicID]int {
	n := map[metadata.TopicID]int{}
	for _, p := range parts {
		n[p.Topic]++
	}
	return n
}

func has(list []partition, p partition) bool {
	_, ok := slices.BinarySearchFunc(list, p, modern.Compare[partition])
	return ok
}

func union(a, b []partition) []partition { return modern.Sorted(slices.Concat(a, b)) }

func without(list, gone []partition) []partition {
	return slices.DeleteFunc(slices.Clone(list), func(p partition) bool { return has(gone, p) })
}
