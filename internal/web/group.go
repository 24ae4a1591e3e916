package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
	"muster/internal/web/problem"
)

// None is a question without parameters.
type None struct{}

// catchUps words lag.CatchUp.
var catchUps = map[lag.CatchUp]string{lag.CaughtUp: "caught-up", lag.Unknown: "unknown", lag.NotCatching: "not-catching", lag.Catching: "catching"}

// group shows a group as it is now, with what is kept of it over time.
func (a *api) group(c *call, _ *None) (*GroupDetail, error) {
	name := c.param("group")
	g, err := groupview.NewLoader(a.reads.Source()).One(c.ctx(), name)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, problem.NotFound("there is no group %q", name)
	}
	out := &GroupDetail{
		Name: g.Name, Type: g.Type, State: g.State, ProtocolType: g.ProtocolType, Assignor: g.Assignor, Epoch: g.Epoch, TargetEpoch: g.TargetEpoch,
		Members: []Member{}, Partitions: []GroupPartition{}, TotalLag: g.TotalLag, TotalLagAtLeast: g.TotalLagAtLeast, Uncommitted: g.Uncommitted,
	}
	if k := g.Coordinator; k != nil {
		out.Coordinator = &Coordinator{k.Broker, k.Address}
	}
	seen := a.topicsSeen(c)
	names := g.ShortNames()
	for i := range g.Members {
		out.Members = append(out.Members, memberOf(&g.Members[i], names, seen))
	}
	for i := range g.Partitions {
		if p := &g.Partitions[i]; seen.has(p.Topic) {
			out.Partitions = append(out.Partitions, partitionOf(p))
		}
	}
	out.HiddenTopics = seen.hidden()
	if out.HiddenTopics > 0 {
		out.TotalLag = nil // It is that of topics that the caller may not see, too.
	}
	a.addWatched(out)
	return out, nil
}

// topicsSeen remembers which topics a caller may see.
type topicsSeen struct {
	sees  func(topic string) bool
	known map[string]bool
}

func (a *api) topicsSeen(c *call) *topicsSeen {
	return &topicsSeen{func(topic string) bool { return a.sees(c, auth.Topic, topic) }, map[string]bool{}}
}

func (s *topicsSeen) has(topic string) bool {
	seen, asked := s.known[topic]
	if !asked {
		seen = s.sees(topic)
		s.known[topic] = seen
	}
	return seen
}

// hidden is how many topics the caller was not shown.
func (s *topicsSeen) hidden() int {
	n := 0
	for _, seen := range s.known {
		if !seen {
			n++
		}
	}
	return n
}

func memberOf(m *groupview.Member, names map[string]string, seen *topicsSeen) Member {
	out := Member{
		ID: m.ID, Name: names[m.ID], ClientID: m.ClientID, Host: m.Host, Instance: m.Instance,
		Assigned: assignedOf(m.Assigned, seen), Pattern: m.Pattern, Epoch: m.Epoch,
		Target: assignedOf(m.Target, seen), Classic: m.Classic, Revoking: assignedOf(m.Revoking, seen),
		Waits: m.Waits, Since: m.Since, Until: m.Until,
	}
	if m.Topics != nil {
		out.Topics = []string{}
	}
	for _, topic := range m.Topics {
		if seen.has(topic) {
			out.Topics = append(out.Topics, topic)
		}
	}
	return out
}

func assignedOf(list []groupview.Assigned, seen *topicsSeen) []Assigned {
	if list == nil {
		return nil
	}
	out := []Assigned{}
	for _, t := range list {
		if seen.has(t.Topic) {
			out = append(out, Assigned{t.Topic, some(t.Partitions)})
		}
	}
	return out
}

func partitionOf(p *groupview.Partition) GroupPartition {
	return GroupPartition{
		Topic: p.Topic, Partition: p.Partition, Committed: offset(p.Committed), LogStart: offset(p.LogStart), LogEnd: offset(p.LogEnd),
		Lag: p.Lag, LagAtLeast: p.LagAtLeast, LagSeconds: p.LagSeconds, Owner: p.Owner,
	}
}

// watched returns what is kept of a group over time; nil if the last look has not seen it.
func (a *api) watched(name string) *explain.Watched {
	var out *explain.Watched
	a.reads.Lag(func(t *lag.Tracker) {
		if of, found := t.Of(name); found {
			out = &explain.Watched{GroupLag: of, Partitions: t.Partitions(name)}
		}
	})
	return out
}

// addWatched adds what the last look at all groups found. What adds up all topics is left
// out if the caller may not see some of them.
func (a *api) addWatched(out *GroupDetail) {
	of := a.watched(out.Name)
	if of == nil {
		return
	}
	if out.HiddenTopics == 0 {
		out.Watched = a.watchOf(of)
		if out.TotalLag == nil && !of.Unknown { // Others lead some of the partitions, and the look has asked them.
			out.TotalLag, out.TotalLagAtLeast = &of.Lag, of.Approximate
		}
	}
	byName := map[groupview.TopicPartition]*lag.PartitionLag{}
	for i := range of.Partitions {
		p := &of.Partitions[i]
		byName[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = p
	}
	for i := range out.Partitions {
		p := &out.Partitions[i]
		if l := byName[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}]; l != nil {
			p.watched(l)
		}
	}
}

