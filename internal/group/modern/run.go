package modern

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// Job is what an assignor is to do. It is made under the shard's lock and may be done beside:
// so it has all that it needs, none of which changes.
type Job[P Part[P]] interface {
	// Assignor is the name of the assignor.
	Assignor() string
	// Size is how many members and parts there are.
	Size() int
	// Assign says who is to have what.
	Assign() []Share[P]
}

// Share is what a member is to have: Parts is sorted.
type Share[P Part[P]] struct {
	Member, Instance string
	Parts            []P
}

// Run is a run of the assignor.
type Run[P Part[P], M AnyMember[P]] struct {
	id     uint64
	group  *Group[P, M]
	epoch  int32 // of the group when it began
	job    Job[P]
	Parked *Pending[P] // the heartbeat that has begun it, until it is answered
}

// atOnce is up to how many members and parts the assignor is run in the step itself. More
// might hold up everybody else in the shard.
const atOnce = 1000

// Retarget makes a new target, if it is time to. It says whether that is under way
// elsewhere.
func (g *Group[P, M]) Retarget(x *kind.Step) (later bool) {
	if !g.IsBehind() || g.Run != nil || g.tooLarge == g.Epoch || g.own.Defers(x) {
		return false
	}
	cfg := g.own.Config(x)
	if !g.MayTarget(x.Now, cfg.Of(g.ID).Interval) {
		return false
	}
	r := &Run[P, M]{group: g, epoch: g.Epoch, job: g.own.Job(x)}
	if r.job.Size() <= cmp.Or(cfg.AtOnce, atOnce) {
		g.install(x, r, r.job.Assign())
		return false
	}
	r.id = x.RunTask(r, func() any { return r.job.Assign() })
	g.Run = r
	return true
}

// Done takes the result of the assignor.
func (r *Run[P, M]) Done(x *kind.Step, result any) {
	g := r.group
	if g.Gone || g.Run != r {
		if r.Parked != nil {
			g.own.Fail(x, *r.Parked, Refused(kerr.UnknownMemberID, "The group is gone."))
		}
		return
	}
	g.Run = nil
	g.install(x, r, result.([]Share[P]))
	if b := r.Parked; b != nil {
		x.From = len(x.Records)
		g.Bump(x, Change{}) // Topics may have changed meanwhile.
		g.answer(x, g.Member(b.Member), *b)
	}
}

// install makes what the assignor says the target. Only what differs is written.
// Members may have come and gone since it began. If what a member is to have is too
// much for one record, everybody keeps what they have: in the next epoch it may be
// less.
func (g *Group[P, M]) install(x *kind.Step, r *Run[P, M], result []Share[P]) {
	var records []machine.Record
	for i := range result {
		m, ok := g.recipient(&result[i])
		if !ok {
			continue
		}
		mem, target := m.Common(), result[i].Parts
		if !g.own.FitsHeld(x, mem.ID, target) {
			g.tooLarge = r.epoch
			g.noteTooLarge(x, r.job, m)
			return
		}
		if !mem.HasTarget || !slices.Equal(mem.Target, target) {
			records = append(records, g.own.TargetRecord(mem.ID, &TargetOf[P]{target}))
		}
	}
	for _, rec := range records {
		x.Write(rec)
	}
	x.Write(g.own.TargetEpochRecord(&TargetEpoch{Epoch: r.epoch, At: x.Now.UnixMilli()}))
	g.own.NoteTarget(x, r.job)
	g.targeted(x, r.job)
}

// recipient is whom the assignor's result for a member is for: the member, or whoever has
// taken its place since it began, which is no reason for another epoch.
func (g *Group[P, M]) recipient(s *Share[P]) (m M, ok bool) {
	var none M
	if m = g.Member(s.Member); m == none {
		m = g.Instances[s.Instance]
	}
	return m, m != none
}

// CancelRun forgets a run of the assignor, whose result no one needs.
func (g *Group[P, M]) CancelRun(x *kind.Step) {
	if r := g.Run; r != nil {
		delete(x.Tasks, r.id)
		g.Run = nil
		if r.Parked != nil {
			g.own.Fail(x, *r.Parked, Refused(kerr.UnknownMemberID, "The group is empty."))
		}
	}
}
