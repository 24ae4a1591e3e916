package groups

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// target returns what the flags ask for; cobra has seen to it that they ask for
// one thing.
func (f *resetFlags) target(cmd *cobra.Command) (groupview.ResetTarget, error) {
	given := cmd.Flags().Changed
	switch {
	case given("undo"):
		return groupview.ResetTarget{}, nil // The journal says where to.
	case given("to-offset"):
		if f.toOffset < 0 {
			return groupview.ResetTarget{}, cli.Usagef("--to-offset cannot be negative; --shift-by moves back")
		}
		return groupview.ResetTarget{Kind: groupview.ResetOffset, N: f.toOffset}, nil
	case given("to-timestamp"):
		t, err := source.ParseTime(f.toTime, time.Now())
		return groupview.ResetTarget{Kind: groupview.ResetTime, N: max(t.UnixMilli(), 0)}, err
	case given("shift-by"):
		return groupview.ResetTarget{Kind: groupview.ResetShift, N: f.shiftBy}, nil
	case f.toLatest:
		return groupview.ResetTarget{Kind: groupview.ResetEnd}, nil
	case f.toEarliest:
		return groupview.ResetTarget{Kind: groupview.ResetBeginning}, nil
	}
	return groupview.ResetTarget{}, cli.Usagef("say where to: --to-earliest, --to-latest, --to-offset, --to-timestamp, --shift-by or --undo")
}

// scope is a --topic flag: a topic, or some of its partitions.
type scope struct {
	topic      string
	partitions []int32 // All if empty.
}

func parseScopes(flags []string) ([]scope, error) {
	var out []scope
	for _, text := range flags {
		topic, numbers, some := strings.Cut(text, ":")
		s := scope{topic: topic}
		if topic == "" {
			return nil, cli.Usagef("--topic takes the name of a topic, or topic:0,2 for some of its partitions, not %q", text)
		}
		if slices.ContainsFunc(out, func(o scope) bool { return o.topic == topic }) {
			return nil, cli.Usagef("--topic names %s twice", topic)
		}
		for number := range strings.SplitSeq(numbers, ",") {
			if !some {
				break
			}
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil {
				return nil, cli.Usagef("--topic takes the name of a topic, or topic:0,2 for some of its partitions, not %q", text)
			}
			s.partitions = append(s.partitions, int32(n))
		}
		out = append(out, s)
	}
	return out, nil
}

// planReset works out the new offset of each partition. No scopes stand for all
// topics of the group, which is nil if there is none.
func planReset(ctx context.Context, client *kgo.Client, loader *groupview.Loader, name string, g *groupview.Group, scopes []scope, target groupview.ResetTarget) ([]resetPartition, error) {
	current := currentOffsets(g)
	if len(scopes) == 0 && len(current) == 0 {
		if g == nil {
			return nil, &groupview.NoGroupError{Name: name}
		}
		return nil, fmt.Errorf("group %s has no committed offsets; name the topics with --topic", name)
	}
	set := kadm.TopicsSet{}
	if len(scopes) == 0 {
		for tp := range current {
			set.Add(tp.Topic, tp.Partition)
		}
	} else if err := addScopes(ctx, loader, scopes, set); err != nil {
		return nil, err
	}
	var times map[source.TopicPartition]int64
	if target.Kind == groupview.ResetTime {
		var err error
		if times, err = source.ListOffsets(ctx, client, set, target.N); err != nil {
			return nil, err
		}
	}
	var rows []resetPartition
	for _, t := range set.Sorted() {
		for _, p := range t.Partitions {
			tp := source.TopicPartition{Topic: t.Topic, Partition: p}
			row := resetPartition{Topic: t.Topic, Partition: p, Current: current[tp]}
			row.resolve(target, loader, tp, times)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// currentOffsets is what a group has committed, of each of its partitions.
func currentOffsets(g *groupview.Group) map[source.TopicPartition]*int64 {
	current := map[source.TopicPartition]*int64{}
	if g != nil {
		for _, p := range g.Partitions {
			current[source.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = p.Committed
		}
	}
	return current
}

// addScopes adds the partitions that --topic flags name.
func addScopes(ctx context.Context, loader *groupview.Loader, scopes []scope, set kadm.TopicsSet) error {
	var names []string
	for _, s := range scopes {
		names = append(names, s.topic)
	}
	if err := loader.LoadLogs(ctx, names); err != nil {
		return err
	}
	for _, s := range scopes {
		count := loader.Partitions(s.topic)
		if count == 0 {
			return cli.TopicError(s.topic, kerr.UnknownTopicOrPartition, "")
		}
		for _, p := range s.partitions {
			if int(p) >= count {
				return fmt.Errorf("topic %s has no partition %d; it has %s", s.topic, p, words.Plural(count, "partition"))
			}
			set.Add(s.topic, p)
		}
		if len(s.partitions) == 0 {
			for p := range count {
				set.Add(s.topic, int32(p))
			}
		}
	}
	return nil
}

// resolve fills in the new offset.
func (r *resetPartition) resolve(target groupview.ResetTarget, loader *groupview.Loader, tp source.TopicPartition, times map[source.TopicPartition]int64) {
	var log *groupview.Bounds
	at := int64(0)
	if b, ok := loader.Bounds(tp); ok {
		log, at = &b, b.End
	}
	if found, ok := times[tp]; ok {
		at = found
	}
	step := target.Step(r.Current, log, at)
	r.New, r.Note = step.To, step.Note
	if step.To != nil {
		lag := log.End - *step.To
		r.LagAfter = &lag
	}
}

// changes says whether the committed offset becomes another one.
func (r *resetPartition) changes() bool {
	return r.New != nil && (r.Current == nil || *r.Current != *r.New)
}
