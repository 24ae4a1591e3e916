package consumer

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// Members of the classic protocol in a consumer group do not wait for each other: each
// joins when it is told to, is answered at once, and asks for what it has with
// SyncGroup. No one leads, since the coordinator assigns. Their generation is their
// member epoch, and what a subscription says that a member owns is what a heartbeat of
// the consumer protocol would say.

// JoinClassic handles JoinGroup of a consumer group. One without members becomes a classic
// group.
func (g *Group) JoinClassic(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) bool {
	switch {
	case !g.IsEmpty():
		g.joinNonEmpty(x, r, m)
		return true
	case m.MemberID == "":
		g.DeleteRecords(x)
		return false
	case m.ProtocolType == "" || len(m.Protocols) == 0:
		classic.JoinError(x, r, m, m.MemberID, kerr.InconsistentGroupProtocol)
	default:
		classic.JoinError(x, r, m, m.MemberID, kerr.UnknownMemberID)
	}
	return true
}

// joinNonEmpty handles JoinGroup of a consumer group that has members.
func (g *Group) joinNonEmpty(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	m.Protocols = classic.Distinct(m.Protocols)
	w, err := g.checkJoin(x, m)
	if err != nil {
		id := m.MemberID
		if err == kerr.GroupMaxSizeReached {
			id = ""
		}
		classic.JoinError(x, r, m, id, err)
		return
	}
	if m.MemberID == "" && m.InstanceID == nil && m.Version >= classic.JoinKnownID {
		// Whoever comes with it is let in: there is no join phase that would wait.
		classic.JoinError(x, r, m, r.ClientID+"-"+classic.UUID(x.Random), kerr.MemberIDRequired)
		return
	}
	id, p, err := g.classicPlace(x, r, m)
	if err != nil {
		classic.JoinError(x, r, m, m.MemberID, err)
		return
	}
	meta := p.classicMetadata(r, m, w, x.Hosts)
	if !x.Fits(&schema.ConsumerMemberRecord{Group: g.ID, Member: id, Value: meta}) || !p.fits(x, id) {
		classic.JoinError(x, r, m, m.MemberID, kerr.UnknownServerError)
		return
	}
	g.admitClassic(x, r, m, id, p, meta, w)
}

// checkJoin says whether someone of the classic protocol may join, and what it
// wants.
func (g *Group) checkJoin(x *kind.Step, m *kmsg.JoinGroupRequest) (w subscription.Subscription, err *kerr.Error) {
	replaces := m.MemberID == "" && m.InstanceID != nil && g.Instances[*m.InstanceID] != nil
	switch {
	case x.Cfg.Consumer.Migration.Disabled():
		return w, kerr.InconsistentGroupProtocol
	case !replaces && g.Member(m.MemberID) == nil && g.Present >= x.Cfg.Consumer.MaxSize:
		return w, kerr.GroupMaxSizeReached
	case m.ProtocolType != subscription.ConsumerType || !g.supports(m.Protocols):
		return w, kerr.InconsistentGroupProtocol
	}
	w, bad := subscription.Read(m.Protocols[0].Metadata)
	if bad != nil {
		return w, kerr.InconsistentGroupProtocol
	}
	return w, nil
}

// supports says whether all members of the classic protocol have one of these.
func (g *Group) supports(protocols []kmsg.JoinGroupRequestProtocol) bool {
	for i := range protocols {
		if g.Supported.Of(protocols[i].Name) == g.Classic {
			return true
		}
	}
	return false
}

// classicPlace says whose place someone of the classic protocol takes. Without a member
// id a static one always has that of whoever has its instance id.
func (g *Group) classicPlace(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) (id string, p place, err *kerr.Error) {
	var holder *Member
	if m.InstanceID != nil {
		holder = g.Instances[*m.InstanceID]
	}
	switch {
	case m.MemberID == "" && m.InstanceID != nil:
		return *m.InstanceID + "-" + classic.UUID(x.Random), place{in: g, Place: modern.Place[*Member]{Replaces: holder}}, nil
	case m.MemberID == "":
		return r.ClientID + "-" + classic.UUID(x.Random), p, nil
	case m.InstanceID != nil && holder == nil:
		return "", p, kerr.UnknownMemberID
	case m.InstanceID != nil && holder.ID != m.MemberID:
		return "", p, kerr.FencedInstanceID
	}
	return m.MemberID, place{Place: modern.Place[*Member]{Known: g.Member(m.MemberID)}}, nil
}

