package machine

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What brokers tell each other in tagged fields comes back as it was; other clients may put
// into them what they like.
func TestTaggedFieldsAreReadAsTheyWereSet(t *testing.T) {
	var tags kmsg.Tags
	NoTxnStart.Set(&tags)
	StoreRun("").Set(&tags)
	if TxnStartOf(&tags) != NoTxnStart || TopicIDOf(&tags) != (TopicID{}) || StoreRunOf(&tags) != "" || tags.Len() != 0 {
		t.Errorf("of nothing there are %d", tags.Len())
	}
	for _, start := range []TxnStart{0, 1_700_000_000_000} {
		start.Set(&tags)
		if got := TxnStartOf(&tags); got != start {
			t.Errorf("the start is %d, want %d", got, start)
		}
	}
	id, run := TopicID{1, 15: 9}, StoreRun("run")
	id.Set(&tags)
	run.Set(&tags)
	if TopicIDOf(&tags) != id || StoreRunOf(&tags) != run || TxnStartOf(&tags) != 1_700_000_000_000 {
		t.Errorf("%v, %q and %d are read", TopicIDOf(&tags), StoreRunOf(&tags), TxnStartOf(&tags))
	}
	for _, length := range []int{0, 7, 9, maxRun + 1} {
		var wrong kmsg.Tags
		for _, tag := range []uint32{startTag, topicTag} {
			wrong.Set(tag, make([]byte, length))
		}
		wrong.Set(runTag, []byte(strings.Repeat("x", maxRun+1)))
		if TxnStartOf(&wrong) != NoTxnStart || TopicIDOf(&wrong) != (TopicID{}) || StoreRunOf(&wrong) != "" {
			t.Errorf("of %d bytes something is read", length)
		}
	}
}

// What a coordinator decided in a run of the store that is not known is not taken for that of
// another one.
func TestOnlyKnownRunsOfAStoreDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b StoreRun
		want bool
	}{{"a", "b", true}, {"a", "a", false}, {"", "a", false}, {"a", "", false}, {"", "", false}} {
		if got := c.a.Differs(c.b); got != c.want {
			t.Errorf("%q and %q differ: %t", c.a, c.b, got)
		}
	}
}
