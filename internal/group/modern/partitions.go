// Package modern is what groups have in common in which the coordinator assigns: consumer
// groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071). Members have
// epochs, a target assignment and a current one, and come to the target heartbeat by
// heartbeat.
//
// Group is written once for all of them, over what members are given (Part) and what members are
// (AnyMember). A kind embeds it and implements Kind. It knows no kind: neither records nor
// requests, nor who may have what at the same time.
package modern

import (
	"bytes"
	"cmp"
	"slices"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/metadata"
)

// Partition is a partition of a topic, by the topic's id.
type Partition struct {
	Topic  metadata.TopicID
	Number int32
}

// Compare implements Part.
func (p Partition) Compare(other Partition) int {
	if c := bytes.Compare(p.Topic[:], other.Topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(p.Number, other.Number)
}

// PartitionsNamed finds partitions by the names of their topics. Of a topic that does not
// exist there is nothing to have.
func PartitionsNamed(image *metadata.Image, list []subscription.TopicPartition) []Partition {
	var out []Partition
	for _, tp := range list {
		if image == nil {
			break
		}
		if t := image.Topic(tp.Topic); t != nil {
			out = append(out, Partition{t.ID, tp.Partition})
		}
	}
	return Sorted(out)
}

// PartitionsOf reads the partitions of a target.
func PartitionsOf(topics []schema.TopicPartitions) []Partition {
	var out []Partition
	for _, t := range topics {
		for _, n := range t.Partitions {
			out = append(out, Partition{t.Topic, n})
		}
	}
	return Sorted(out)
}

// TopicsOf writes the partitions of a target.
func TopicsOf(list []Partition) []schema.TopicPartitions {
	var out []schema.TopicPartitions
	for i, p := range list {
		if i == 0 || p.Topic != list[i-1].Topic {
			out = append(out, schema.TopicPartitions{Topic: p.Topic})
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, p.Number)
	}
	return out
}

// HeldOf reads partitions that a member has. Where it is not told since which epoch,
// it is the member's.
func HeldOf(topics []schema.OwnedPartitions, epoch int32) []Held[Partition] {
	var out []Held[Partition]
	for _, t := range topics {
		for i, n := range t.Partitions {
			p := Held[Partition]{Partition{t.Topic, n}, max(epoch, 0)}
			if len(t.Epochs) == len(t.Partitions) {
				p.Since = t.Epochs[i]
			}
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Held[Partition]) int { return a.Part.Compare(b.Part) })
	return slices.CompactFunc(out, func(a, b Held[Partition]) bool { return a.Part == b.Part })
}

// OwnedOf writes partitions that a member has.
func OwnedOf(list []Held[Partition]) []schema.OwnedPartitions {
	var out []schema.OwnedPartitions
	for i, p := range list {
		if i == 0 || p.Part.Topic != list[i-1].Part.Topic {
			out = append(out, schema.OwnedPartitions{Topic: p.Part.Topic})
		}
		t := &out[len(out)-1]
		t.Partitions, t.Epochs = append(t.Partitions, p.Part.Number), append(t.Epochs, p.Since)
	}
	return out
}
