package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/words"
)

// Kind is a kind of finding, and all that there is to know of it. Whoever shows findings
// takes them from Kinds: lists, the overview, the page of a group, muster top, /metrics,
// the alert rules and the documentation.
type Kind struct {
	ID string
	// Also has further ids of what find may return.
	Also []string
	// find returns the findings of this kind, in detail, with what to change.
	find func(*Evidence) []Finding

	// Of kinds that a broker finds for all groups that it watches:

	Severity int // 1 for the worst; 0 if it is only found when one group is explained.
	Found    func(*lag.GroupLag) bool
	// Sentence says what is worst about a group that has it.
	Sentence func(g *list.GroupRow, unread, age string) string
	Metric   *Metric // nil if there is none of its own
	Alert    *Alert  // nil if there is none
}

// Metric is a gauge with the label group.
type Metric struct {
	Name, Help string
	Value      func(*lag.GroupLag) float64
}

// Alert is a rule of grafana/alerts.yml.
type Alert struct{ Name, Expr, For, Severity, Summary string }

// Kinds are all kinds of findings, in the order in which a group is explained.
var Kinds = []Kind{
	{ID: "stuck-rebalance", find: (*Evidence).stuckRebalance},
	{ID: "revocation-not-acknowledged", find: (*Evidence).unacknowledged},
	{ID: "stuck-rebalance", find: (*Evidence).stuckConsumers},
	{
		ID: "poison-suspect", Severity: 1, find: (*Evidence).poisonSuspects,
		Found: func(g *lag.GroupLag) bool { return g.Poison > 0 },
		Sentence: func(g *list.GroupRow, _, age string) string {
			return fmt.Sprintf("Members of %s die one after the other at the same offset of %s: a record may kill whoever reads it; the oldest unread one is %s old.", g.Name, words.Plural(g.Poison, "partition"), age)
		},
		Metric: &Metric{
			"muster_group_poison_suspects", "Partitions in which members died one after the other at the same committed offset, so that a record may be why.",
			func(g *lag.GroupLag) float64 { return float64(g.Poison) },
		},
		Alert: &Alert{
			"MusterRecordMayBePoison", "muster_group_poison_suspects > 0", "", "critical",
			"Members of group {{ $labels.group }} die at the same offset of {{ $value }} partitions. muster groups explain says where.",
		},
	},
	{
		ID: "members-keep-dying", Severity: 2, find: (*Evidence).keepDying,
		Found: func(g *lag.GroupLag) bool { return g.Dying },
		Sentence: func(g *list.GroupRow, unread, age string) string {
			return fmt.Sprintf("Members of %s die one after the other wherever they read: %s, the oldest for %s.", g.Name, unread, age)
		},
	},
	{
		ID: "lag-without-members", Severity: 4, find: (*Evidence).lagWithoutMembers,
		Found: (*lag.GroupLag).Unread,
		Sentence: func(g *list.GroupRow, unread, age string) string {
			return fmt.Sprintf("%s has no members, and %s to be read, the oldest for %s.", g.Name, unread, age)
		},
		Alert: &Alert{
			"MusterLagWithoutMembers", "kafka_consumergroup_group_sum_lag > 0 and on (cluster_name, group) kafka_consumergroup_group_state == 5", "10m", "warning",
			"No one reads for group {{ $labels.group }}; {{ $value }} records are unread.",
		},
	},
	{ID: "open-transaction", find: (*Evidence).openTransactions},
	{
		ID: "stuck-partition", Severity: 3, find: (*Evidence).stuckPartitions,
		Found: func(g *lag.GroupLag) bool { return g.Stuck > 0 },
		Sentence: func(g *list.GroupRow, _, age string) string {
			return fmt.Sprintf("%s of %s %s still though the group has members; the oldest unread record is %s old.",
				words.Plural(g.Stuck, "partition"), g.Name, words.Verb(g.Stuck, "stands", "stand"), age)
		},
		Metric: &Metric{
			"muster_group_stuck_partitions", "Partitions that stand still though the group has members.",
			func(g *lag.GroupLag) float64 { return float64(g.Stuck) },
		},
		Alert: &Alert{
			"MusterPartitionIsStuck", "muster_group_stuck_partitions > 0", "1m", "critical",
			"{{ $value }} partitions of group {{ $labels.group }} stand still though it has members. muster groups explain says why.",
		},
	},
	{ID: "offsets-below-log-start", Also: []string{"offsets-beyond-log-end"}, find: (*Evidence).lostRecords},
	{
		ID: "retention-overtakes", Severity: 5, find: (*Evidence).retentionOvertakes,
		Found: (*lag.GroupLag).Overtaken,
		Sentence: func(g *list.GroupRow, unread, age string) string {
			return fmt.Sprintf("Retention will delete records before %s has read them: %s, the oldest for %s.", g.Name, unread, age)
		},
		Alert: &Alert{
			"MusterRetentionOvertakesGroup", "muster_group_retention_margin_seconds < 3600 unless on (group) muster_group_catchup_seconds < 3600", "5m", "critical",
			"Records that group {{ $labels.group }} has not read are deleted in {{ $value | humanizeDuration }}.",
		},
	},
	{
		ID: "not-catching-up", Severity: 6, find: (*Evidence).notCatchingUp,
		Found: (*lag.GroupLag).NotCatchingUp,
		Sentence: func(g *list.GroupRow, unread, age string) string {
			return fmt.Sprintf("%s is %s behind and does not catch up: %s.", g.Name, age, unread)
		},
	},
	{
		ID: "offsets-rewound", Severity: 7, find: (*Evidence).offsetsRewound,
		Found: (*lag.GroupLag).Rewound,
		Sentence: func(g *list.GroupRow, _, _ string) string {
			return fmt.Sprintf("%s went back: it reads records again that it had read.", g.Name)
		},
	},
	{ID: "heartbeats-missed", find: (*Evidence).heartbeatsMissed},
	{ID: "poll-interval-exceeded", find: (*Evidence).pollTimeouts},
	{ID: "missed-rebalance", Also: []string{"never-joined", "slow-joiner"}, find: (*Evidence).lateJoins},
	{ID: "slow-leader", find: (*Evidence).slowLeader},
	{ID: "revocation-timed-out", find: (*Evidence).revocationTimeouts},
	{ID: "rebalance-storm", find: (*Evidence).storm},
	{ID: "static-member-gone", find: (*Evidence).staticMembers},
	{ID: "instance-id-taken-twice", find: (*Evidence).placesTaken},
	{ID: "subscription-not-taken-up", find: (*Evidence).notTakenUp},
	{ID: "no-sync", find: (*Evidence).noSyncs},
	{ID: "assignment-too-large", find: (*Evidence).tooLarge},
	{ID: "assignment-too-large", find: (*Evidence).targetTooLarge},
	{ID: "regex-matches-nothing", find: (*Evidence).emptyPatterns},
	{ID: "assignor-nobody-else-asks-for", find: (*Evidence).lonelyAssignors},
	{ID: "mixed-protocols", find: (*Evidence).mixedProtocols},
	{ID: "static-member-away", find: (*Evidence).awayMembers},
	{ID: "different-subscriptions", Also: []string{"missing-topic"}, find: (*Evidence).subscriptions},
	{ID: "idle-members", find: (*Evidence).idleMembers},
	{ID: "unassigned-partitions", find: (*Evidence).ownerless},
	{ID: "unread-topic", find: (*Evidence).unreadTopics},
}

