package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/lag"
	"muster/internal/web/problem"
)

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
