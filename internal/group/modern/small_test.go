package modern

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// A kind of group that is as small as one can be, and as a streams group has it: members are
// given tasks, each in a role. The active task goes round by member, and the next member
// has the same as a standby.

type task struct {
	Standby bool
	N       int32
}

func (t task) Compare(o task) int {
	if t.Standby != o.Standby {
		if o.Standby {
			return -1
		}
		return 1
	}
	return cmp.Compare(t.N, o.N)
}

func (t task) String() string {
	if t.Standby {
		return fmt.Sprintf("s%d", t.N)
	}
	return fmt.Sprint(t.N)
}

type worker struct {
	Member[task]
	says *says
}

type says struct {
	Topic    string
	Instance *string
}

func (w *worker) Common() *Member[task] { return &w.Member }

func (w *worker) Identity() (Identity, bool) {
	if w.says == nil {
		return Identity{}, false
	}
	return Identity{Instance: w.says.Instance, ClientID: "client", Host: "/host"}, true
}

func (w *worker) RevokeTimeout() (time.Duration, bool) { return time.Minute, true }

// rec is a record of the small kind.
type rec struct {
	what, member string
	value        any // nil for a tombstone
}

func (r *rec) GroupID() string   { return "g" }
func (r *rec) Kind() schema.Kind { return "small" }
func (r *rec) IsTombstone() bool { return r.value == nil }
func (r *rec) Size() int         { return 10 }
func (r *rec) Encode() (key, value []byte) {
	value, _ = json.Marshal(r.value)
	return []byte(r.what + " " + r.member), value
}

func (r *rec) String() string {
	if r.value == nil {
		return "-" + strings.TrimSpace(r.what+" "+r.member)
	}
	return strings.TrimSpace(r.what + " " + r.member)
}

type small struct {
	Group[task, *worker]
	set      kind.KindConfig
	tasks    int32
	fits     int // tasks that a member may have
	owners   map[task]*worker
	lends    bool // a static member's place is there to be taken at any time
	forgot   int
	refreshs int
}

func newSmall() *small {
	g := &small{set: kind.KindConfig{Settings: kind.Settings{Session: 45 * time.Second, Heartbeat: 5 * time.Second}, MaxSize: 3}, tasks: 4, fits: 99, owners: map[task]*worker{}}
	g.Init(g, kind.Base{ID: "g"})
	return g
}

func (g *small) Kind() schema.Kind                                    { return "small" }
func (g *small) ProtocolName() string                                 { return "small" }
func (g *small) Weight() int64                                        { return 0 }
func (g *small) Look(*kind.Look)                                      {}
func (g *small) CheckFetch(*kmsg.OffsetFetchRequestGroup) *kerr.Error { return nil }
func (g *small) InUse() (func(string) bool, *kerr.Error)              { return nil, nil }
func (g *small) Expires() (func(string) bool, int64, bool)            { return nil, 0, false }
func (g *small) CheckCommit(*kind.Step, *machine.Request, *kmsg.OffsetCommitRequest) *kerr.Error {
	return nil
}

func (g *small) CheckTxnCommit(*kind.Step, *machine.Request, *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	return nil
}

func (g *small) NewMember(id string) *worker                       { return &worker{Member: Member[task]{ID: id}} }
func (g *small) Config(*kind.Step) *kind.KindConfig                { return &g.set }
func (g *small) Session(*kind.Step, *worker) time.Duration         { return g.set.Session }
func (g *small) Assignor(*kind.Step) string                        { return "round" }
func (g *small) FitsHeld(_ *kind.Step, _ string, list []task) bool { return len(list) <= g.fits }
func (g *small) IsReplaceable(w *worker) bool                      { return g.lends || g.Group.IsReplaceable(w) }
func (g *small) Forget(*kind.Step)                                 { g.forgot++ }
func (g *small) Refresh(*kind.Step)                                { g.refreshs++ }

func (g *small) TopicNames() (out []string) {
	for _, w := range g.Members {
		if w.says != nil {
			out = append(out, w.says.Topic)
		}
	}
	return out
}

type round struct {
	members, instances []string
	tasks              int32
}

func (g *small) Job(*kind.Step) Job[task] {
	j := &round{tasks: g.tasks}
	for _, w := range g.Members {
		instance := ""
		if w.says != nil && w.says.Instance != nil {
			instance = *w.says.Instance
		}
		j.members, j.instances = append(j.members, w.ID), append(j.instances, instance)
	}
	return j
}

