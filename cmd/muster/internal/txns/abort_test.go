package txns

import (
	"strings"
	"testing"
)

func TestAbortDoesNotClaimToAbortWhatIsCommitted(t *testing.T) {
	for state, want := range map[string]bool{"Ongoing": true, "PrepareAbort": true, "PrepareCommit": false, "CompleteCommit": false, "Empty": false} {
		if did, aborted := (State{State: state}).fenced(); aborted != want || strings.Contains(did, "aborted") != want {
			t.Errorf("%s: %s, %v", state, did, aborted)
		}
	}
}
