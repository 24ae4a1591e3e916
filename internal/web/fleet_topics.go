package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"muster/internal/auth"
	"muster/internal/watch"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

// topicsAsked asks a broker for its part in topics.
type topicsAsked struct {
	Topics []string `json:"topics"`
}

// topicParts is the part of a broker: of each topic that was asked for, in that order.
type topicParts struct {
	Looked bool    `json:"looked"` // Whether it has looked at its partitions and groups yet.
	Bytes  []int64 `json:"bytes"`
	Groups []int   `json:"groups"`
}

// fleetTopics answers another broker.
func (a *api) fleetTopics(c *call, q *topicsAsked) (*topicParts, error) {
	s := a.reads.Snapshot()
	seen := a.groupsSeen(c)
	out := &topicParts{Looked: !s.At.IsZero(), Bytes: make([]int64, len(q.Topics)), Groups: make([]int, len(q.Topics))}
	for i, name := range q.Topics {
		if !a.sees(c, auth.Topic, name) {
			continue
		}
		at, found := slices.BinarySearchFunc(s.Topics, name, func(t watch.Topic, name string) int { return cmp.Compare(t.Name, name) })
		if found {
			for _, p := range s.Topics[at].Partitions {
				if p.Here {
					out.Bytes[i] += p.Bytes
				}
			}
		}
		out.Groups[i] = len(readers(s, name, seen))
	}
	return out, nil
}

// addTopicParts adds what other brokers have of topics. All brokers know the topics, so
// only numbers are asked for: of a page, or of all topics if they are sorted by these.
func (a *api) addTopicParts(c *call, out *TopicList, rows []TopicRow, others []fleet.Target) {
	if len(rows) == 0 {
		return
	}
	ask := topicsAsked{}
	for i := range rows {
		ask.Topics = append(ask.Topics, rows[i].Name)
	}
	body, err := json.Marshal(ask)
	if err != nil || len(body) > fleet.MaxBody {
		for _, t := range others {
			out.Incomplete = append(out.Incomplete, Silent{t.Node, "these are too many topics to ask for; look for a part of their names"})
		}
		return
	}
	answers, silent := askOthers[topicParts](a, c, others, fleet.Question{Method: http.MethodPost, URI: FleetPrefix + "/topics", ContentType: problem.JSON, Body: body})
	out.Incomplete = silent
	for _, t := range answers {
		if len(t.answer.Bytes) != len(rows) || len(t.answer.Groups) != len(rows) {
			out.Incomplete = append(out.Incomplete, Silent{t.node, unreadable})
			continue
		}
		if !t.answer.Looked {
			out.Incomplete = append(out.Incomplete, Silent{t.node, notLooked})
		}
		for i := range rows {
			rows[i].Bytes += t.answer.Bytes[i]
			rows[i].Groups += t.answer.Groups[i]
		}
	}
}

// topic shows a topic, with the partitions that others lead and the groups that they have.
func (a *api) topic(c *call, _ *None) (*TopicDetail, error) {
	own, err := a.ownTopic(c)
	others := a.others(c)
	if err != nil || len(others) == 0 {
		return own, err
	}
	answers, silent := askOthers[TopicDetail](a, c, others, fleet.Question{URI: c.request.URL.EscapedPath()})
	own.Incomplete = silent
	for _, t := range answers {
		if t.answer.ID != own.ID {
			own.Incomplete = append(own.Incomplete, Silent{t.node, "it knows another topic of this name: it has just been created anew"})
			continue
		}
		mergeTopic(own, t.node, t.answer)
	}
	slices.SortStableFunc(own.Groups, func(x, y TopicGroup) int { return cmp.Compare(x.Name, y.Name) })
	own.Groups = slices.CompactFunc(own.Groups, func(x, y TopicGroup) bool { return x.Name == y.Name }) // One that has just moved.
	if over := len(own.Groups) - maxTopicGroups; over > 0 {
		own.Groups, own.MoreGroups = own.Groups[:maxTopicGroups], own.MoreGroups+over
	}
	return own, nil
}

// mergeTopic adds what a broker knows of a topic: of its partitions only what it leads.
func mergeTopic(own *TopicDetail, node int32, theirs *TopicDetail) {
	own.At = oldest(own.At, theirs.At)
	for i := range own.Partitions {
		p := &own.Partitions[i]
		if i < len(theirs.Partitions) && p.Leader != nil && *p.Leader == node {
			leader := p.Leader
			*p = theirs.Partitions[i]
			p.Leader = leader
		}
	}
	own.Groups = append(own.Groups, theirs.Groups...)
	own.MoreGroups += theirs.MoreGroups
}
