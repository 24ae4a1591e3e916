package shown

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/handler"
	"muster/internal/journal"
	"muster/internal/store"
)

// Happened is told what the journal is told: whenever something happens to a
// group, other members may hold its partitions.
func (n *Groups) Happened(entries []journal.Entry) {
	for i := range entries {
		n.consumers.Changed(entries[i].Group)
	}
}

// holders says which members of a group hold which partitions, by the names that
// Redis clients see. While a group rebalances that is not known.
func (n *Groups) holders(ctx context.Context, group string) (map[store.TopicPartition]string, bool) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp, ok := n.Describe(ctx, group, req).(*kmsg.DescribeGroupsResponse)
	if !ok || len(resp.Groups) != 1 || resp.Groups[0].ErrorCode != 0 {
		return nil, false
	}
	held := map[store.TopicPartition]string{}
	switch g := &resp.Groups[0]; g.State {
	case "Stable":
		image := n.Image()
		for i := range g.Members {
			m := &g.Members[i]
			tps, _ := handler.AssignedPartitions(image, m.MemberAssignment) // Of another kind than consumers has none.
			for _, tp := range tps {
				if _, seen := n.stream(tp); seen {
					held[tp] = consumerName(m.ClientID, m.MemberID)
				}
			}
		}
		return held, true
	case "Empty", "Dead":
		return held, true
	}
	return nil, false
}

// consumerName tells members apart, and says which client it is. A member id
// begins with the client id, unless the member is static.
func consumerName(clientID, memberID string) string {
	if strings.HasPrefix(memberID, clientID) {
		return memberID
	}
	return clientID + "-" + memberID
}
