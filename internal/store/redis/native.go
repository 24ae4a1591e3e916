package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// A Kafka group is shown to Redis people as a consumer group of the same name
// on every partition's stream that it consumes: XINFO GROUPS tells where it
// stands and how far it lags. It is a picture. The truth is the committed
// offset in __consumer_offsets, nothing is delivered through the group, and
// what a Redis consumer of it has pending is left alone.
//
// The set {<stream>}:g holds the names of the groups that muster created. Any
// other group was there before, made by a Redis client, and its position is
// where a Kafka group of that name begins.

// Stream names a partition's stream and how offsets stand for its ids, as the
// topic's settings say. A stream that was made under other settings keeps its
// own, and is treated accordingly.
type Stream struct {
	store.TopicPartition
	Layout       store.Layout
	SequenceBits int
}

func (s Stream) layout() store.Layout {
	if s.Layout == store.LayoutLog {
		return store.LayoutLog
	}
	return store.LayoutStream
}

func (s Stream) numbering() numbering {
	switch {
	case s.Layout == store.LayoutLog:
		return numbering{}
	case s.SequenceBits == 0:
		return numbering{bits: defaultBits}
	}
	return numbering{bits: uint(s.SequenceBits)}
}

// idBefore returns the id that a group is at when it has committed an offset:
// that of the last record before the offset. In layout stream that is
// arithmetic, whether the record exists or not; in layout log a batch has the
// offset after its last record for an id.
func (s Stream) idBefore(offset int64) entryID {
	if s.Layout != store.LayoutLog {
		offset--
	}
	return s.numbering().id(offset)
}

// offsetAfter returns the offset that follows what a group at an id has read.
func (s Stream) offsetAfter(id entryID) int64 {
	if s.Layout != store.LayoutLog && id != (entryID{}) {
		id = id.after()
	}
	return s.numbering().atOrAfter(id)
}

// as returns the stream as its meta hash says it is.
func (s Stream) as(layout, bits string) Stream {
	switch n, err := strconv.Atoi(bits); store.Layout(layout) {
	case store.LayoutLog:
		s.Layout = store.LayoutLog
	case store.LayoutStream:
		s.Layout = store.LayoutStream
		if err == nil && n > 0 && n <= maxBits {
			s.SequenceBits = n
		}
	}
	return s
}

// Native makes, moves and removes the consumer groups that Redis people see.
type Native struct {
	client rueidis.Client
	prefix string
}

// NewNative returns the groups of the streams under a prefix.
func NewNative(client rueidis.Client, prefix string) *Native {
	return &Native{client: client, prefix: prefix}
}

// CreateGroup creates a group that stands before an offset. A group that
// exists stays where it is, and where there is no stream there is no group.
func (n *Native) CreateGroup(ctx context.Context, s Stream, group string, offset int64) error {
	return n.place(ctx, []placement{{s, group, offset}}, placeNew, maxCounted)[0]
}

// MoveGroup moves a group to a committed offset, forward or back. A group that
// does not exist is created.
func (n *Native) MoveGroup(ctx context.Context, s Stream, group string, offset int64) error {
	return n.place(ctx, []placement{{s, group, offset}}, placeAny, maxCounted)[0]
}

// Position is where a Redis group stands in a stream.
type Position struct {
	Offset int64 // the next one it has not read
	OK     bool  // false if there is none, or muster made it
}

// Positions says where a group that Redis clients made stands in streams: not
// one of ours, since those follow the committed offset. What is not there, or
// is no stream, has no position.
func (n *Native) Positions(ctx context.Context, streams []Stream, group string) ([]Position, error) {
	commands := make(rueidis.Commands, 0, 3*len(streams))
	for _, s := range streams {
		k := logKeys(n.prefix, s.TopicPartition)
		commands = append(commands,
			n.client.B().Sismember().Key(k.groups).Member(group).Build(),
			n.client.B().Hmget().Key(k.meta).Field("layout", "bits").Build(),
			n.client.B().XinfoGroups().Key(k.stream).Build())
	}
	positions := make([]Position, len(streams))
	replies := n.doMulti(ctx, commands)
	for i, s := range streams {
		what := fmt.Sprintf("looking for redis group %s of %s-%d", group, s.Topic, s.Partition)
		ours, err := replies[3*i].AsBool()
		if err != nil {
			return nil, attempt(what, err)
		}
		meta, err := replies[3*i+1].AsStrSlice()
		if err != nil {
			return nil, attempt(what, err)
		}
		s = s.as(meta[0], meta[1])
		groups, err := replies[3*i+2].ToArray()
		if err != nil && isPassing(err) {
			return nil, attempt(what, err)
		}
		for _, g := range groups {
			fields, err := g.AsMap()
			if err != nil {
				return nil, attempt(what, err)
			}
			name, id := fields["name"], fields["last-delivered-id"]
			if found, _ := name.ToString(); found != group || ours {
				continue
			}
			text, _ := id.ToString()
			if id, err := parseID(text); err == nil {
				positions[i] = Position{s.offsetAfter(id), true}
			}
		}
	}
	return positions, nil
}

// DestroyGroups removes groups from partitions, whoever made them. Where one
// does not exist there is nothing to remove.
func (n *Native) DestroyGroups(ctx context.Context, tps []store.TopicPartition, groups []string) error {
	commands := make(rueidis.Commands, 0, len(tps)*(len(groups)+1))
	for _, tp := range tps {
		k := logKeys(n.prefix, tp)
		for _, group := range groups {
			commands = append(commands, n.client.B().XgroupDestroy().Key(k.stream).Group(group).Build())
		}
		if len(groups) > 0 {
			commands = append(commands, n.client.B().Srem().Key(k.groups).Member(groups...).Build())
		}
	}
	for _, reply := range n.doMulti(ctx, commands) {
		if err := reply.Error(); err != nil && isPassing(err) {
			return attempt("destroying redis groups", err)
		}
	}
	return nil
}

// pipelineLength is how many commands are sent at once, so that one call about
// thousands of partitions does not hold up everybody else's.
const pipelineLength = 500

func (n *Native) doMulti(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, 0, len(commands))
	for len(commands) > 0 {
		chunk := commands[:min(pipelineLength, len(commands))]
		results = append(results, n.client.DoMulti(ctx, chunk...)...)
		commands = commands[len(chunk):]
	}
	return results
}