// classicMetadata is what a member of the classic protocol says of itself. It names all
// topics, so a regular expression that its predecessor had is none of its own.
func (p place) classicMetadata(r *machine.Request, m *kmsg.JoinGroupRequest, w subscription.Subscription, known kind.Hosts) *schema.ConsumerMember {
	v := &schema.ConsumerMember{Instance: m.InstanceID, Rack: w.Rack, ClientID: r.ClientID, Host: known.Of(r.Host), Topics: sortedNames(w.Topics)}
	was := p.Known
	if p.Replaces != nil {
		was = p.Replaces
	}
	if was != nil {
		v.Assignor = was.Metadata.Assignor
		if v.Rack == nil {
			v.Rack = was.Metadata.Rack
		}
		if v.Instance == nil {
			v.Instance = was.Metadata.Instance
		}
	}
	v.RebalanceTimeoutMillis = m.RebalanceTimeoutMillis
	if m.Version == 0 {
		v.RebalanceTimeoutMillis = m.SessionTimeoutMillis
	}
	v.Classic = &schema.ClassicMember{SessionTimeoutMillis: m.SessionTimeoutMillis}
	for i := range m.Protocols {
		v.Classic.Protocols = append(v.Classic.Protocols, schema.ClassicProtocol{Name: m.Protocols[i].Name, Metadata: bytes.Clone(m.Protocols[i].Metadata)})
	}
	return v
}

// admitClassic lets a member of the classic protocol join, or join again.
func (g *Group) admitClassic(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest, id string, p place, meta *schema.ConsumerMember, w subscription.Subscription) {
	overtaken := p.Known != nil && g.AnswerOvertaken(x, p.Known)
	p.remember()
	epoch := g.Epoch
	x.From = len(x.Records)
	if p.Replaces != nil {
		g.ReplaceStatic(x, p.Replaces, id, &schema.ConsumerMemberRecord{Group: g.ID, Member: id, Value: meta})
	}
	g, mem, ch := subscribe(x, g.ID, id, p, meta)
	g.useProtocolTimers(x, mem)
	g.addChangeTrigger(x, mem, p, ch)
	g.Bump(x, ch)
	g.Refresh(x)
	g.Retarget(x) // If that is done elsewhere, the member is told to join again.
	was, told := mem.Now(), mem.Since
	g.NoteHeard(x, mem)
	g.Reconcile(x, mem, pending{Heartbeat: modern.Heartbeat[Partition]{Tells: true, Owned: modern.PartitionsNamed(x.Image, w.Owned)}, Unsubscribed: ch.Topics || overtaken})
	if to := g.DowngradedWithout(x, nil, id); to != nil {
		quiet := g.Epoch == epoch && g.StateName() == modern.StateStable && m.Version >= classic.JoinSkipAssignment
		members := g.Present
		next := g.downgrade(x, to, quiet)
		NoteDowngraded(x, next, kind.By(r), members)
		joinDowngraded(x, next, id, r, m, quiet)
		return
	}
	g.NoteProgress(x, mem, &was, told)
	g.stopJoinTimer(x, mem)
	g.Touch(x, mem)
	mem.SyncSeq = x.Arm(mem.Timer(kind.TimerSync, g.ID), x.Now.Add(mem.rebalanceTimeout()))
	replyJoin(x, r.ID, m.Version, id, mem.Now().Epoch, firstProtocol(mem.Metadata.Classic).Name)
}

// replyJoin tells a member of the classic protocol where it is.
func replyJoin(x *kind.Step, to machine.RequestID, version int16, id string, generation int32, protocol string) {
	resp := kmsg.NewPtrJoinGroupResponse()
	protocolType := subscription.ConsumerType
	resp.Version, resp.Generation, resp.MemberID = version, generation, id
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	x.Reply(to, resp)
}

// firstProtocol is the protocol by which a member goes: here everybody may have another.
func firstProtocol(c *schema.ClassicMember) schema.ClassicProtocol {
	if len(c.Protocols) == 0 {
		return schema.ClassicProtocol{}
	}
	return c.Protocols[0]
}

func (mem *Member) rebalanceTimeout() time.Duration {
	return time.Duration(mem.Metadata.RebalanceTimeoutMillis) * time.Millisecond
}

// namedProtocol is the protocol that a member names with SyncGroup, the first if it names none.
// Whose join was answered before the group was upgraded names the one that was selected
// then, which may be any of its own. Kafka takes the first alone, and its answer to such a
// member ends the client.
func namedProtocol(c *schema.ClassicMember, name *string) (p schema.ClassicProtocol, ok bool) {
	if name == nil {
		return firstProtocol(c), true
	}
	i := slices.IndexFunc(c.Protocols, func(p schema.ClassicProtocol) bool { return p.Name == *name })
	if i < 0 {
		return p, false
	}
	return c.Protocols[i], true
}
