package web

import (
	"time"

	"muster/internal/watch/list"
)

// GroupsQuery asks for groups.
type GroupsQuery struct {
	Q       string   `query:"q" doc:"a part of the name, in large or small letters"`
	State   []string `query:"state" doc:"only groups in one of these states"`
	Type    []string `query:"type" doc:"only groups of these types: classic, consumer"`
	Finding []string `query:"finding" doc:"only groups with one of these findings; any for all that have some"`
	Topic   string   `query:"topic" doc:"only groups that read this topic, or have committed offsets of it"`
	Sort    string   `query:"sort" doc:"name, lag, lagSeconds, catchUp, members, state, type, stuck, rebalanced or findings; with a minus for the reverse"`
	Limit   int      `query:"limit" doc:"how many, at most 1000; 50 if not given"`
	After   string   `query:"after" doc:"next of the page before"`
}

// GroupList is a page of groups.
type GroupList struct {
	At         *time.Time `json:"at" doc:"when the groups were looked at; null before the first look, which comes within seconds of a start"`
	Groups     []GroupRow `json:"groups" csv:"rows" doc:"in the order that was asked for"`
	Next       string     `json:"next,omitempty" doc:"what to give as after for the next page; absent on the last"`
	Matched    *int       `json:"matched" doc:"how many groups fit the filters; null on further pages"`
	Total      *int       `json:"total" doc:"how many groups there are; null if you may not see all"`
	Incomplete []Silent   `json:"incomplete" doc:"brokers whose groups are not in the list"`
}

// GroupRow is a group in a list.
type GroupRow = list.GroupRow

// GroupDetail is a group now.
type GroupDetail struct {
	Name            string           `json:"name"`
	Type            string           `json:"type" doc:"classic or consumer"`
	State           string           `json:"state" doc:"in Kafka's words"`
	ProtocolType    string           `json:"protocolType"`
	Assignor        string           `json:"assignor"`
	Epoch           *int32           `json:"epoch" doc:"of a consumer group"`
	TargetEpoch     *int32           `json:"targetEpoch" doc:"of a consumer group: which epoch members are on their way to"`
	Coordinator     *Coordinator     `json:"coordinator"`
	Members         []Member         `json:"members"`
	Partitions      []GroupPartition `json:"partitions" doc:"by topic and number, of topics that you may see"`
	HiddenTopics    int              `json:"hiddenTopics" doc:"topics of the group that you may not see"`
	TotalLag        *int64           `json:"totalLag" doc:"in records; null if a part is not known, and if you may not see all of its topics"`
	TotalLagAtLeast bool             `json:"totalLagAtLeast" doc:"it may be more: a count ended early"`
	Uncommitted     int              `json:"uncommitted" doc:"partitions without a committed offset, which have no lag"`
	Watched         *GroupWatch      `json:"watched" doc:"what the last look at all groups found, all topics added up; null if it has not seen this one, and if you may not see all of its topics"`
}

// Coordinator is the broker that has a group.
type Coordinator struct {
	Broker  int32  `json:"broker"`
	Address string `json:"address"`
}

// Member is a member of a group.
type Member struct {
	ID       string     `json:"memberId"`
	Name     string     `json:"name" doc:"a short name, which no other member has"`
	ClientID string     `json:"clientId"`
	Host     string     `json:"host"`
	Instance *string    `json:"instanceId" doc:"of a static member"`
	Topics   []string   `json:"topics" null:"yes" doc:"that it subscribes to; null while that is not known"`
	Assigned []Assigned `json:"assigned" null:"yes" doc:"null while that is not known"`
	Pattern  *string    `json:"pattern" doc:"the regular expression that it subscribes to"`
	Epoch    *int32     `json:"epoch" doc:"of a member of a consumer group"`
	Target   []Assigned `json:"target" null:"yes" doc:"what a member of a consumer group is to have"`
	Classic  bool       `json:"classic" doc:"it uses the classic protocol in a consumer group"`
	Revoking []Assigned `json:"revoking" null:"yes" doc:"what it was told to give up, and has not"`
	Waits    bool       `json:"waits" doc:"it waits for others to give up partitions"`
	Since    *time.Time `json:"since" doc:"when it was told, or since when it waits"`
	Until    *time.Time `json:"until" doc:"when it is removed unless it has given them up"`
}

// Assigned is the partitions of a topic that a member has.
type Assigned struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// GroupPartition is a partition that a group reads, or has read.
type GroupPartition struct {
	Topic           string   `json:"topic"`
	Partition       int32    `json:"partition"`
	Committed       *Offset  `json:"committed"`
	LogStart        *Offset  `json:"logStartOffset"`
	LogEnd          *Offset  `json:"logEndOffset" doc:"the high watermark"`
	Lag             *int64   `json:"lag" doc:"in records; null without a committed offset, and if it is not known"`
	LagAtLeast      bool     `json:"lagAtLeast" doc:"it may be more: the count ended early, or is an estimate"`
	LagSeconds      *float64 `json:"lagSeconds" doc:"the age of the first unread record when groups were last looked at"`
	Owner           *string  `json:"owner" doc:"the member id of who has it"`
	Verdict         string   `json:"verdict" doc:"no-owner, not-fetching, not-committing, stopped, stalled or rewound; empty if all is well"`
	Deaths          int      `json:"deaths" doc:"members that died at the committed offset, one after the other; 0 unless a record is suspected"`
	MarginSeconds   *float64 `json:"marginSeconds" doc:"when retention deletes the first unread record at the earliest; null if never"`
	OvertakenInSecs *float64 `json:"overtakenInSeconds" doc:"when it will at the present pace; null if not"`
	Overtaken       bool     `json:"overtaken" doc:"that matters: it may do so at any moment, or will within a day and the group is far behind"`
}

// GroupWatch is what the last look at all groups found of one.
type GroupWatch struct {
	At                time.Time `json:"at"`
	Lag               int64     `json:"lag"`
	LagUnknown        bool      `json:"lagUnknown"`
	LagApproximate    bool      `json:"lagApproximate"`
	LagSeconds        float64   `json:"lagSeconds"`
	LagSecondsAtLeast bool      `json:"lagSecondsAtLeast" doc:"it may be older"`
	ConsumedPerSecond *float64  `json:"consumedPerSecond" doc:"null before it was watched for long enough"`
	ProducedPerSecond *float64  `json:"producedPerSecond"`
	CatchUp           string    `json:"catchUp" doc:"caught-up, catching, not-catching or unknown"`
	CatchUpSeconds    *float64  `json:"catchUpSeconds" doc:"how long it takes, if it is catching"`
	Pace              string    `json:"pace" doc:"how it gets on: caught-up, catching-up, keeping-up, not-catching-up, held-back (by an open transaction), no-members, too-early (to say) or unknown"`
	PaceText          string    `json:"paceText" doc:"the same in words"`
	Stuck             int       `json:"stuck" doc:"partitions that stand still though the group has members"`
	Poison            int       `json:"poison" doc:"partitions with a record that may kill whoever reads it"`
	MarginSeconds     *float64  `json:"marginSeconds" doc:"when retention deletes the first unread record at the earliest; null if never"`
	OvertakenInSecs   *float64  `json:"overtakenInSeconds" doc:"when it will at the present pace; null if not"`
	Findings          []string  `json:"findings" doc:"what is wrong, worst first"`
}
