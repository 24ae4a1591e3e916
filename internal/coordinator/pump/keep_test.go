package pump

import (
	"runtime"
	"testing"
	"weak"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// thrifty is a core that uses a list of its effects again.
type thrifty struct {
	replies []machine.Reply
	kept    []weak.Pointer[kmsg.HeartbeatResponse] // what its steps were about
	records bool                                   // its steps have some
}

// something is what steps are about. It is also a record.
type something struct{ *kmsg.HeartbeatResponse }

func (something) Encode() (key, value []byte) { return nil, nil }
func (something) Size() int                   { return 0 }

func (c *thrifty) new() something {
	r := something{kmsg.NewPtrHeartbeatResponse()}
	c.kept = append(c.kept, weak.Make(r.HeartbeatResponse))
	return r
}

func (c *thrifty) Replay(machine.Stored) {}

func (c *thrifty) ReleaseEffects() { clear(c.replies) }

func (c *thrifty) Step(in machine.Input) (fx machine.Effects) {
	if _, ok := in.Event.(machine.Request); !ok {
		return fx
	}
	c.replies = append(c.replies[:0], machine.Reply{ID: 1, Msg: c.new().HeartbeatResponse})
	task := c.new()
	fx = machine.Effects{
		Replies: c.replies, Sends: []machine.Send{{ID: 1, Msg: kmsg.NewPtrHeartbeatRequest()}},
		Tasks: []machine.Task{{ID: 1, Run: func() any { return task }}},
		Notes: []machine.Note{&journal.Entry{Group: "g"}},
	}
	if c.records {
		fx.Batches = []machine.Batch{{Records: []machine.Record{c.new()}}}
	}
	return fx
}

// A shard may rest for hours after it was asked for everything. Neither the pump
// nor the core keeps what the last step was about until there is another one.
func TestNothingIsKeptOfAStepThatIsDone(t *testing.T) {
	for what, records := range map[string]bool{"without records": false, "with records": true} {
		t.Run(what, func(t *testing.T) {
			core, p := &thrifty{records: records}, New()
			p.Begin(p.Life(), core, machine.Loaded{Epoch: 1}, machine.Input{})
			p.Request(machine.Input{}, machine.Request{ID: 1})
			p.Drained()
			if _, ok := p.Append(); ok != records {
				t.Fatalf("an append begins: %v", ok)
			}
			p.Appended(p.Life(), machine.Input{}, 0, false)
			p.Drained()
			runtime.GC()
			for i, pointer := range core.kept {
				if pointer.Value() != nil {
					t.Errorf("thing %d is kept", i)
				}
			}
			// Room for a few is kept, with nothing in it.
			if p.out.Sends[:1][0].Msg != nil || p.out.Notes[:1][0] != nil {
				t.Error("a send, or a note, is kept")
			}
			runtime.KeepAlive(p)
		})
	}
}

// While the log is busy someone always waits. Those who do not any more are not kept
// with them.
func TestAnAnswerThatIsOutIsNotKeptWhileOthersWait(t *testing.T) {
	core, p := &thrifty{records: true}, New()
	p.Begin(p.Life(), core, machine.Loaded{Epoch: 1}, machine.Input{})
	for id := range machine.RequestID(3) {
		p.Request(machine.Input{}, machine.Request{ID: id + 1})
		p.Drained()
		p.Append() // The first one begins one, and the others wait for the next.
	}
	first := core.kept[0]
	p.Appended(p.Life(), machine.Input{}, 0, false)
	p.Drained()
	runtime.GC()
	if first.Value() != nil {
		t.Error("the first answer is kept")
	}
	if p.replies.first == 0 || len(p.replies.items) != 3 {
		t.Errorf("%d answers are held", len(p.replies.items))
	}
}
