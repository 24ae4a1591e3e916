package group

import (
	"bytes"
	"cmp"
	"slices"

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
