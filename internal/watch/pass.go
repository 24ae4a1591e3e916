package watch

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"muster/internal/metadata"
	"muster/internal/watch/explain"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// pass is one look at everything.
type pass struct {
	w       *Watch
	image   *metadata.Image
	at      time.Time
	number  uint64
	answers map[Part]*answered
	asked   map[Part]*readers
	counts  map[PartitionOffset]counted
	unknown bool // Someone reads a partition that another broker leads, and no one was asked for it.

	sameImage  bool // Topics and leaders are those of the pass before.
	rebalanced map[string]rebalanced
	deleted    map[string]bool
	died       map[string][]lag.Death
	fresh      []*Seen // Groups that the pass before has not seen.

	positions []lag.Position // Used again for each group.
	owned     []ownedPart
	elsewhere bool // Of these some are on other brokers.

	streams map[Part]stream // Partitions whose offsets are not dense.
	counted time.Duration   // How long their records were counted.
	turn    turns
	last    map[holder]lag.Count // What was last counted.
}

// pass makes a pass, and says whether another one would know more.
func (w *Watch) pass(ctx context.Context) (again bool) {
	image := w.opts.Source.Image()
	if image == nil {
		return false
	}
	w.opts.Source.Prepare(ctx)
	x := &pass{
		w: w, image: image, at: w.opts.Now(), number: w.number + 1, sameImage: image == w.image,
		asked: map[Part]*readers{}, counts: map[PartitionOffset]counted{}, streams: map[Part]stream{}, last: map[holder]lag.Count{},
	}
	w.number, w.image = x.number, image
	x.answers = x.askOthers(ctx)
	topics, logs := x.look()
	x.begin(logs)
	w.opts.Source.Groups(ctx, image, x.quiet, func(some []Group) { x.take(ctx, some) })
	if ctx.Err() != nil {
		for _, s := range x.fresh {
			s.pass = 0 // The next pass is the first to list it.
		}
		return false // What was not seen is not gone.
	}
	w.mu.Lock()
	w.tracker.End()
	suspected := w.tracker.Suspected()
	w.mu.Unlock()
	w.asked, w.counts = x.asked, x.counts
	w.lastCounts, w.countFrom = x.last, x.turn.from
	w.last.Store(&Snapshot{At: x.at, Node: w.opts.Node, Groups: list.Of(x.rows(), sync.OnceFunc), Topics: topics})
	w.tell(suspected)
	return x.unknown
}

// look looks at all partitions.
func (x *pass) look() ([]Topic, []lag.Log) {
	all := x.image.Topics()
	topics := make([]Topic, len(all))
	var logs []lag.Log
	for i, t := range all {
		bits := x.w.opts.Source.TimeBits(t)
		parts := make([]Partition, len(t.Partitions))
		for n := range t.Partitions {
			p := &parts[n]
			*p = Partition{Number: int32(n), Leader: t.Partitions[n].Leader, Dense: bits == 0}
			if p.Leader != x.w.opts.Node && p.Leader != metadata.NoBroker {
				continue
			}
			var seen Log
			if p.Leader == x.w.opts.Node {
				seen, p.Here = x.w.opts.Source.Log(t, p.Number)
			}
			p.Start, p.End, p.LastStable, p.Bytes = seen.Start, seen.End, seen.LastStable, seen.Bytes
			logs = append(logs, x.log(t, p.Number, bits, seen, p.Here))
		}
		topics[i] = Topic{Name: t.Name, ID: t.ID, Internal: t.Internal, Partitions: parts}
	}
	for part, a := range x.answers {
		if t := x.image.Topic(part.Topic); t != nil {
			logs = append(logs, x.log(t, part.Partition, x.w.opts.Source.TimeBits(t), a.Log, a.Known))
		}
	}
	return topics, logs
}

// log is logOf, and remembers those whose records must be counted.
func (x *pass) log(t *metadata.Topic, partition int32, bits uint8, seen Log, known bool) lag.Log {
	out := logOf(t, partition, bits, seen, known)
	if known && bits > 0 {
		x.streams[Part{t.Name, partition}] = stream{out.Bounds, seen.Bytes}
	}
	return out
}

