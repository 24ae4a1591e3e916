package sim

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// The error codes that the rules speak of.
const (
	codeUnknownTopic         = 3
	codeMetadataTooLarge     = 12
	codeLoadInProgress       = 14
	codeNotCoordinator       = 16
	codeIllegalGeneration    = 22
	codeInconsistentProtocol = 23
	codeUnknownMember        = 25
	codeRebalanceInProgress  = 27
	codeNonEmptyGroup        = 68
	codeGroupNotFound        = 69
	codeMemberIDRequired     = 79
	codeMaxSize              = 81
	codeFencedInstance       = 82
	codeSubscribed           = 86
	codeNotLeader            = 6
	codeNotAvailable         = 15
	codeInvalidEpoch         = 47
	codeInvalidTxnState      = 48
	codeConcurrent           = 51
	codeCoordinatorFenced    = 52
	codeUnstable             = 88
	codeProducerFenced       = 90
	codeAbortable            = 120
	codeUnsupported          = 35
	codeFencedEpoch          = 110
	codeUnreleased           = 111
	codeStaleEpoch           = 113
)

// request is a request as it arrived at a broker.
type request struct {
	id   machine.RequestID
	from string
	msg  kmsg.Request
	call *call // nil if no one waits for the answer
	ask  ask
}

// ask is what most requests have in common.
type ask struct {
	key        int16
	version    int16
	group      string
	member     string
	instance   *string
	generation int32
}

func (q *request) String() string {
	s := fmt.Sprintf("%s v%d of %s", kmsg.NameForKey(q.ask.key), q.ask.version, q.from)
	if q.ask.group != "" {
		s += fmt.Sprintf(" (group %s, member %s, generation %d)", q.ask.group, short(q.ask.member), q.ask.generation)
	}
	if q.call == nil {
		s += ", a duplicate"
	}
	return s
}

// newRequest is the arrival of a request.
func (w *world) newRequest(from string, key, version int16, wire []byte, cl *call) *request {
	w.ids++
	q := &request{id: w.ids, from: from, call: cl, msg: w.parse(key, version, wire)}
	q.ask = askOf(q.msg)
	return q
}

// parse reads a request from the wire, as a broker does. Its byte slices are
// parts of the wire.
func (w *world) parse(key, version int16, wire []byte) kmsg.Request {
	msg := kmsg.RequestForKey(key)
	msg.SetVersion(version)
	if err := msg.ReadFrom(wire); err != nil {
		w.Violated("the simulator sent what it cannot read: %v", err)
	}
	return msg
}

func askOf(msg kmsg.Request) ask {
	a := ask{key: msg.Key(), version: msg.GetVersion(), generation: -1}
	switch m := msg.(type) {
	case *kmsg.JoinGroupRequest:
		a.group, a.member, a.instance = m.Group, m.MemberID, m.InstanceID
	case *kmsg.SyncGroupRequest:
		a.group, a.member, a.instance, a.generation = m.Group, m.MemberID, m.InstanceID, m.Generation
	case *kmsg.HeartbeatRequest:
		a.group, a.member, a.instance, a.generation = m.Group, m.MemberID, m.InstanceID, m.Generation
	case *kmsg.LeaveGroupRequest:
		a.group, a.member = m.Group, m.MemberID
	case *kmsg.OffsetCommitRequest:
		a.group, a.member, a.instance, a.generation = m.Group, m.MemberID, m.InstanceID, m.Generation
	case *kmsg.OffsetDeleteRequest:
		a.group = m.Group
	case *kmsg.ConsumerGroupHeartbeatRequest:
		a.group, a.member, a.instance, a.generation = m.Group, m.MemberID, m.InstanceID, m.MemberEpoch
	}
	return a
}

// identity is who sends a request across restarts of static members.
func (a ask) identity() string {
	if a.instance != nil {
		return "instance " + *a.instance
	}
	return a.member
}

// kind is the core as the runtime knows it.
var kind = group.Definition(group.DefaultConfig)

// errorReply is the answer of a host that has no shard to ask.
func errorReply(msg kmsg.Request, err *kerr.Error) []byte { return kind.Fail(msg, err).AppendTo(nil) }

// codeOf is the first error in an answer that is about all of the request.
func codeOf(msg kmsg.Response) int16 {
	for _, code := range codes(msg) {
		if code != 0 && code != codeMetadataTooLarge && code != codeUnknownTopic {
			return code
		}
	}
	return 0
}

func describeReply(msg kmsg.Response) string {
	s := fmt.Sprintf("%s error %d", kmsg.NameForKey(msg.Key()), codeOf(msg))
	switch r := msg.(type) {
	case *kmsg.JoinGroupResponse:
		s += fmt.Sprintf(" generation %d member %s leader %s of %d", r.Generation, short(r.MemberID), short(r.LeaderID), len(r.Members))
	case *kmsg.SyncGroupResponse:
		s += fmt.Sprintf(" %v", parseAssignment(r.MemberAssignment))
	case *kmsg.ConsumerGroupHeartbeatResponse:
		s += describeBeat(r)
	}
	return s
}

// short is a member id without most of its random part.
func short(id string) string {
	if len(id) > 36 {
		return id[:len(id)-36] + id[len(id)-4:]
	}
	return id
}

func isSent(e machine.Event) bool {
	_, ok := e.(machine.Sent)
	return ok
}

func isTaskDone(e machine.Event) bool {
	_, ok := e.(machine.TaskDone)
	return ok
}

// traceStep writes down what a step did.
func (c *coordinator) traceStep(why cause, e *entry) {
	w := c.w
	if !w.Tracing() {
		return
	}
	role := ""
	if c.zombie {
		role = " (deposed)"
	}
	switch {
	case why.request != nil:
		w.Tracef("broker %d%s: %s", c.broker.id, role, why.request)
	case isTaskDone(why.event):
		w.Tracef("broker %d%s: a task is done", c.broker.id, role)
	case isSent(why.event):
		w.Tracef("broker %d%s: an answer that nobody waits for any more", c.broker.id, role)
	default:
		w.Tracef("broker %d%s: %T%+v current %t", c.broker.id, role, why.event, why.event, why.current)
	}
	for _, r := range e.originals {
		switch r := r.(type) {
		case *schema.OffsetRecord:
			w.Tracef("    record %s %s-%d tombstone %t", r.Group, r.Topic, r.Partition, r.Value == nil)
		case markerRecord:
			w.Tracef("    %+v", r)
		case *schema.RebalanceRecord:
			w.Tracef("    record %s rebalance %+v", r.Group, r.Value)
		case *schema.DepartureRecord:
			w.Tracef("    record %s departure of %s %+v", r.Group, short(r.Member), r.Value)
		case *schema.SilenceRecord:
			w.Tracef("    record %s silence of %s %+v", r.Group, short(r.Member), r.Value)
		case *schema.GroupRecord:
			if r.Value == nil {
				w.Tracef("    record %s tombstone", r.Group)
				continue
			}
			w.Tracef("    record %s generation %d, %d members", r.Group, r.Value.Generation, len(r.Value.Members))
		default:
			w.Tracef("    record %s", describeConsumerRecord(r))
		}
	}
	for _, r := range e.replies {
		w.Tracef("    answer to %s %d: %s", r.request.from, r.request.id, describeReply(r.msg))
	}
	for _, v := range c.sortedViews() {
		if v.exists && slices.Contains(c.touched(why), v) {
			w.Tracef("    now %s", v)
		}
	}
}