func (j *round) Assignor() string { return "round" }
func (j *round) Size() int        { return int(j.tasks) }

func (j *round) Assign() (out []Share[task]) {
	for i, id := range j.members {
		s := Share[task]{Member: id, Instance: j.instances[i]}
		for n := range j.tasks {
			if m := int32(len(j.members)); n%m == int32(i) {
				s.Parts = append(s.Parts, task{false, n})
			} else if (n+1)%m == int32(i) {
				s.Parts = append(s.Parts, task{true, n})
			}
		}
		s.Parts = Sorted(s.Parts)
		out = append(out, s)
	}
	return out
}

// Toward has an active task be given once no one has it as such.
func (g *small) Toward(_ *kind.Step, w *worker) Target[task] {
	return Target[task]{
		Wanted: func() []task { return w.Target }, Wants: func(task) bool { return true },
		IsFree: func(t task) bool { return t.Standby || g.owners[t] == w || g.owners[t] == nil && g.AllHeard() },
	}
}

func (g *small) Hold(w *worker, holds bool) {
	for _, t := range append(PartsHeld(w.Current.Assigned), PartsHeld(w.Current.Pending)...) {
		if t.Standby {
			continue
		}
		if holds {
			g.owners[t] = w
		} else if g.owners[t] == w {
			delete(g.owners, t)
		}
	}
}

func of(what, member string, is bool, v any) schema.Record {
	if !is {
		return &rec{what: what, member: member}
	}
	return &rec{what, member, v}
}

func (g *small) MemberRecord(id string, w *worker) schema.Record {
	if w == nil {
		return of("member", id, false, nil)
	}
	return of("member", id, true, w.says)
}
func (g *small) EpochRecord(v *Epoch) schema.Record { return of("epoch", "", v != nil, v) }
func (g *small) TargetEpochRecord(v *TargetEpoch) schema.Record {
	return of("target-epoch", "", v != nil, v)
}
func (g *small) TargetRecord(m string, v *TargetOf[task]) schema.Record {
	return of("target", m, v != nil, v)
}

func (g *small) CurrentRecord(m string, v *Current[task]) schema.Record {
	if v == nil {
		return of("current", m, false, nil)
	}
	now := *v
	return of("current", m, true, &now)
}

func (g *small) Replay(r schema.Record) {
	s := r.(*rec)
	switch v := s.value.(type) {
	case *says:
		g.ApplyMember(s.member, true, func(w *worker) { w.says = v })
	case *Epoch:
		g.SetEpoch(true, v.Epoch, v.Hash)
	case *TargetEpoch:
		g.SetTarget(true, v.Epoch, v.At)
	case *TargetOf[task]:
		g.ApplyTarget(s.member, true, v.Parts)
	case *Current[task]:
		g.ApplyCurrent(s.member, v)
	default:
		switch s.what {
		case "member":
			g.ApplyMember(s.member, false, func(w *worker) { w.says = nil })
		case "epoch":
			g.SetEpoch(false, 0, 0)
		case "target-epoch":
			g.SetTarget(false, 0, 0)
		case "target":
			g.ApplyTarget(s.member, false, nil)
		case "current":
			g.ApplyCurrent(s.member, nil)
		}
	}
}

// answer is what a heartbeat is answered with.
type answer struct {
	kmsg.HeartbeatResponse
	text string
}

func (g *small) Respond(x *kind.Step, w *worker, b Pending[task], parts bool) {
	text := fmt.Sprintf("%s in %d", w.ID, w.Now().Epoch)
	if parts {
		text += fmt.Sprint(" has ", PartsHeld(w.Now().Assigned))
	}
	x.Reply(b.ID, &answer{text: text})
}

func (g *small) Fail(x *kind.Step, b Pending[task], err *Refusal) {
	x.Reply(b.ID, &answer{text: err.Message})
}

// world is a shard with one group.
type world struct {
	kind.Shard
	t     *testing.T
	g     *small
	now   time.Time
	image *metadata.Image
	log   []string // records of the last step
	said  []string // answers of the last step
	fx    machine.Effects
	tasks []machine.Task
	n     int
}

