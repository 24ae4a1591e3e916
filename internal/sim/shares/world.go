// Package shares simulates the share coordinator: the core of package share/state in a real pump,
// on a log that fails, whose coordinator moves, and which is cut at its beginning as the core
// says. Leaders of share partitions and a group coordinator send it requests, some of them as
// leaders that are none any more.
//
// What it demands: snapshots and updates give the state that the core has, whatever the log lost
// of its beginning (invariant 13 of share groups); what was answered as written is there, also
// for the next leader; starts do not go back; who was fenced writes no more; in the end the log is
// short. In runs of lost tails, all that holds of what is not lost.
package shares

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/share/state"
	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

const (
	// salt makes the chance of the seeds this simulator's own.
	salt = 0x5a7e
	// chaos is how long things go wrong.
	chaos = 30 * time.Second
	// patience is within which everything is answered when nothing goes wrong any more.
	patience = time.Minute
)

// topic is what the share partitions are of.
var topic = metadata.TopicID{7}

// partitions is how many it has, each of them in two groups.
const partitions = 2

// Simulate is one run.
func Simulate(base *seeds.World) { run(base, false, nil) }

// SimulateTails is a run in which the log loses its end at times.
func SimulateTails(base *seeds.World) { run(base, true, nil) }

// world is one run.
type world struct {
	*seeds.World
	cfg    state.Config
	image  *metadata.Image
	plant  shell.Plant
	faults faults

	ops   []op // what was done to the log, in order: its end may be lost
	cuts  int  // how often it has
	epoch int32
	shard *shard
	ids   uint64
	keys  []*key
}

// faults is how often things go wrong.
type faults struct {
	failed, lost, late float64
	takeover, tail     time.Duration
}

// op is a batch that was appended to the log, or a trim of it.
type op struct {
	batch record.Batch // nil for a trim
	trim  int64
}

func run(base *seeds.World, tails bool, plant shell.Plant) {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutTopic(metadata.Topic{Name: "t", ID: topic, Partitions: make([]metadata.Partition, partitions)})
	w := &world{World: base, image: edit.Image(), plant: plant}
	d := seeds.Dice{Rand: w.Rand}
	w.cfg = state.Config{Updates: w.Rand.IntN(6), Idle: w.Between(time.Second, 4*time.Second), Prune: w.Between(time.Second, 4*time.Second)}
	w.faults = faults{failed: d.Share(0.1), lost: d.Share(0.1), late: d.Share(0.2), takeover: d.Every(time.Second, 20*time.Second)}
	if tails {
		w.faults.tail = w.Between(2*time.Second, 20*time.Second)
	}
	for _, group := range []string{"g", "h"} {
		for i := range int32(partitions) {
			w.keys = append(w.keys, newKey(w, state.Key{Group: group, Topic: topic, Partition: i}))
		}
	}
	w.takeOver()
	w.Every(w.faults.takeover, func() {
		if w.happensNow() {
			w.Count("another coordinator")
			w.takeOver()
		}
	})
	w.Every(w.faults.tail, func() {
		if w.happensNow() {
			w.loseTail()
		}
	})
	w.RunUntil(w.Chaos(chaos))
	w.Calm = true
	w.Settle(patience, w.unsettled)
	w.RunUntil(w.Now + 5*max(w.cfg.Idle, w.cfg.Prune))
	w.Settle(patience, w.unsettled)
	w.checkEnd()
}

// happensNow lets a fault be left out of a run that is made shorter.
func (w *world) happensNow() bool { return w.Chance(0.999) }

// takeOver has another broker coordinate.
func (w *world) takeOver() {
	if w.shard != nil {
		w.shard.end()
	}
	w.epoch++
	w.shard = newShard(w, w.epoch)
	w.shard.load()
}

// loseTail has the log lose the last that was done to it.
func (w *world) loseTail() {
	n := max(0, len(w.ops)-1-w.Rand.IntN(6))
	w.Count("tail lost")
	w.Tracef("the log loses %d of %d", len(w.ops)-n, len(w.ops))
	w.ops = w.ops[:n]
	w.cuts++
	for _, k := range w.keys {
		k.forget(n)
	}
	w.takeOver()
}

// end is where the log ends.
func (w *world) end() int64 {
	for _, o := range slices.Backward(w.ops) {
		if o.batch != nil {
			return o.batch.LastOffset() + 1
		}
	}
	return 0
}

// start is where the log begins.
func (w *world) start() int64 {
	for _, o := range slices.Backward(w.ops) {
		if o.batch == nil {
			return o.trim
		}
	}
	return 0
}

// stored returns what there is of the log.
func (w *world) stored() (batches []record.Batch) {
	start := w.start()
	for _, o := range slices.Backward(w.ops) {
		if o.batch != nil && o.batch.LastOffset() < start {
			break
		}
		if o.batch != nil {
			batches = append(batches, o.batch)
		}
	}
	slices.Reverse(batches)
	return batches
}

// unsettled says what is not as it should be when nothing goes wrong any more.
func (w *world) unsettled() string {
	if s := w.shard; !s.Pump.Active() || len(s.waiting) > 0 || s.appends > 0 || s.Pump.Ready() {
		return "the coordinator is busy"
	}
	return ""
}

// checkEnd holds the state against the log, and looks how long that is.
func (w *world) checkEnd() {
	w.shard.checkReplay()
	batches, start, next := w.stored(), w.start(), w.end()
	n := 0
	for _, b := range batches {
		n += int(b.LastOffset() - max(b.BaseOffset(), start) + 1)
	}
	if most := 4*len(w.keys) + 2*w.cfg.Updates; n > most {
		w.Violated("the log has %d records from %d to %d when everything was idle for long, more than %d", n, start, next, most)
	}
}

// ask sends a request and passes the answer on, if neither is lost.
func (w *world) ask(req kmsg.Request, done func(kmsg.Response)) {
	if w.Chance(w.faults.lost) {
		w.Count("request lost")
		return
	}
	lost := w.Chance(w.faults.lost)
	w.After(w.About(5*time.Millisecond), func() {
		w.shard.request(req, func(resp kmsg.Response) {
			if lost {
				w.Count("answer lost")
				return
			}
			w.After(w.About(5*time.Millisecond), func() { done(resp) })
		})
	})
}

// next numbers what happens.
func (w *world) nextID() uint64 {
	w.ids++
	return w.ids
}

// name counts an answer.
func name(req kmsg.Request, code int16) string {
	return fmt.Sprintf("%s %d", kmsg.NameForKey(req.Key()), code)
}
