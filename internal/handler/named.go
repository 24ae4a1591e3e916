package handler

import "slices"

// A small request can name one thing thousands of times, and what is told of it
// may be large: 6 KB that named a topic of 10,000 partitions again and again took
// 3 GB to answer. So a thing is told once, however often it is named. Kafka does
// that for most requests, and refuses some (INVALID_REQUEST).

// partitionName names a partition, or a topic that comes without partitions.
type partitionName struct {
	topic string
	index int32
	none  bool
}

// distinct removes the partitions that are named again further on, so that the
// last of each counts, as in Kafka, and says which were. A topic's key is its
// name, or its id.
func distinct[T, P any](topics []T, of func(*T) (key string, partitions *[]P), index func(*P) int32) (kept []T, repeated map[partitionName]bool) {
	if len(topics) == 0 {
		return topics, nil
	}
	if _, partitions := of(&topics[0]); len(topics) == 1 && isDistinct(*partitions, index) {
		return topics, nil // As most requests.
	}
	seen := map[partitionName]struct{}{}
	again := func(n partitionName) bool {
		if _, ok := seen[n]; !ok {
			seen[n] = struct{}{}
			return false
		}
		if repeated == nil {
			repeated = map[partitionName]bool{}
		}
		repeated[n] = true
		return true
	}
	kept = keepLast(topics, func(t *T) bool {
		key, partitions := of(t)
		if len(*partitions) == 0 {
			return again(partitionName{topic: key, none: true})
		}
		*partitions = keepLast(*partitions, func(p *P) bool { return again(partitionName{topic: key, index: index(p)}) })
		return len(*partitions) == 0
	})
	return kept, repeated
}

// fewDistinct is up to how many partitions it is cheaper to compare them all than to
// keep a map.
const fewDistinct = 16

// isDistinct says whether partitions are few, and each is another.
func isDistinct[P any](partitions []P, index func(*P) int32) bool {
	if len(partitions) > fewDistinct {
		return false
	}
	for i := range partitions {
		for j := range partitions[:i] {
			if index(&partitions[i]) == index(&partitions[j]) {
				return false
			}
		}
	}
	return true
}

// itself is the index of a partition of which nothing but the index is told.
func itself(index *int32) int32 { return *index }

// once removes what is named again further on.
func once[T any, K comparable](list []T, key func(*T) K) []T {
	if len(list) <= 1 {
		return list
	}
	seen := make(map[K]struct{}, len(list))
	return keepLast(list, func(e *T) bool {
		k := key(e)
		_, again := seen[k]
		seen[k] = struct{}{}
		return again
	})
}

// keepLast removes, from the end on, what drop says.
func keepLast[T any](list []T, drop func(*T) bool) []T {
	next := len(list)
	for i := range slices.Backward(list) {
		if !drop(&list[i]) {
			next--
			list[next], list[i] = list[i], list[next]
		}
	}
	return list[next:]
}

// repeatedIn returns which keys stand in a list more than once.
func repeatedIn[T any, K comparable](list []T, key func(*T) K) map[K]bool {
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(&list[i])
		_, again := seen[k]
		seen[k] = again
	}
	return seen
}
