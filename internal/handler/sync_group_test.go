package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// From version 5 on a member says which protocol it goes by (KIP-559). Kafka
// looks at that before it looks for the group.
func TestSyncGroupWithoutProtocolIsRefusedFromVersion5(t *testing.T) {
	w := newWorld(t)
	name, kind := "range", "consumer"
	for _, c := range []struct {
		what           string
		version        int16
		protocol, kind *string
		want           *kerr.Error
	}{
		{"both", 5, &name, &kind, kerr.UnknownMemberID},
		{"no name", 5, nil, &kind, kerr.InconsistentGroupProtocol},
		{"no type", 5, &name, nil, kerr.InconsistentGroupProtocol},
		{"an older version", 4, nil, nil, kerr.UnknownMemberID},
	} {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Version, req.Group, req.MemberID, req.Protocol, req.ProtocolType = c.version, "g", "m", c.protocol, c.kind
		assert.Equal(t, w.request(req).(*kmsg.SyncGroupResponse).ErrorCode, c.want.Code, "%s: code", c.what)
	}
}

// Kafka looks at it before it asks for rights, too, and notes no denial then.
func TestSyncGroupWithoutProtocolIsRefusedToWhoMayNotReadTheGroup(t *testing.T) {
	w, _, _, counted := denialLog(t)
	name, kind := "range", "consumer"
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 5, "g", "m", &kind
	for want, protocol := range map[*kerr.Error]*string{kerr.InconsistentGroupProtocol: nil, kerr.GroupAuthorizationFailed: &name} {
		req.Protocol = protocol
		assert.Equal(t, w.as(alice, req).(*kmsg.SyncGroupResponse).ErrorCode, want.Code, "code")
	}
	if len(*counted) != 1 {
		t.Errorf("%v are counted as denied", *counted)
	}
}
