package txn

import "testing"

// What is decided goes on as long as markers are missing.
func TestATransactionThatIsDecidedStillGoesOn(t *testing.T) {
	for state, want := range map[string]bool{
		"Empty": false, "Ongoing": true, "PrepareCommit": true, "PrepareAbort": true, "CompleteCommit": false, "CompleteAbort": false, "Dead": false,
	} {
		if Unfinished(state) != want {
			t.Errorf("%s goes on: %v", state, !want)
		}
	}
}
