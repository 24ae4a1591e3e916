package streams

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// heartbeat handles StreamsGroupHeartbeat: with it a member joins, says what it is and what it
// has let go of, is told what it may have, and leaves.
func heartbeat(x *kind.Step, r *machine.Request, m *kmsg.StreamsGroupHeartbeatRequest) {
	err := checkHeartbeat(m)
	if err == nil {
		switch m.MemberEpoch {
		case modern.EpochLeave, modern.EpochLeaveStatic:
			x.Weigh(m.Group)
			err = leave(x, r, m)
		default:
			err = memberHeartbeat(x, r, m)
		}
	}
	if err != nil {
		replyError(x, r.ID, m.Version, err)
	}
}

func replyError(x *kind.Step, id machine.RequestID, version int16, err *modern.Refusal) {
	resp := kmsg.NewPtrStreamsGroupHeartbeatResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	if err.Reason != "" {
		resp.ErrorMessage = &err.Reason
	}
	x.Reply(id, resp)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func invalid(reason string) *modern.Refusal { return modern.Refused(kerr.InvalidRequest, reason) }

// checkHeartbeat checks what can be told from the request alone.
func checkHeartbeat(m *kmsg.StreamsGroupHeartbeatRequest) *modern.Refusal {
	switch {
	case blank(m.Group):
		return invalid("GroupId can't be empty.")
	case blank(m.MemberID):
		return invalid("MemberId can't be empty.")
	case m.InstanceID != nil && blank(*m.InstanceID):
		return invalid("InstanceId can't be empty.")
	case m.RackID != nil && blank(*m.RackID):
		return invalid("RackId can't be empty.")
	case m.MemberEpoch < modern.EpochLeaveStatic:
		return invalid("MemberEpoch is invalid.")
	case m.MemberEpoch == modern.EpochLeaveStatic && m.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	case m.MemberEpoch < modern.EpochJoin:
		return nil
	case m.MemberEpoch == modern.EpochJoin:
		return checkJoin(m)
	}
	tells := 0
	for _, list := range byRole(m.ActiveTasks, m.StandbyTasks, m.WarmupTasks) {
		if list != nil {
			tells++
		}
	}
	switch {
	case tells != 0 && tells != 3:
		return invalid("ActiveTasks, StandbyTasks and WarmupTasks must be given together.")
	case m.ProcessID != nil && blank(*m.ProcessID):
		return invalid("ProcessId can't be empty.")
	case m.Topology != nil:
		return invalid("Topology can only be provided when (re-)joining.")
	}
	return nil
}

// checkJoin checks what a member says that joins.
func checkJoin(m *kmsg.StreamsGroupHeartbeatRequest) *modern.Refusal {
	switch {
	case m.RebalanceTimeoutMillis == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case m.ActiveTasks == nil || len(m.ActiveTasks) > 0:
		return invalid("ActiveTasks must be empty when (re-)joining.")
	case m.StandbyTasks == nil || len(m.StandbyTasks) > 0:
		return invalid("StandbyTasks must be empty when (re-)joining.")
	case m.WarmupTasks == nil || len(m.WarmupTasks) > 0:
		return invalid("WarmupTasks must be empty when (re-)joining.")
	case m.Topology == nil:
		return invalid("Topology must be non-null when (re-)joining.")
	case m.ProcessID == nil || blank(*m.ProcessID):
		return invalid("ProcessId must be provided when (re-)joining.")
	}
	return nil
}

// memberHeartbeat handles a heartbeat of someone who is, or becomes, a member. Whatever may be
// refused is, before anything is written.
func memberHeartbeat(x *kind.Step, r *machine.Request, m *kmsg.StreamsGroupHeartbeatRequest) *modern.Refusal {
	h := modern.Heartbeat[Task]{Tells: m.ActiveTasks != nil, Owned: claimed(m)}
	p, err := placeOf(x, m, &h)
	if err != nil {
		if p.in != nil {
			p.in.NoteRefused(x, r, claimOf(m), kmsg.NameForKey(m.Key()), err)
		}
		return err
	}
	in := joining{whose: p}
	if err := in.read(x, r, m, &h); err != nil {
		return err
	}
	x.Weigh(m.Group)
	overtaken := p.Known != nil && p.in.AnswerOvertaken(x, p.Known)
	if p.in == nil {
		classic.ClearForUpgrade(x, m.Group)
	}
	g, mem, ch := in.store(x, m)
	mem.endpoint = m.EndpointInformationEpoch
	if m.ShutdownApplication && g.shutdown == "" {
		g.shutdown = mem.ID
	}
	b := pending{ID: r.ID, Version: m.Version, Member: mem.ID, Heartbeat: h, Full: m.MemberEpoch == modern.EpochJoin, Unsubscribed: overtaken}
	g.prepare(x, &ch)
	g.Proceed(x, mem, ch, b)
	return nil
}

// prepare finds out what the next epoch will have, and whether it must come for that.
func (g *Group) prepare(x *kind.Step, ch *modern.Change) {
	if g.find(x); g.next != (found{g.Validated, g.Standbys}) {
		ch.Bumps = true
		if len(x.Why) == 0 {
			modern.AddTriggers(x, journal.Trigger{Kind: journal.TriggerTopics})
		}
	}
}

// joining is a heartbeat that may change what is stored of its member.
type joining struct {
	whose
	meta     *schema.StreamsMember
	topology *schema.StreamsTopology // nil unless the group has none yet
}

// read reads what a heartbeat says, and refuses what cannot be.
func (in *joining) read(x *kind.Step, r *machine.Request, m *kmsg.StreamsGroupHeartbeatRequest, h *modern.Heartbeat[Task]) *modern.Refusal {
	in.meta = in.metadata(r, m, x.Hosts)
	if was := in.before(); m.MemberEpoch != modern.EpochJoin && was.Process != in.meta.Process {
		return invalid("ProcessId can only be changed when rejoining.")
	}
	if err := in.readTopology(x, m); err != nil {
		return err
	}
	if in.in != nil && !in.in.knowsAll(x, h.Owned) {
		return invalid("The client has tasks that the topology of the group does not have.")
	}
	large := in.topology != nil && !x.Fits(&schema.StreamsTopologyRecord{Group: m.Group, Value: in.topology})
	if large || !x.Fits(&schema.StreamsMemberRecord{Group: m.Group, Member: m.MemberID, Value: in.meta}) || !in.fits(x, m.MemberID) {
		return invalid("What the member says of itself is too large to be stored.")
	}
	before := int64(0)
	if in.Known != nil {
		before = memberBytes(in.Known)
	}
	bytes := memberBytes(&Member{Member: modern.Member[Task]{ID: m.MemberID}, Metadata: in.meta}) + topologyBytes(in.topology)
	if err := x.Room(m.Group, int(bytes), int(before)); err != nil {
		return modern.Refused(err, "There is no room for what the member says of itself.")
	}
	return nil
}

// knowsAll says whether there are all these tasks, as far as that is known: of a topology that
// is not resolved there may have been others.
func (g *Group) knowsAll(x *kind.Step, tasks []Task) bool {
	if len(tasks) == 0 {
		return true
	}
	r := g.look(x.Image)
	if r == nil || !r.IsReady() {
		return true
	}
	for _, t := range tasks {
		if !r.Has(t.Subtopology, t.Partition) {
			return false
		}
	}
	return true
}

// store stores what a heartbeat changes of its member.
func (in *joining) store(x *kind.Step, m *kmsg.StreamsGroupHeartbeatRequest) (*Group, *Member, modern.Change) {
	x.From = len(x.Records)
	was := in.before()
	first := in.in == nil || in.in.Present == 0
	record := &schema.StreamsMemberRecord{Group: m.Group, Member: m.MemberID, Value: in.meta}
	switch {
	case in.Replaces != nil:
		in.in.ReplaceStatic(x, in.Replaces, m.MemberID, record)
	case was == nil || !sameMember(was, in.meta):
		x.Write(record)
	}
	if in.topology != nil {
		x.Write(&schema.StreamsTopologyRecord{Group: m.Group, Value: in.topology})
	}
	g := x.Groups[m.Group].(*Group)
	mem := g.Member(m.MemberID)
	if first {
		g.startDelay(x)
	}
	if was != nil && was.Process != in.meta.Process {
		g.moveProcess(x, mem)
	}
	ch := modern.Change{Replaced: in.Replaces != nil, Bumps: was == nil || reassigns(was, in.meta) || in.Known != nil && in.Replaces != nil}
	switch {
	case was == nil:
		modern.AddMemberTrigger(x, journal.TriggerJoined, mem, nil)
	case ch.Bumps:
		modern.AddMemberTrigger(x, journal.TriggerChanged, mem, nil)
	}
	return g, mem, ch
}

// moveProcess takes from a member what it had in another process. It has joined again, with
// nothing, and in its new process another thread may have these tasks.
func (g *Group) moveProcess(x *kind.Step, m *Member) {
	if now := m.Now(); m.Current != nil && len(now.Assigned)+len(now.Pending) > 0 {
		x.Write(g.CurrentRecord(m.ID, &Current{Epoch: now.Epoch, Previous: now.Previous}))
		m.StopRevoking(x, g.ID)
	}
}

// leave handles a heartbeat by which a member leaves.
func leave(x *kind.Step, r *machine.Request, m *kmsg.StreamsGroupHeartbeatRequest) *modern.Refusal {
	g, ok := x.Groups[m.Group].(*Group)
	if !ok {
		return modern.Refused(kerr.GroupIDNotFound, "Streams group "+m.Group+" not found.")
	}
	if err := g.Leave(x, r, claimOf(m)); err != nil {
		return err
	}
	resp := kmsg.NewPtrStreamsGroupHeartbeatResponse()
	resp.Version, resp.MemberID, resp.MemberEpoch = m.Version, m.MemberID, m.MemberEpoch
	x.Reply(r.ID, resp)
	return nil
}
