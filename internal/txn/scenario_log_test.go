package txn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"muster/internal/assert"
	"muster/internal/harness"
	"muster/internal/machine"
)

// replayed returns a shard that has read the log.
func replayed(log []machine.Record, cfg Config) *Shard {
	s := NewShard(cfg)
	for i, r := range log {
		again, err := DecodeRecord(r.Encode())
		if err != nil {
			panic(fmt.Sprintf("%+v: %v", r, err))
		}
		s.Replay(machine.Stored{Records: []machine.StoredRecord{{Offset: int64(i), Record: again}}})
	}
	return s
}

// compacted returns the last record of every key, with or without tombstones.
func compacted(log []machine.Record, tombstones bool) []machine.Record {
	last := map[string]int{}
	for i, r := range log {
		key, _ := r.Encode()
		last[string(key)] = i
	}
	var kept []machine.Record
	for i, r := range log {
		key, value := r.Encode()
		if last[string(key)] == i && (value != nil || tombstones) {
			kept = append(kept, r)
		}
	}
	return kept
}

// records lists all records of a step.
func records(fx machine.Effects) (out []machine.Record) {
	for _, b := range fx.Batches {
		out = append(out, b.Records...)
	}
	return out
}

// new [what it is about]: an empty coordinator at time zero.
func (s *scenario) begin(args) {
	s.restart()
	s.Out.WriteString("an empty coordinator\n")
}

// crash: the broker is gone, with all soft state, and another one loads the shard.
func (s *scenario) crash(args) { s.load() }

// server-restarts [loses=2] [unknown]: the server of the store is started again, maybe
// without the last records, and the shard is loaded. Unknown is that no one knows how many
// records there were.
func (s *scenario) serverRestarts(a args) {
	loses := a.Number("loses", 0)
	s.log = s.log[:len(s.log)-loses]
	s.server.ID += "r"
	s.server.Began = int64(len(s.log))
	if loses > 0 || a.Flag("unknown") {
		s.server.Lost = s.server.Began
	}
	s.load()
}

// append-fails: the next records cannot be written.
func (s *scenario) appendFails(args) { s.failing = true }

// failed does what the runtime does when records cannot be written: it drops the
// shard with all that waits, and loads it again.
func (s *scenario) failed(fx machine.Effects) {
	s.failing = false
	for _, r := range records(fx) {
		s.Printf("not stored: %s\n", s.showRecord(r))
	}
	s.load()
}

// compact [keep-tombstones]: the log is compacted, and loaded.
func (s *scenario) compact(a args) {
	s.log = compacted(s.log, a.Flag("keep-tombstones"))
	s.load()
}

func (s *scenario) load() {
	s.Forget()
	s.sends, s.open = map[uint64]machine.Send{}, nil
	s.shard = replayed(s.log, s.cfg)
	s.epoch++
	s.step(machine.Loaded{Epoch: s.epoch, Run: s.server})
}

// afterReplay is the first producer id that is given after a replay, which has those
// below it.
const afterReplay = 21

// replay lists records, one per line of the input, that the log holds from now on
// instead of what it held:
//
//	x Ongoing 1/5 [t:0 t:1] [previous=7] [next=9/0] [last=4] [tv=2] [age=2h] [started=10s] [timeout=60s]
//	x tombstone
func (s *scenario) replay(a args) {
	s.log, s.nextID = nil, afterReplay
	for line := range strings.Lines(a.D.Input) {
		id, fields, err := datadriven.ParseLine(line)
		assert.MustTrue(s.T, err == nil && len(fields) != 0, "%q: %v", line, err)
		s.log = append(s.log, s.parseRecord(s.args(&datadriven.TestData{Cmd: id, CmdArgs: fields})))
	}
	s.load()
}

// parseRecord reads a line of the replay command; started and age are how long ago.
func (s *scenario) parseRecord(a args) *Record {
	r := &Record{TransactionalID: a.D.Cmd}
	if a.Who() == "tombstone" {
		return r
	}
	ago := func(name string) int64 { return s.Now.Add(-harness.ParseDuration(s.T, a.Text(name, "0s"))).UnixMilli() }
	v := &Value{
		State: parseState(a.Who()), Producer: parsePair(a, a.D.CmdArgs[1].Key), Timeout: int32(harness.ParseDuration(s.T, a.Text("timeout", "60s")).Milliseconds()),
		Updated: ago("age"), Start: none, Topics: union(nil, a.partitions()),
		Previous: int64(a.Number("previous", none)), Last: int16(a.Number("last", none)), Version: int16(a.Number("tv", 0)), Next: noPair,
	}
	if v.State != Empty {
		v.Start = ago("started")
	}
	if next := a.Text("next", ""); next != "" {
		v.Next = parsePair(a, next)
	}
	r.Value = v
	return r
}

func parseState(name string) State {
	for s := Empty; s < endOfStates; s++ {
		if s.String() == name {
			return s
		}
	}
	panic("no state " + name)
}

// each-state [tv=2] [last=4] [previous=7] then a request: what becomes of it in
// each state of x, which has the producer 1/5, in a coordinator of its own.
func (s *scenario) eachState(a args) {
	at := slices.IndexFunc(a.D.CmdArgs, func(c datadriven.CmdArg) bool { return commands[c.Key] != nil })
	setup, request := a.D.CmdArgs[:at], a.D.CmdArgs[at:]
	for state := none; state < int(endOfStates); state++ {
		one := newScenario(s.T)
		one.pairs["a"], one.nextID = pair{1, 5}, afterReplay
		name := "no such id"
		if state >= 0 {
			name = State(state).String()
			fields := append([]datadriven.CmdArg{{Key: name}, {Key: "1/5"}}, setup...)
			if State(state) == Ongoing || State(state).isPrepare() {
				fields = append(fields, datadriven.CmdArg{Key: "t:0"})
			}
			one.log = append(one.log, one.parseRecord(one.args(&datadriven.TestData{Cmd: "x", CmdArgs: fields})))
			one.load()
		}
		one.Out.Reset()
		one.command(&datadriven.TestData{Cmd: request[0].Key, CmdArgs: request[1:]})
		one.check(a.D.Pos)
		s.Printf("%s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(one.Out.String()), "\n", "; "))
	}
}

// topics t=1,2 u=1: the topics that there are, with the leaders of their partitions.
func (s *scenario) setTopics(a args) {
	var list, names []string
	for _, c := range a.D.CmdArgs {
		names = append(names, c.Key)
		list = append(list, c.Key+"="+strings.Join(c.Vals, ","))
	}
	s.image = imageOf(list...)
	s.step(machine.TopicsChanged{Topics: names})
}

func (s *scenario) setMaxBatch(a args) { s.maxBatch = harness.ParseInt(s.T, a.Who()) }

// timers [all]: what will happen if nothing else does, and when.
func (s *scenario) showTimers(a args) {
	for _, key := range slices.SortedFunc(maps.Keys(s.Timers), func(a, b machine.TimerKey) int { return strings.Compare(a.Kind+a.ID, b.Kind+b.ID) }) {
		if key.Kind != TimerSweep && key.Kind != TimerExpire || a.Flag("all") {
			s.Printf("%s %s in %s\n", key.Kind, key.ID, s.Timers[key].At.Sub(s.Now).Round(time.Millisecond))
		}
	}
}

// stale-timers: all timers that were replaced or cancelled fire all the same.
func (s *scenario) staleTimers(args) { s.FireStale(&s.shard.seq) }
