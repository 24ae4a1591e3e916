// Package modern is what groups have in common in which the coordinator assigns: consumer
// groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071). Members have
// epochs, a target assignment and a current one, and come to the target heartbeat by
// heartbeat.
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

// Held is a partition that a member holds, with the epoch in which it was
// given to it (KIP-1251).
type Held struct {
	Partition
	Since int32
}

// Lists of partitions are sorted, so that two are compared in one walk.

func ComparePartitions(a, b Partition) int {
	if c := bytes.Compare(a.Topic[:], b.Topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.Number, b.Number)
}

func compareHeld(a Held, b Partition) int { return ComparePartitions(a.Partition, b) }

// Holds says whether a list has a partition.
func Holds(list []Held, p Partition) bool {
	_, ok := slices.BinarySearchFunc(list, p, compareHeld)
	return ok
}

// SinceOf returns in which epoch a partition was given, and whether it was.
func SinceOf(list []Held, p Partition) (int32, bool) {
	i, ok := slices.BinarySearchFunc(list, p, compareHeld)
	if !ok {
		return 0, false
	}
	return list[i].Since, true
}

// SamePartitions says whether two lists have the same partitions.
func SamePartitions(a, b []Held) bool {
	return slices.EqualFunc(a, b, func(x, y Held) bool { return x.Partition == y.Partition })
}

// Merged returns what is in either of two lists that have nothing in common.
func Merged(a, b []Held) []Held {
	if len(b) == 0 {
		return a
	}
	out := make([]Held, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if ComparePartitions(a[0].Partition, b[0].Partition) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Split divides what is held by whether it is in the target, and returns what of
// the target is not held.
func Split(held []Held, target []Partition) (kept, surplus []Held, missing []Partition) {
	for len(held) > 0 || len(target) > 0 {
		c := -1
		switch {
		case len(held) == 0:
			c = 1
		case len(target) > 0:
			c = ComparePartitions(held[0].Partition, target[0])
		}
		switch {
		case c < 0:
			surplus, held = append(surplus, held[0]), held[1:]
		case c > 0:
			missing, target = append(missing, target[0]), target[1:]
		default:
			kept, held, target = append(kept, held[0]), held[1:], target[1:]
		}
	}
	return kept, surplus, missing
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
	return sortedPartitions(out)
}

// sortedPartitions sorts a list of partitions, each of which is in it once then.
func sortedPartitions(list []Partition) []Partition {
	slices.SortFunc(list, ComparePartitions)
	return slices.Compact(list)
}

// PartitionsOf reads the partitions of a target.
func PartitionsOf(topics []schema.TopicPartitions) []Partition {
	var out []Partition
	for _, t := range topics {
		for _, n := range t.Partitions {
			out = append(out, Partition{t.Topic, n})
		}
	}
	slices.SortFunc(out, ComparePartitions)
	return slices.Compact(out)
}

// HeldOf reads partitions that a member has. Where it is not told since which epoch,
// it is the member's.
func HeldOf(topics []schema.OwnedPartitions, epoch int32) []Held {
	var out []Held
	for _, t := range topics {
		for i, n := range t.Partitions {
			p := Held{Partition{t.Topic, n}, max(epoch, 0)}
			if len(t.Epochs) == len(t.Partitions) {
				p.Since = t.Epochs[i]
			}
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Held) int { return ComparePartitions(a.Partition, b.Partition) })
	return slices.CompactFunc(out, func(a, b Held) bool { return a.Partition == b.Partition })
}

func OwnedOf(list []Held) []schema.OwnedPartitions {
	var out []schema.OwnedPartitions
	for i, p := range list {
		if i == 0 || p.Topic != list[i-1].Topic {
			out = append(out, schema.OwnedPartitions{Topic: p.Topic})
		}
		t := &out[len(out)-1]
		t.Partitions, t.Epochs = append(t.Partitions, p.Number), append(t.Epochs, p.Since)
	}
	return out
}

// AtEpochZero is partitions whose member is at the beginning: none was given to it later.
func AtEpochZero(list []Held) []Held {
	var out []Held
	for _, p := range list {
		out = append(out, Held{Partition: p.Partition})
	}
	return out
}

func PartitionsHeld(list []Held) []Partition {
	out := make([]Partition, len(list))
	for i := range list {
		out[i] = list[i].Partition
	}
	return out
}
