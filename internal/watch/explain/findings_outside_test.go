package explain

import (
	"strings"
	"testing"

	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
)

// A group of Flink has no members, and is not to be deleted.
func TestAGroupThatIsReadFromOutsideIsNotCalledAbandoned(t *testing.T) {
	total := int64(5)
	e := evidenceOf(&groupview.Group{Name: "g", State: groupview.Empty, TotalLag: &total})
	e.Watched = &Watched{GroupLag: lag.GroupLag{Total: lag.Total{Lag: 5}, OvertakenIn: 1e9}}
	same(t, "nobody commits", ids(e), "lag-without-members ")
	e.Watched.ReadOutside = true
	same(t, "somebody commits", ids(e), "")
}

// Of layout stream no one knows how many records come, nor how many of those are read.
func TestRatesThatNobodyCountsAreNotTold(t *testing.T) {
	behind := lag.GroupLag{Members: 1, Total: lag.Total{Lag: 5000}, Seconds: 900, CatchUp: lag.NotCatching, Sparse: true}
	got := the(watchedOf(behind, lag.PartitionLag{Topic: "orders"}), "not-catching-up")
	if len(got) != 1 || !strings.HasSuffix(got[0].Text, "5000 records wait, the oldest for 15m.") {
		t.Errorf("%+v", got)
	}
}
