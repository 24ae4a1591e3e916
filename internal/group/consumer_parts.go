package group

import (
	"bytes"
	"cmp"
	"slices"

	"muster/internal/group/schema"
	"muster/internal/metadata"
)

// part is a partition of a topic, by the topic's id.
type part struct {
	topic metadata.TopicID
	n     int32
}

// heldPart is a partition that a member holds, with the epoch in which it was
// given to it (KIP-1251).
type heldPart struct {
	part
	since int32
}

// Lists of partitions are sorted, so that two are compared in one walk.

func compareParts(a, b part) int {
	if c := bytes.Compare(a.topic[:], b.topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.n, b.n)
}

func compareHeld(a heldPart, b part) int { return compareParts(a.part, b) }

// holds says whether a list has a partition.
func holds(list []heldPart, p part) bool {
	_, ok := slices.BinarySearchFunc(list, p, compareHeld)
	return ok
}

// sinceOf returns in which epoch a partition was given, and whether it was.
func sinceOf(list []heldPart, p part) (int32, bool) {
	i, ok := slices.BinarySearchFunc(list, p, compareHeld)
	if !ok {
		return 0, false
	}
	return list[i].since, true
}

// samePlaces says whether two lists have the same partitions.
func samePlaces(a, b []heldPart) bool {
	return slices.EqualFunc(a, b, func(x, y heldPart) bool { return x.part == y.part })
}

// merged returns what is in either of two lists that have nothing in common.
func merged(a, b []heldPart) []heldPart {
	if len(b) == 0 {
		return a
	}
	out := make([]heldPart, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareParts(a[0].part, b[0].part) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// split divides what is held by whether it is in the target, and returns what of
// the target is not held.
func split(held []heldPart, target []part) (kept, surplus []heldPart, missing []part) {
	for len(held) > 0 || len(target) > 0 {
		c := -1
		switch {
		case len(held) == 0:
			c = 1
		case len(target) > 0:
			c = compareParts(held[0].part, target[0])
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

// partsNamed finds partitions by the names of their topics. Of a topic that does not
// exist there is nothing to have.
func partsNamed(image *metadata.Image, list []topicPartition) []part {
	var out []part
	for _, tp := range list {
		if image == nil {
			break
		}
		if t := image.Topic(tp.topic); t != nil {
			out = append(out, part{t.ID, tp.partition})
		}
	}
	return sortedParts(out)
}

// sortedParts sorts a list of partitions, each of which is in it once then.
func sortedParts(list []part) []part {
	slices.SortFunc(list, compareParts)
	return slices.Compact(list)
}

// partsOf reads the partitions of a target.
func partsOf(topics []schema.TopicPartitions) []part {
	var out []part
	for _, t := range topics {
		for _, n := range t.Partitions {
			out = append(out, part{t.Topic, n})
		}
	}
	slices.SortFunc(out, compareParts)
	return slices.Compact(out)
}

// heldOf reads partitions that a member has. Where it is not told since which epoch,
// it is the member's.
func heldOf(topics []schema.OwnedPartitions, epoch int32) []heldPart {
	var out []heldPart
	for _, t := range topics {
		for i, n := range t.Partitions {
			p := heldPart{part{t.Topic, n}, max(epoch, 0)}
			if len(t.Epochs) == len(t.Partitions) {
				p.since = t.Epochs[i]
			}
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b heldPart) int { return compareParts(a.part, b.part) })
	return slices.CompactFunc(out, func(a, b heldPart) bool { return a.part == b.part })
}

func ownedOf(list []heldPart) []schema.OwnedPartitions {
	var out []schema.OwnedPartitions
	for i, p := range list {
		if i == 0 || p.topic != list[i-1].topic {
			out = append(out, schema.OwnedPartitions{Topic: p.topic})
		}
		t := &out[len(out)-1]
		t.Partitions, t.Epochs = append(t.Partitions, p.n), append(t.Epochs, p.since)
	}
	return out
}

// sinceEver is partitions whose member is at the beginning: none was given to it later.
func sinceEver(list []heldPart) []heldPart {
	var out []heldPart
	for _, p := range list {
		out = append(out, heldPart{part: p.part})
	}
	return out
}

func placesOf(list []heldPart) []part {
	out := make([]part, len(list))
	for i := range list {
		out[i] = list[i].part
	}
	return out
}
