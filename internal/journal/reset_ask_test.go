package journal

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAResetIsReadAsItWasSet(t *testing.T) {
	for _, want := range []ResetAsk{{Plan: "r1"}, {Plan: "r-2", Now: true}, {Plan: "r3", Force: true}, {Plan: strings.Repeat("r", 32), Now: true, Force: true}} {
		var tags kmsg.Tags
		want.Set(&tags)
		if got, ok := ResetAskOf(&tags); !ok || got != want {
			t.Errorf("%+v is read as %+v, %t", want, got, ok)
		}
	}
	for _, bad := range []string{"", "\x00", "\x00R1", "\x00r 1", "\x00" + strings.Repeat("r", 33), "\x00r\n"} {
		var tags kmsg.Tags
		tags.Set(resetTag, []byte(bad))
		if got, ok := ResetAskOf(&tags); ok {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
	var tags kmsg.Tags
	if _, ok := ResetAskOf(&tags); ok || ResetReasonOf(&tags) != "" {
		t.Error("of nothing something is read")
	}
	if ResetReason("why").Set(&tags); ResetReasonOf(&tags) != "why" {
		t.Error("the reason is lost")
	}
}