func newWorld(t *testing.T) *world {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutTopic(metadata.Topic{Name: "t", ID: topic, Partitions: make([]metadata.Partition, 4)})
	w := &world{Shard: kind.NewShard(kind.DefaultConfig()), t: t, g: newSmall(), now: time.Unix(1_700_000_000, 0), image: edit.Image()}
	w.Groups["g"] = w.g
	w.ApplyRecord = func(r machine.Record) {
		w.g.Replay(r.(schema.Record))
		w.g.Gone = w.g.IsGone()
	}
	return w
}

// step does something in a step of its own.
func (w *world) step(do func(x *kind.Step)) string {
	var x kind.Step
	w.n++
	x.Begin(&w.Shard, &machine.Input{Now: w.now, Image: w.image})
	x.Req = machine.Request{ID: machine.RequestID(w.n), ClientID: "client", Host: "host"}
	do(&x)
	w.fx = x.Finish()
	w.log, w.said = nil, nil
	for _, b := range w.fx.Batches {
		for _, r := range b.Records {
			w.log = append(w.log, r.(*rec).String())
		}
	}
	for _, r := range w.fx.Replies {
		w.said = append(w.said, r.Msg.(*answer).text)
	}
	w.tasks = append(w.tasks, w.fx.Tasks...)
	if !w.g.Gone {
		if err := w.g.Check(); err != nil {
			w.t.Errorf("step %d: %v", w.n, err)
		}
	}
	return strings.Join(w.said, "; ")
}

// beat is a heartbeat as a kind handles it; owned is what its client has, nil for that it does
// not say.
func (w *world) beat(member, instance string, epoch int32, owned ...task) string {
	return w.step(func(x *kind.Step) {
		c := Claim{Member: member, Epoch: epoch}
		if instance != "" {
			c.Instance = &instance
		}
		b := Pending[task]{Heartbeat: Heartbeat[task]{Owned: Sorted(owned), Tells: owned != nil}, ID: x.Req.ID, Member: member, Full: epoch == EpochJoin}
		p, err := w.g.PlaceOf(x, c, &b.Heartbeat)
		if err != nil {
			w.g.NoteRefused(x, &x.Req, c, "Beat", err)
			w.g.Fail(x, b, err)
			return
		}
		ch := Change{Topics: p.Known == nil, Bumps: p.Known == nil && p.Replaces == nil, Replaced: p.Replaces != nil}
		if p.Known != nil {
			b.Unsubscribed = w.g.AnswerOvertaken(x, p.Known)
		}
		x.From = len(x.Records)
		said := of("member", member, true, &says{Topic: "t", Instance: c.Instance})
		switch {
		case p.Replaces != nil:
			w.g.ReplaceStatic(x, p.Replaces, member, said)
		case p.Known == nil:
			x.Write(said)
			AddMemberTrigger(x, journal.TriggerJoined, w.g.Member(member), nil)
		}
		w.g.Proceed(x, w.g.Member(member), ch, b)
	})
}

func (w *world) leave(member, instance string, epoch int32) string {
	return w.step(func(x *kind.Step) {
		c := Claim{Member: member, Epoch: epoch}
		if instance != "" {
			c.Instance = &instance
		}
		if err := w.g.Leave(x, &x.Req, c); err != nil {
			w.g.Fail(x, Pending[task]{}, err)
		}
	})
}

// fire lets a timer of a member go off at its time.
func (w *world) fire(name, member string) {
	m := w.g.Member(member).Common()
	seq := m.TimerSeq
	if w.now = m.TimerAt; name == kind.TimerRevoke {
		seq, w.now = m.RevokeSeq, m.RevokeBy
	}
	w.step(func(x *kind.Step) { w.g.Fired(x, machine.TimerFired{Key: m.Timer(name, "g"), Seq: seq}) })
}

// finish does a task that is under way, as the runtime does it.
func (w *world) finish() string {
	t := w.tasks[0]
	w.tasks = w.tasks[1:]
	done := w.Tasks[t.ID]
	if done == nil {
		return "no one waits for it"
	}
	delete(w.Tasks, t.ID)
	result := t.Run()
	return w.step(func(x *kind.Step) { done.Done(x, result) })
}

// notes are the kinds of entries that the last step has written to the journal.
func (w *world) notes() (out []journal.EntryKind) {
	for _, n := range w.fx.Notes {
		out = append(out, n.(*journal.Entry).Kind)
	}
	return out
}

func (w *world) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

func (w *world) wantLog(what string, want ...string) {
	w.t.Helper()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("%s: the records are\n%v\nwant\n%v", what, w.log, want)
	}
}
