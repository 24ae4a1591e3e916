package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/handler"
)

// byHTTP sends a request that a person has sent over HTTP.
func (w *world) byHTTP(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	return w.fromClient("http", handler.Origin{Listener: "L", Host: "127.0.0.1", Via: audit.ViaHTTP}, req)
}

// joins has a member join the group g, and returns its id.
func (w *world) joins() string {
	w.t.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = 1, "g", 10000, 10000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{}}}
	return w.request(join).(*kmsg.JoinGroupResponse).MemberID
}

func leaves(member string) kmsg.Request {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 5, "g"
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	return req
}

func TestTheAuditIsToldTheWayThatSomethingCame(t *testing.T) {
	w, got := audited(t)
	w.byHTTP(creates(false, topicToCreate("a", 1)))
	if e := got(); len(e) != 1 || e[0].Via != audit.ViaHTTP || e[0].ClientID != "http" {
		t.Errorf("it is told %+v", e)
	}
}

// Members leave all the time; only one that a person removes is told.
func TestTheAuditIsToldOfMembersThatPeopleRemove(t *testing.T) {
	w, got := audited(t)
	w.request(leaves(w.joins()))
	if e := got(); len(e) != 0 {
		t.Errorf("of one that left by itself it is told %s", summary(e))
	}
	member := w.joins()
	w.byHTTP(leaves("nobody"))
	if e := got(); len(e) != 0 {
		t.Errorf("of nobody it is told %s", summary(e))
	}
	w.byHTTP(leaves(member))
	assert.Equal(t, summary(got()), "member-removed group g (member "+member+")", "it is told")
}
