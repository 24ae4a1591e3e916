package explain

import (
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

// ids words which findings there are.
func ids(e *Evidence) string {
	out := ""
	for _, f := range findings(e) {
		out += f.ID + " "
	}
	return out
}

// behind is a partition with a committed offset, so many records behind, the
// first of them so old.
func behind(partition int32, lag int64, age time.Duration) groupview.Partition {
	at, start, end, seconds, owner := int64(100), int64(50), 100+lag, age.Seconds(), "a"
	return groupview.Partition{Topic: "orders", Partition: partition, Committed: &at, LogStart: &start, LogEnd: &end, Lag: &lag, LagSeconds: &seconds, Owner: &owner}
}

func TestAPartitionThatStandsOutIsStuck(t *testing.T) {
	group := func(partitions ...groupview.Partition) *Evidence {
		g := stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders"))
		g.Partitions = partitions
		return evidenceOf(g)
	}
	stuck := group(behind(0, 0, 0), behind(1, 7, stuckAge), behind(2, 0, 0))
	same(t, "what is found", ids(stuck), "stuck-partition ")
	f := stuck.Findings()[0]
	same(t, "the finding", f.Text, "orders-1 stands out: its next record, offset 100, is 5m old, while half of the partitions are at most 0s behind. Its owner is a at 10.0.0.1.")
	says(t, f.Change, "muster consume orders --partition 1 --from 100 --count 1", "muster groups reset g --topic orders:1 --shift-by 1")

	same(t, "a second less than that", ids(group(behind(0, 0, 0), behind(1, 7, stuckAge-time.Second))), "")
	same(t, "all of them are late", ids(group(behind(0, 7, time.Hour), behind(1, 7, time.Hour), behind(2, 7, 2*time.Hour))), "")
	same(t, "ten times as late as half of them", ids(group(behind(0, 7, time.Hour), behind(1, 7, time.Hour), behind(2, 7, 10*time.Hour))), "stuck-partition ")
	same(t, "one partition alone", ids(group(behind(0, 7, time.Hour))), "")
	uncommitted := behind(1, 7, time.Hour)
	uncommitted.Committed, uncommitted.Lag = nil, nil
	same(t, "one that nobody commits", ids(group(behind(0, 0, 0), uncommitted, behind(2, 0, 0))), "")
	nobody := group(behind(0, 0, 0), behind(1, 7, time.Hour))
	nobody.Group.Members = nil
	same(t, "nobody is there to get stuck", ids(nobody), "")

	late := group(behind(0, 0, 0), behind(0, 0, 0), behind(0, 0, 0), behind(0, 0, 0), behind(0, 0, 0), behind(1, 1, time.Hour), behind(2, 1, 3*time.Hour), behind(3, 1, 2*time.Hour), behind(4, 1, 90*time.Minute))
	found := late.Findings()
	same(t, "how many are told of", len(found), 3)
	says(t, found[0].Text, "orders-2 stands out")
	late.Group.Partitions[6].Owner = nil
	says(t, late.Findings()[0].Text, "It has no owner now.")
}

func TestAGroupWithLagAndNobodyToReadIt(t *testing.T) {
	lag := int64(1)
	e := evidenceOf(&groupview.Group{Name: "g", State: groupview.Empty, TotalLag: &lag})
	same(t, "the finding", findings(e)[0].Text, "The group has no members, and 1 record waits to be read.")
	left := settledEntry(time.Hour, journal.TriggerLeft, "a")
	left.After = 0
	back := settledEntry(2*time.Hour, journal.TriggerLeft, "a")
	back.After = 0
	e.Entries = []Entry{back, left, settledEntry(time.Minute, journal.TriggerJoined, "a")}
	same(t, "the finding", findings(e)[0].Text, "The group has no members, and 1 record waits to be read. It has been empty since 11:00:00 UTC (1h ago).")
	e.Entries = nil
	e.Group.TotalLagAtLeast = true
	lag = 100000
	same(t, "the finding of a count that ended early", findings(e)[0].Text, "The group has no members, and at least 100,000 records wait to be read.")
	lag = 0
	e.Group.TotalLagAtLeast = false
	same(t, "without lag", ids(e), "")
	e.Group.TotalLag = nil
	same(t, "with a lag that nobody knows", ids(e), "")
	lag, e.Group.TotalLag, e.Group.State = 1, &lag, groupview.Preparing
	e.Journal = false
	same(t, "during a rebalance", ids(e), "")
}

func TestCommittedOffsetsOutsideOfTheLog(t *testing.T) {
	below, beyond, inside := behind(0, 10, 0), behind(1, -10, 0), behind(2, 0, 0)
	*below.LogStart = 104
	*beyond.Lag = 0
	e := evidenceOf(&groupview.Group{Name: "g", State: groupview.Empty, Partitions: []groupview.Partition{below, beyond, inside}})
	found := findings(e)
	same(t, "what is found", ids(e), "offsets-below-log-start offsets-beyond-log-end ")
	says(t, found[0].Text, "4 offsets in orders-0 (committed 100, log start 104). They are not in the lag.")
	says(t, found[1].Text, "orders-1 (committed 100, end 90)")
	e.Group.Partitions[0].Committed = nil
	e.Group.Partitions[1].LogStart, e.Group.Partitions[1].LogEnd = nil, nil
	same(t, "without a commit, and without bounds", ids(e), "")
}

func TestSubscriptionsThatDiffer(t *testing.T) {
	g := stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders"), memberOf("b", []int32{0}, "users"))
	e := evidenceOf(g)
	same(t, "what is found", ids(e), "different-subscriptions ")
	says(t, findings(e)[0].Text, "a at 10.0.0.1 to orders; b at 10.0.0.1 to users.")
	g.Members[1].Topics = []string{"orders"}
	g.Members[1].Assigned[0].Topic = "orders"
	same(t, "the same", ids(e), "")
	g.Members[0].Topics, g.Members[1].Topics = []string{"nope", "orders"}, []string{"nope", "orders"}
	same(t, "a topic that does not exist", ids(e), "missing-topic ")
	says(t, findings(e)[0].Text, "Members subscribe to nope, which does not exist.")
	g.State = groupview.Preparing
	e.Journal = false
	same(t, "when nobody tells", ids(e), "")
}

func TestMembersWithNothingToRead(t *testing.T) {
	many := []groupview.Member{}
	for range 5 {
		many = append(many, memberOf("m", []int32{0}, "orders"))
	}
	many[4].Assigned = []groupview.Assigned{}
	e := evidenceOf(stableGroup(many...))
	same(t, "what is found", ids(e), "idle-members ")
	same(t, "the finding", findings(e)[0].Text, "The group has 5 members for 4 partitions of orders, so 1 member has nothing to read: m at 10.0.0.1.")
	says(t, findings(e)[0].Change, "Run at most 4 members, or add partitions: muster topics alter orders --partitions 5.")
	e = evidenceOf(stableGroup(many[3], many[4]))
	e.Group.Assignor = "sticky"
	says(t, findings(e)[0].Text, "1 member has nothing to read, though there are 4 partitions for 2 members: m at 10.0.0.1.")
	e.Partitions = map[string]int{}
	same(t, "without anything to share out", ids(e), "missing-topic ")
}

func TestTopicsThatAreReadNoMore(t *testing.T) {
	g := stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders"))
	unread := behind(0, 7, 0)
	unread.Topic, unread.Owner = "users", nil
	g.Partitions = []groupview.Partition{unread}
	same(t, "what is found", ids(evidenceOf(g)), "unread-topic ")
	g.Partitions[0].Committed, g.Partitions[0].Lag = nil, nil
	same(t, "without a commit", ids(evidenceOf(g)), "")
	g.Partitions[0] = behind(0, 7, 0)
	g.Partitions[0].Owner = nil
	same(t, "one that is subscribed, and nobody's", ids(evidenceOf(g)), "unassigned-partitions ")
}

func TestLagThatIsAnOpenTransactions(t *testing.T) {
	at := groupview.TopicPartition{Topic: "orders", Partition: 1}
	group := func(h HeldBack) *Evidence {
		g := stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders"))
		g.Partitions = []groupview.Partition{behind(0, 0, 0), behind(1, 7, time.Hour), behind(2, 0, 0)}
		e := evidenceOf(g)
		e.Held = map[groupview.TopicPartition]HeldBack{at: h}
		return e
	}
	e := group(HeldBack{LastStableOffset: 100, TransactionalID: "pay", ProducerID: 5, Open: time.Minute})
	same(t, "what is found", ids(e), "open-transaction ")
	same(t, "the finding", findings(e)[0].Text, "The transaction of pay, open for 1m, holds back orders-1. The group has read all that is committed there; with isolation.level=read_committed its lag of 7 is not its own.")
	says(t, findings(e)[0].Change, "muster txns describe pay", "muster txns abort pay")
	says(t, group(HeldBack{LastStableOffset: 100, ProducerID: 5}).Findings()[0].Change, "muster txns abort --partition orders-1 --producer-id 5")
	says(t, group(HeldBack{LastStableOffset: 100, ProducerID: -1}).Findings()[0].Text, "An open transaction holds back orders-1.")
	secret := HeldBack{LastStableOffset: 100, TransactionalID: "pay", ProducerID: 5, Open: time.Minute}
	secret.Hide()
	hidden := group(secret).Findings()[0]
	same(t, "of one that is hidden", hidden.Text, "A transaction, open for 1m, of a transactional id that you may not describe holds back orders-1. The group has read all that is committed there; with isolation.level=read_committed its lag of 7 is not its own.")
	same(t, "what to do about one that is hidden", hidden.Change, "Ask someone who may see what ends it: muster txns list.")
	same(t, "the group has not come that far", ids(group(HeldBack{LastStableOffset: 101, TransactionalID: "pay"})), "stuck-partition ")
}
