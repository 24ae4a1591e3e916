package requests

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

// shape is where the topics T of a message have their id and their partitions P, and those their
// index. The messages are alike, and generated each for itself.
type shape[T, P any] struct {
	id         func(*T) *[16]byte
	partitions func(*T) *[]P
	index      func(*P) *int32
}

// answer is the shape of an answer.
type answer[T, P any] struct {
	shape[T, P]
	code  func(*P) *int16
	fresh func() P
}

// split makes a request for each value of of, by with, which is given topics.
func split[T, P any](req kmsg.Request, s shape[T, P], group string, topics []T, of func(Key) int32, with func([]T) kmsg.Request) map[int32]kmsg.Request {
	parts := map[int32][]T{}
	for i := range topics {
		t := &topics[i]
		last := map[int32]int{} // where each part has this topic
		for _, p := range *s.partitions(t) {
			to := of(Key{group, *s.id(t), *s.index(&p)})
			at, ok := last[to]
			if !ok {
				one := *t
				*s.partitions(&one) = nil
				at = len(parts[to])
				parts[to], last[to] = append(parts[to], one), at
			}
			some := s.partitions(&parts[to][at])
			*some = append(*some, p)
		}
	}
	out := make(map[int32]kmsg.Request, len(parts))
	for _, to := range slices.Sorted(maps.Keys(parts)) {
		if len(parts) == 1 {
			out[to] = req
			return out
		}
		out[to] = with(parts[to])
	}
	return out
}

func failed[T, P, A, Q any](s shape[T, P], a answer[A, Q], topics []T, err *kerr.Error) []A {
	var code int16
	if err != nil {
		code = err.Code
	}
	out := make([]A, len(topics))
	for i := range topics {
		*a.id(&out[i]) = *s.id(&topics[i])
		asked := *s.partitions(&topics[i])
		answered := make([]Q, len(asked))
		for j := range asked {
			answered[j] = a.fresh()
			*a.index(&answered[j]), *a.code(&answered[j]) = *s.index(&asked[j]), code
		}
		*a.partitions(&out[i]) = answered
	}
	return out
}

// topics returns those of all answers that are of one type.
func topics[R, T any](parts []kmsg.Response, of func(R) []T) []T {
	var out []T
	for _, p := range parts {
		if r, ok := p.(R); ok {
			out = append(out, of(r)...)
		}
	}
	return out
}

// merge fills in what parts have answered.
func merge[T, P any](a answer[T, P], into, parts []T) {
	got := map[Key]*P{}
	for i := range parts {
		for j := range *a.partitions(&parts[i]) {
			p := &(*a.partitions(&parts[i]))[j]
			got[Key{Topic: *a.id(&parts[i]), Partition: *a.index(p)}] = p
		}
	}
	for i := range into {
		for j := range *a.partitions(&into[i]) {
			p := &(*a.partitions(&into[i]))[j]
			if one := got[Key{Topic: *a.id(&into[i]), Partition: *a.index(p)}]; one != nil {
				*p = *one
			}
		}
	}
}

// each calls f for each share partition of an answer.
func each(resp kmsg.Response, f func(topic metadata.TopicID, partition int32, code int16)) {
	switch m := resp.(type) {
	case *kmsg.InitializeShareGroupStateResponse:
		eachOf(initializedAnswer, m.Topics, f)
	case *kmsg.ReadShareGroupStateResponse:
		eachOf(readAnswer, m.Topics, f)
	case *kmsg.WriteShareGroupStateResponse:
		eachOf(writtenAnswer, m.Topics, f)
	case *kmsg.DeleteShareGroupStateResponse:
		eachOf(deletedAnswer, m.Topics, f)
	case *kmsg.ReadShareGroupStateSummaryResponse:
		eachOf(summarizedAnswer, m.Topics, f)
	}
}

func eachOf[T, P any](a answer[T, P], topics []T, f func(topic metadata.TopicID, partition int32, code int16)) {
	for i := range topics {
		for j := range *a.partitions(&topics[i]) {
			p := &(*a.partitions(&topics[i]))[j]
			f(*a.id(&topics[i]), *a.index(p), *a.code(p))
		}
	}
}
