// Package native shows Kafka groups to Redis clients, as consumer groups of Redis. A Kafka group is shown as a consumer group of the same name on every
// partition's stream that it consumes: XINFO GROUPS tells where it stands and how
// far it lags. It is only a view. What counts is the committed offset in
// __consumer_offsets, nothing is delivered through the group, and what a Redis
// consumer of it has pending is left alone.
//
// The set {<stream>}:g holds the names of the groups that muster created. Any
// other group was there before, made by a Redis client, and its position is
// where a Kafka group of that name begins.
package native

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

// Groups makes, moves and removes the consumer groups that Redis clients see.
type Groups struct {
	client rueidis.Client
	prefix string
}

// New returns the groups of the streams under a prefix.
func New(client rueidis.Client, prefix string) *Groups {
	return &Groups{client: client, prefix: prefix}
}

// CreateGroup creates a group that stands before an offset. A group that
// exists stays where it is, and where there is no stream there is no group.
func (n *Groups) CreateGroup(ctx context.Context, s redis.Stream, group string, offset int64) error {
	return n.place(ctx, []placement{{s, group, offset}}, placeNew, maxCounted)[0]
}

// MoveGroup moves a group to a committed offset, forward or back. A group that
// does not exist is created.
func (n *Groups) MoveGroup(ctx context.Context, s redis.Stream, group string, offset int64) error {
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
func (n *Groups) Positions(ctx context.Context, streams []redis.Stream, group string) ([]Position, error) {
	commands := make(rueidis.Commands, 0, 3*len(streams))
	for _, s := range streams {
		k := redis.KeysOf(n.prefix, s.TopicPartition)
		commands = append(commands,
			n.client.B().Sismember().Key(k.Groups).Member(group).Build(),
			n.client.B().Hmget().Key(k.Meta).Field("layout", "bits").Build(),
			n.client.B().XinfoGroups().Key(k.Stream).Build())
	}
	positions := make([]Position, len(streams))
	replies := n.doMulti(ctx, commands)
	for i, s := range streams {
		what := fmt.Sprintf("looking for redis group %s of %s-%d", group, s.Topic, s.Partition)
		ours, err := replies[3*i].AsBool()
		if err != nil {
			return nil, conn.Attempt(what, err)
		}
		meta, err := replies[3*i+1].AsStrSlice()
		if err != nil {
			return nil, conn.Attempt(what, err)
		}
		s = s.As(meta[0], meta[1])
		groups, err := replies[3*i+2].ToArray()
		if err != nil && conn.IsPassing(err) {
			return nil, conn.Attempt(what, err)
		}
		for _, g := range groups {
			fields, err := g.AsMap()
			if err != nil {
				return nil, conn.Attempt(what, err)
			}
			name, id := fields["name"], fields["last-delivered-id"]
			if found, _ := name.ToString(); found != group || ours {
				continue
			}
			text, _ := id.ToString()
			if positions[i], err = n.position(ctx, s, text); err != nil {
				return nil, err
			}
		}
	}
	return positions, nil
}

// position is where a group at an id stands.
func (n *Groups) position(ctx context.Context, s redis.Stream, id string) (Position, error) {
	if s.Layout == store.LayoutIndexed {
		offset, ok, err := redis.OffsetAfter(ctx, n.client, n.prefix, s.TopicPartition, id)
		return Position{offset, ok}, err
	}
	offset, err := s.OffsetAfter(id)
	return Position{offset, err == nil}, nil
}

// DestroyGroups removes groups from partitions, including those that muster did
// not make. Where one
// does not exist there is nothing to remove.
func (n *Groups) DestroyGroups(ctx context.Context, tps []store.TopicPartition, groups []string) error {
	commands := make(rueidis.Commands, 0, len(tps)*(len(groups)+2))
	for _, tp := range tps {
		k := redis.KeysOf(n.prefix, tp)
		for _, group := range groups {
			commands = append(commands, n.client.B().XgroupDestroy().Key(k.Stream).Group(group).Build())
		}
		if len(groups) > 0 {
			commands = append(commands,
				n.client.B().Srem().Key(k.Groups).Member(groups...).Build(),
				n.client.B().Hdel().Key(k.Consumers).Field(groups...).Build())
		}
	}
	for _, reply := range n.doMulti(ctx, commands) {
		if err := reply.Error(); err != nil && conn.IsPassing(err) {
			return conn.Attempt("destroying redis groups", err)
		}
	}
	return nil
}

// pipelineLength is how many commands are sent at once, so that one call about
// thousands of partitions does not hold up everybody else's.
const pipelineLength = 500

func (n *Groups) doMulti(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, 0, len(commands))
	for len(commands) > 0 {
		chunk := commands[:min(pipelineLength, len(commands))]
		results = append(results, n.client.DoMulti(ctx, chunk...)...)
		commands = commands[len(chunk):]
	}
	return results
}