func (a *api) watchOf(of *explain.Watched) *GroupWatch {
	out := &GroupWatch{
		At: a.reads.Snapshot().At, Lag: of.Lag, LagUnknown: of.Unknown, LagApproximate: of.Approximate, LagSeconds: of.Seconds, LagSecondsAtLeast: of.SecondsAtLeast,
		Pace: of.Pace().String(), PaceText: explain.PaceText(of.Pace().String(), of.CatchUpTime), CatchUp: catchUps[of.CatchUp], Stuck: of.Stuck, Poison: int(of.Poison), MarginSeconds: finite(of.Margin), OvertakenInSecs: finite(of.OvertakenIn), Findings: some(explain.Found(&of.GroupLag)),
	}
	if of.Rates.Known {
		out.ConsumedPerSecond, out.ProducedPerSecond = finite(of.Rates.Consumed), finite(of.Rates.Produced)
	}
	if of.CatchUp == lag.Catching {
		out.CatchUpSeconds = finite(of.CatchUpTime.Seconds())
	}
	return out
}

// watched adds what was found of a partition. How old its first unread record is may be
// said only if there is one still.
func (p *GroupPartition) watched(l *lag.PartitionLag) {
	p.Deaths = l.Deaths
	p.Verdict, p.MarginSeconds, p.OvertakenInSecs, p.Overtaken = l.Verdict.String(), finite(l.Margin), finite(l.OvertakenIn), l.Overtaken()
	if !l.Known {
		return
	}
	if p.Lag == nil && p.Committed != nil { // Another broker leads it, and the look has asked that one.
		start, end, behind := Offset(l.Start), Offset(l.End), l.Lag
		p.LogStart, p.LogEnd, p.Lag, p.LagAtLeast = &start, &end, &behind, l.Approximate
	}
	if p.LagSeconds == nil {
		p.LagSeconds = &l.Seconds
	}
}

// HistoryQuery asks for the past of a group.
type HistoryQuery struct {
	Resolution string `query:"resolution" doc:"how far apart the points of the group are: 10s (for half an hour), 2m (6 hours) or 16m (48 hours); 10s if not given"`
	Topic      string `query:"topic" doc:"with partition: where the group was in that one, a point a minute"`
	Partition  *int   `query:"partition" doc:"of the topic"`
}

// History is the past of a group.
type History struct {
	Group       string           `json:"group"`
	StepSeconds int              `json:"stepSeconds" doc:"how far apart the points are; of those of which nothing is known there is none"`
	Points      []HistoryPoint   `json:"points" csv:"rows" doc:"the oldest first; none if you may not see all topics of the group"`
	Hidden      int              `json:"hiddenTopics" doc:"topics of the group that you may not see"`
	Topic       string           `json:"topic,omitempty"`
	Partition   *int             `json:"partition,omitempty"`
	Positions   []PositionInTime `json:"positions,omitempty" doc:"where the group was in the partition, the oldest first"`
}

// HistoryPoint is the lag of a group at a time. It is exact to 0.4 %.
type HistoryPoint struct {
	At         time.Time `json:"at"`
	Lag        int64     `json:"lag" doc:"the largest of the time up to the next point"`
	LagSeconds float64   `json:"lagSeconds"`
}

// PositionInTime is where a group was in a partition.
type PositionInTime struct {
	At         time.Time `json:"at"`
	Committed  Offset    `json:"committed"`
	LagSeconds float64   `json:"lagSeconds"`
}

// resolutions are those of lag.Tracker.History.
var resolutions = []string{"10s", "2m", "16m"}

// history shows what is kept of a group, and of one whose lag has not changed what follows
// from that.
func (a *api) history(c *call, q *HistoryQuery) (*History, error) {
	level := slices.Index(resolutions, cmp.Or(q.Resolution, resolutions[0]))
	if level < 0 {
		return nil, problem.BadRequest("resolution is 10s, 2m or 16m, not %q", q.Resolution)
	}
	step, err := time.ParseDuration(resolutions[level])
	if err != nil {
		return nil, err
	}
	name := c.param("group")
	out := &History{Group: name, StepSeconds: int(step.Seconds()), Points: []HistoryPoint{}}
	if (q.Topic == "") != (q.Partition == nil) {
		return nil, problem.BadRequest("topic and partition belong together")
	}
	if q.Topic != "" {
		if err := a.may(c.asks(auth.Describe, auth.Topic, q.Topic)); err != nil {
			return nil, err
		}
	}
	if a.hasAnother(name) {
		return nil, &problem.Elsewhere{What: fmt.Sprintf("group %q", name), Broker: a.coordinatorOf(name)}
	}
	g, there := a.reads.Snapshot().Groups.Get(name)
	if !there {
		return nil, problem.NotFound("there is no group %q that this broker has looked at", name)
	}
	seen := a.topicsSeen(c)
	for _, topic := range g.Topics {
		seen.has(topic)
	}
	out.Hidden = seen.hidden()
	a.reads.Lag(func(t *lag.Tracker) {
		if out.Hidden == 0 { // They add up all topics.
			for _, p := range t.Past(name, level) {
				out.Points = append(out.Points, HistoryPoint{p.At.UTC(), p.Lag, p.Seconds})
			}
		}
		if q.Partition == nil {
			return
		}
		out.Topic, out.Partition, out.Positions = q.Topic, q.Partition, []PositionInTime{}
		for _, p := range t.PartitionPast(name, q.Topic, int32(*q.Partition)) {
			out.Positions = append(out.Positions, PositionInTime{p.At.UTC(), Offset(p.Committed), p.Seconds})
		}
	})
	return out, nil
}
