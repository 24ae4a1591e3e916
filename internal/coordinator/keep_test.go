package coordinator

import (
	"runtime"
	"testing"
	"weak"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The answer to someone who asked for everything may be large. The shard does not
// keep it until someone asks for something else.
func TestAnAnswerIsNotKept(t *testing.T) {
	inBubble(t, &gatedLog{}, func(t *testing.T, c *Coordinator) {
		becomeMember(t, c)
		ask := func(req kmsg.Request) weak.Pointer[kmsg.DescribeGroupsResponse] {
			resp := c.Do(t.Context(), "g", Client{}, req).(*kmsg.DescribeGroupsResponse)
			if len(resp.Groups) != 1 || len(resp.Groups[0].Members) != 1 {
				t.Fatalf("the answer is %+v", resp)
			}
			return weak.Make(resp)
		}
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Version, req.Groups = 5, []string{"g"}
		answer := ask(req)
		runtime.GC()
		if answer.Value() != nil {
			t.Error("the answer is kept")
		}
		runtime.KeepAlive(c)
	})
}