// logOf is a partition as the tracker wants it.
func logOf(t *metadata.Topic, partition int32, bits uint8, seen Log, known bool) lag.Log {
	out := lag.Log{Topic: t.Name, ID: t.ID, Partition: partition, Offline: !known, TimeBits: bits}
	if !known {
		return out
	}
	out.Bounds, out.LastStable, out.Tail = lag.Bounds{Start: seen.Start, End: seen.End}, seen.LastStable, int32(min(seen.Tail, math.MaxInt32))
	if bits == 0 {
		out.Added = seen.End
	}
	out.Retention.Size = seen.Bytes
	if t.Config.Delete {
		out.Retention.Age, out.Retention.Bytes = t.Config.RetentionAge, t.Config.RetentionBytes
	}
	return out
}

// begin hands the partitions to the tracker, and has it forget groups that were deleted.
func (x *pass) begin(logs []lag.Log) {
	w := x.w
	x.deleted, x.rebalanced, x.died = w.news.take()
	w.keeper.noteDeleted(x.deleted)
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range x.deleted {
		w.tracker.Forget(name)
	}
	w.tracker.Begin(x.at)
	for i := range logs {
		w.tracker.Log(logs[i])
	}
}

// take takes in some groups. What takes a network is done before the tracker's lock is
// taken.
func (x *pass) take(ctx context.Context, some []Group) {
	x.count(ctx, some)
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for i := range some {
		g := &some[i]
		if g.Same {
			x.again(g)
			continue
		}
		x.locate(g)
		for j := range x.positions {
			x.offline(&x.positions[j])
		}
		x.w.tracker.Group(lag.Group{Name: g.Row.Name, Members: len(g.Members), Positions: x.positions, Deaths: x.died[g.Row.Name]})
		x.see(g)
	}
}

// offline tells the tracker of a partition that another broker leads and no one was asked
// for: its topic is there, and its lag is not known.
func (x *pass) offline(p *lag.Position) {
	if led, leader := x.leader(p.Topic, p.Partition); !led || leader == x.w.opts.Node || leader == metadata.NoBroker {
		return
	}
	part := Part{p.Topic, p.Partition}
	if x.answers[part] != nil {
		return
	}
	if t := x.image.Topic(p.Topic); t != nil {
		x.w.tracker.Log(logOf(t, p.Partition, x.w.opts.Source.TimeBits(t), Log{}, false))
		x.unknown = true
	}
}

// leader returns who leads a partition; false if there is no such partition.
func (x *pass) leader(topic string, partition int32) (bool, int32) {
	t := x.image.Topic(topic)
	if t == nil || partition < 0 || int(partition) >= len(t.Partitions) {
		return false, metadata.NoBroker
	}
	return true, t.Partitions[partition].Leader
}

// caughtUp is the time that those need to catch up who have no lag.
var caughtUp = new(float64)

// fill fills in what the tracker says of a group.
func fill(row *list.GroupRow, l *lag.GroupLag) {
	row.Partitions, row.Lag, row.LagUnknown, row.LagApproximate, row.LagSeconds = l.Partitions, l.Lag, l.Unknown, l.Approximate, l.Seconds
	row.Pace, row.Stuck, row.Poison, row.Findings = l.Pace().String(), l.Stuck, int(l.Poison), explain.Found(l)
	row.CatchUpSeconds = nil
	switch l.CatchUp {
	case lag.CaughtUp:
		row.CatchUpSeconds = caughtUp
	case lag.Catching:
		row.CatchUpSeconds = new(l.CatchUpTime.Seconds())
	}
}

// topicsOf returns the topics that a group reads or has committed. Most groups have the
// same as in the pass before, and share the list with that.
func (x *pass) topicsOf(g *Group, before []string) []string {
	out := before
	same := 0
	for topic := range x.eachTopic(g) {
		if same == len(out) || out[same] != topic {
			same = -1
			break
		}
		same++
	}
	if same == len(out) {
		return out
	}
	return slices.Collect(x.eachTopic(g))
}
