package coordinator

import (
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// All shards together hold so much, and what a shard holds counts once.
func TestWhatClientsSayIsBoundedOverAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := group.DefaultConfig()
		o := options(t, &gatedLog{})
		o.Core = group.Definition(func() group.Config { return cfg })
		const fits = 3 // members; each of them takes between 512 and 640 bytes
		cfg.MaxBytes = fits * 640
		c := New(o)
		defer c.Close()
		c.Lead([]int32{0, 0})
		synctest.Wait()
		groups := [2]string{}
		for i := 0; groups[0] == "" || groups[1] == ""; i++ {
			name := string(rune('a' + i))
			groups[PartitionFor(name, 2)] = name
		}
		join := func(name string) int16 {
			req := kmsg.NewPtrJoinGroupRequest()
			req.Version, req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 4, name, "consumer", 10_000, 10_000
			req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
			return c.Do(t.Context(), name, Client{ID: "c"}, req).(*kmsg.JoinGroupResponse).ErrorCode
		}
		for i := range fits {
			if code := join(groups[0]); code != kerr.MemberIDRequired.Code {
				t.Errorf("for member %d there is no room: %d", i, code)
			}
		}
		for _, name := range groups {
			if code := join(name); code != kerr.CoordinatorNotAvailable.Code {
				t.Errorf("a member too many is answered with %d", code)
			}
		}
	})
}