// WatchedKinds are those that a broker finds for all groups that it watches, worst first.
var WatchedKinds = watchedKinds()

func watchedKinds() (out []*Kind) {
	for i := range Kinds {
		if Kinds[i].Severity > 0 {
			out = append(out, &Kinds[i])
		}
	}
	slices.SortFunc(out, func(a, b *Kind) int { return cmp.Compare(a.Severity, b.Severity) })
	return out
}

// Found returns the ids of what is wrong with a group that is watched, worst first.
func Found(g *lag.GroupLag) []string {
	var out []string
	for _, k := range WatchedKinds {
		if k.Found(g) {
			out = append(out, k.ID)
		}
	}
	return out
}

// Sentence says what is worst about a group in a list. It must have a finding.
func Sentence(g *list.GroupRow) string {
	unread := words.Plural(int(g.Lag), "record") + words.Verb(int(g.Lag), " waits", " wait")
	age := words.Duration(time.Duration(g.LagSeconds * float64(time.Second)).Round(time.Second))
	for _, k := range WatchedKinds {
		if k.ID == g.Findings[0] {
			return k.Sentence(g, unread, age)
		}
	}
	return fmt.Sprintf("%s has the finding %s.", g.Name, strings.ReplaceAll(g.Findings[0], "-", " "))
}

// Finding is something odd about a group, and what to change.
type Finding struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Change string `json:"change"`
}

// Findings returns what is odd, what hurts most first.
func (e *Evidence) Findings() []Finding {
	out := []Finding{}
	for i := range Kinds {
		out = append(out, Kinds[i].find(e)...)
	}
	return out
}
