package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Members of the classic protocol in a consumer group do not wait for each other: each
// joins when it is told to, is answered at once, and asks for what it has with
// SyncGroup. Nobody leads, since the coordinator assigns. Their generation is their
// member epoch, and what a subscription says that a member owns is what a heartbeat of
// the consumer protocol would say.

// joinClassic handles JoinGroup of a consumer group. One without members becomes a classic
// group.
func (g *consumerGroup) joinClassic(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) bool {
	switch {
	case !g.isEmpty():
		g.joinMixed(x, r, m)
		return true
	case m.MemberID == "":
		g.forgetConsumers(x)
		return false
	case m.ProtocolType == "" || len(m.Protocols) == 0:
		joinError(x, r, m, m.MemberID, kerr.InconsistentGroupProtocol)
	default:
		joinError(x, r, m, m.MemberID, kerr.UnknownMemberID)
	}
	return true
}

// joinMixed handles JoinGroup of a consumer group that has members.
func (g *consumerGroup) joinMixed(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	m.Protocols = distinct(m.Protocols)
	w, err := g.checkJoinMixed(x, m)
	if err != nil {
		id := m.MemberID
		if err == kerr.GroupMaxSizeReached {
			id = ""
		}
		joinError(x, r, m, id, err)
		return
	}
	if m.MemberID == "" && m.InstanceID == nil && m.Version >= joinKnownID {
		// Whoever comes with it is let in: there is no join phase that would wait.
		joinError(x, r, m, r.ClientID+"-"+uuid(x.random), kerr.MemberIDRequired)
		return
	}
	id, p, err := g.mixedPlace(x, r, m)
	if err != nil {
		joinError(x, r, m, m.MemberID, err)
		return
	}
	says := p.saysClassic(r, m, w, x.hosts)
	if !x.fits(&schema.ConsumerMemberRecord{Group: g.id, Member: id, Value: says}) || !fitsHeir(x, p.replaces, g.id, id) {
		joinError(x, r, m, m.MemberID, kerr.UnknownServerError)
		return
	}
	g.admit(x, r, m, id, p, says, w)
}

// checkJoinMixed says whether somebody of the classic protocol may join, and what it
// wants.
func (g *consumerGroup) checkJoinMixed(x *step, m *kmsg.JoinGroupRequest) (w wants, err *kerr.Error) {
	replaces := m.MemberID == "" && m.InstanceID != nil && g.instances[*m.InstanceID] != nil
	switch {
	case x.cfg.Consumer.Migration.Disabled():
		return w, kerr.InconsistentGroupProtocol
	case !replaces && g.member(m.MemberID) == nil && g.present >= x.cfg.Consumer.MaxSize:
		return w, kerr.GroupMaxSizeReached
	case m.ProtocolType != consumerType || !g.supports(m.Protocols):
		return w, kerr.InconsistentGroupProtocol
	}
	w, bad := readWants(m.Protocols[0].Metadata)
	if bad != nil {
		return w, kerr.InconsistentGroupProtocol
	}
	return w, nil
}

// supports says whether all members of the classic protocol have one of these.
func (g *consumerGroup) supports(protocols []kmsg.JoinGroupRequestProtocol) bool {
	for i := range protocols {
		if g.supported.of(protocols[i].Name) == g.classic {
			return true
		}
	}
	return false
}

// mixedPlace says whose place somebody of the classic protocol takes. Without a member
// id a static one always has that of whoever has its instance id.
func (g *consumerGroup) mixedPlace(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) (id string, p place, err *kerr.Error) {
	var holder *consumerMember
	if m.InstanceID != nil {
		holder = g.instances[*m.InstanceID]
	}
	switch {
	case m.MemberID == "" && m.InstanceID != nil:
		return *m.InstanceID + "-" + uuid(x.random), place{replaces: holder}, nil
	case m.MemberID == "":
		return r.ClientID + "-" + uuid(x.random), p, nil
	case m.InstanceID != nil && holder == nil:
		return "", p, kerr.UnknownMemberID
	case m.InstanceID != nil && holder.id != m.MemberID:
		return "", p, kerr.FencedInstanceID
	}
	return m.MemberID, place{known: g.member(m.MemberID)}, nil
}

// saysClassic is what a member of the classic protocol says of itself. It names all
// topics, so a regular expression that its predecessor had is none of its own.
func (p place) saysClassic(r *machine.Request, m *kmsg.JoinGroupRequest, w wants, known hosts) *schema.ConsumerMember {
	v := &schema.ConsumerMember{Instance: m.InstanceID, Rack: w.rack, ClientID: r.ClientID, Host: known.of(r.Host), Topics: sortedNames(w.topics)}
	was := p.known
	if p.replaces != nil {
		was = p.replaces
	}
	if was != nil {
		v.Assignor = was.says.Assignor
		if v.Rack == nil {
			v.Rack = was.says.Rack
		}
		if v.Instance == nil {
			v.Instance = was.says.Instance
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

// admit lets a member of the classic protocol join, or join again.
func (g *consumerGroup) admit(x *step, r *machine.Request, m *kmsg.JoinGroupRequest, id string, p place, says *schema.ConsumerMember, w wants) {
	overtaken := p.known != nil && g.overtakeBeat(x, p.known)
	p.remember()
	epoch := g.epoch
	x.from = len(x.records)
	if p.replaces != nil {
		g.takeOver(x, p.replaces, id, says)
	}
	g, mem, ch := subscribe(x, g.id, id, p, says)
	g.suit(x, mem)
	g.blameBeat(x, mem, p, ch)
	g.bump(x, ch)
	g.refresh(x)
	g.retarget(x) // If that is done elsewhere, the member is told to join again.
	was, told := mem.now(), mem.told
	g.hear(x, mem)
	g.reconcile(x, mem, beat{tells: true, owned: partsNamed(x.image, w.owned), unsubscribed: ch.topics || overtaken})
	if to := g.classicOf(x, nil, id); to != nil {
		quiet := g.epoch == epoch && g.stateName() == consumerStable && m.Version >= joinSkipAssignment
		members := g.present
		next := g.downgrade(x, to, quiet)
		next.noteDowngraded(x, by(r), members)
		next.joinDowngraded(x, id, r, m, quiet)
		return
	}
	g.noteProgress(x, mem, &was, told)
	g.stopJoinTimer(x, mem)
	g.touchConsumer(x, mem)
	mem.syncSeq = x.arm(memberTimer(TimerSync, g, mem), x.now.Add(mem.rebalanceTimeout()))
	replyJoinMixed(x, r.ID, m.Version, id, mem.now().epoch, firstProtocol(mem.says.Classic).Name)
}

// replyJoinMixed tells a member of the classic protocol where it is.
func replyJoinMixed(x *step, to machine.RequestID, version int16, id string, generation int32, protocol string) {
	resp := kmsg.NewPtrJoinGroupResponse()
	protocolType := consumerType
	resp.Version, resp.Generation, resp.MemberID = version, generation, id
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	x.reply(to, resp)
}

// firstProtocol is the protocol by which a member goes: here everybody may have another.
func firstProtocol(c *schema.ClassicMember) schema.ClassicProtocol {
	if len(c.Protocols) == 0 {
		return schema.ClassicProtocol{}
	}
	return c.Protocols[0]
}

func (mem *consumerMember) rebalanceTimeout() time.Duration {
	return time.Duration(mem.says.RebalanceTimeoutMillis) * time.Millisecond
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
