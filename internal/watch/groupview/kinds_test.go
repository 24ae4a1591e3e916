package groupview

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEachKindReadsWhatItAsksFor(t *testing.T) {
	for _, k := range Kinds {
		if k.Read(kmsg.NewPtrDescribeGroupsResponse()) != nil {
			t.Error("an answer to another request is read")
		}
		if got := k.Read(k.Ask([]string{"g"}).ResponseKind()); len(got) > 0 {
			t.Errorf("of nothing is read %+v", got)
		}
	}
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	resp.Groups = []kmsg.ConsumerGroupDescribeResponseGroup{{Group: "a", State: Stable}, {Group: "b", ErrorCode: kerr.GroupIDNotFound.Code}}
	got := Kinds[0].Read(resp)
	if len(got) != 2 || got[0].Name != "a" || got[0].Err != nil || got[0].Group.Type != TypeConsumer || got[0].Group.State != Stable || !errors.Is(got[1].Err, kerr.GroupIDNotFound) {
		t.Errorf("read is %+v", got)
	}
}
