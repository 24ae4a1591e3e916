package records

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
)

// from is a parsed --from flag.
type from struct {
	kind fromKind
	n    int64 // The offset, the number of offsets, or the time in milliseconds.
}

type fromKind int

const (
	fromBeginning fromKind = iota
	fromEnd
	fromOffset
	fromLast
	fromTime
)

func parseFrom(text string) (from, error) {
	switch text {
	case "beginning", "start", "earliest":
		return from{kind: fromBeginning}, nil
	case "end", "latest":
		return from{kind: fromEnd}, nil
	}
	if when, ok := strings.CutPrefix(text, "@"); ok {
		t, err := source.ParseTime(when, time.Now())
		return from{fromTime, t.UnixMilli()}, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return from{}, cli.Usagef("--from is beginning, end, OFFSET, -N or @TIME, not %q", text)
	case strings.HasPrefix(text, "-"):
		return from{fromLast, -n}, nil
	}
	return from{fromOffset, n}, nil
}

// bounds are the offsets of a partition that --from is about.
type bounds struct {
	start, end int64
	at         int64 // The offset that --from @TIME means.
}

// resolve returns the offset to start at, which lies between the log start
// offset and the end.
func (f from) resolve(b bounds) int64 {
	offset := b.start
	switch f.kind {
	case fromBeginning:
	case fromEnd:
		offset = b.end
	case fromOffset:
		offset = f.n
	case fromLast:
		offset = b.end - f.n
	case fromTime:
		offset = b.at
	}
	return min(max(offset, b.start), b.end)
}

// listBounds asks for the bounds of all partitions. The end for a reader of
// committed records is the last stable offset.
func listBounds(ctx context.Context, admin *kadm.Client, f from, committed bool, topics []string) (map[source.TopicPartition]bounds, error) {
	listEnds := admin.ListEndOffsets
	if committed {
		listEnds = admin.ListCommittedOffsets
	}
	starts, err := listed(admin.ListStartOffsets(ctx, topics...))
	if err != nil {
		return nil, err
	}
	ends, err := listed(listEnds(ctx, topics...))
	if err != nil {
		return nil, err
	}
	var times map[source.TopicPartition]int64
	if f.kind == fromTime {
		if times, err = listed(admin.ListOffsetsAfterMilli(ctx, max(f.n, 0), topics...)); err != nil {
			return nil, err
		}
	}
	out := make(map[source.TopicPartition]bounds, len(starts))
	for tp, start := range starts {
		out[tp] = bounds{start: start, end: max(ends[tp], start), at: times[tp]}
	}
	return out, nil
}

// listed returns the offsets of an answer, or the error of any partition in it.
func listed(l kadm.ListedOffsets, err error) (map[source.TopicPartition]int64, error) {
	if err != nil {
		return nil, cli.Plain(err)
	}
	out := map[source.TopicPartition]int64{}
	for _, partitions := range l {
		for _, o := range partitions {
			if o.Err != nil {
				return nil, cli.TopicError(o.Topic, o.Err, "")
			}
			out[source.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = o.Offset
		}
	}
	return out, nil
}
