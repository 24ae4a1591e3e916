package interop

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// shardOf returns the partition of __consumer_offsets that a group belongs to:
// Java's hash of its name, without the sign.
func shardOf(group string) int32 {
	var h int32
	for _, c := range group {
		h = 31*h + c
	}
	return (h & 0x7fffffff) % 50
}

// sameShard returns other groups of the same shard.
func sameShard(group string, n int) (others []string) {
	for i := 0; len(others) < n; i++ {
		if other := fmt.Sprintf("other-%d", i); shardOf(other) == shardOf(group) {
			others = append(others, other)
		}
	}
	return others
}

// TestAGroupTooLargeToStoreHarmsNoOther joins groups whose members say more of
// themselves, or are assigned more, than a record may hold. The groups of the same
// shard must not notice.
func TestAGroupTooLargeToStoreHarmsNoOther(t *testing.T) {
	const tooLarge = 70 << 20 // A batch of __consumer_offsets may have 64 MB.
	b := serve(t, t.TempDir())
	first, second := dial(t, b.addr()), dial(t, b.addr())
	member := joinFirst(first, "victim", nil)
	second.send(joinRequest("victim", "", nil)) // It waits for the first to join again.

	groups := sameShard("victim", 3)
	for i, c := range []struct {
		name                 string
		metadata, assignment int
	}{
		{"a member's metadata", tooLarge, 1}, {"an assignment", 1, tooLarge}, {"both together", tooLarge / 2, tooLarge / 2},
	} {
		group := groups[i]
		attacker := dial(t, b.addr())
		req := joinRequest(group, "", make([]byte, c.metadata))
		joined := ask[*kmsg.JoinGroupResponse](attacker, req)
		t.Logf("%s: JoinGroup is answered %d", c.name, joined.ErrorCode)
		if joined.ErrorCode == 0 {
			sync := kmsg.NewPtrSyncGroupRequest()
			sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, group, joined.Generation, joined.MemberID
			a := kmsg.NewSyncGroupRequestGroupAssignment()
			a.MemberID, a.MemberAssignment = joined.MemberID, make([]byte, c.assignment)
			sync.GroupAssignment = append(sync.GroupAssignment, a)
			resp := ask[*kmsg.SyncGroupResponse](attacker, sync)
			t.Logf("%s: SyncGroup is answered %d", c.name, resp.ErrorCode)
			assert.True(t, resp.ErrorCode != 0, "%s: a group that cannot be stored was acknowledged", c.name)
		}
		attacker.Close()
	}

	again := ask[*kmsg.JoinGroupResponse](first, joinRequest("victim", member.MemberID, nil))
	wantCode(t, "the first member joins again", again.ErrorCode, nil)
	wantCode(t, "the second member, which waited", next[*kmsg.JoinGroupResponse](second).ErrorCode, nil)
}
