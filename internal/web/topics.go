package web

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strings"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/watch"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

// maxTopicGroups is how many groups are told with a topic.
const maxTopicGroups = 200

// topicSorts are what topics can be sorted by, besides their names.
var topicSorts = map[string]func(*TopicRow) int64{
	"name":       func(*TopicRow) int64 { return 0 },
	"partitions": func(t *TopicRow) int64 { return int64(t.Partitions) },
	"bytes":      func(t *TopicRow) int64 { return t.Bytes },
	"groups":     func(t *TopicRow) int64 { return int64(t.Groups) },
}

// topics lists topics from the last snapshot.
func (a *api) topics(c *call, q *TopicsQuery) (*TopicList, error) {
	by, reverse := strings.CutPrefix(cmp.Or(q.Sort, "name"), "-")
	value, ok := topicSorts[by]
	if !ok {
		return nil, problem.BadRequest("topics cannot be sorted by %q", q.Sort)
	}
	limit := cmp.Or(q.Limit, list.DefaultLimit)
	if limit > list.MaxLimit || len(q.Q) > list.MaxText {
		return nil, problem.BadRequest("the query is too long or its limit out of range")
	}
	s := a.reads.Snapshot()
	rows := a.topicRows(c, s, q)
	out := &TopicList{At: known(s.At), Matched: len(rows), Incomplete: a.unasked(c, "partitions and groups")}
	sums := by == "bytes" || by == "groups" // Which are not known before all were asked.
	if others := a.others(c); sums && len(others) > 0 {
		a.addTopicParts(c, out, rows, others)
	}
	order := func(x, y *TopicRow) int {
		out := cmp.Or(cmp.Compare(value(x), value(y)), cmp.Compare(x.Name, y.Name))
		if reverse {
			return -out
		}
		return out
	}
	sort.Slice(rows, func(i, j int) bool { return order(&rows[i], &rows[j]) < 0 })
	if q.After != "" {
		after, ok := readCursor(q.After)
		if !ok {
			return nil, problem.BadRequest("%v", list.ErrCursor)
		}
		rows = rows[slices.IndexFunc(append(rows, TopicRow{}), func(t TopicRow) bool {
			return t.Name == "" || compareTo(value(&t), t.Name, after, reverse) > 0
		}):]
	}
	if len(rows) > limit {
		last := &rows[limit-1]
		out.Next = cursor{value(last), last.Name}.String()
		rows = rows[:limit]
	}
	if others := a.others(c); !sums && len(others) > 0 {
		a.addTopicParts(c, out, rows, others)
	}
	out.Topics = some(rows)
	return out, nil
}

// cursor is where a page of topics ended.
type cursor struct {
	value int64
	name  string
}

func (k cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(k.value)), k.name...))
}

func readCursor(text string) (cursor, bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= 8 {
		return cursor{}, false
	}
	return cursor{int64(binary.BigEndian.Uint64(b)), string(b[8:])}, true
}

// compareTo says whether a topic comes after a cursor.
func compareTo(value int64, name string, k cursor, reverse bool) int {
	out := cmp.Or(cmp.Compare(value, k.value), cmp.Compare(name, k.name))
	if reverse {
		return -out
	}
	return out
}

// topicRows returns the topics that fit a query and that the caller may see.
func (a *api) topicRows(c *call, s *watch.Snapshot, q *TopicsQuery) []TopicRow {
	text := strings.ToLower(q.Q)
	seen := a.groupsSeen(c)
	var out []TopicRow
	for i := range s.Topics {
		t := &s.Topics[i]
		if t.Internal && !q.Internal || !strings.Contains(strings.ToLower(t.Name), text) || !a.sees(c, auth.Topic, t.Name) {
			continue
		}
		row := TopicRow{Name: t.Name, ID: metadata.TopicID(t.ID).String(), Internal: t.Internal, Partitions: len(t.Partitions)}
		for _, p := range t.Partitions {
			if p.Leader < 0 {
				row.Leaderless++
			}
			if p.Here {
				row.Bytes += p.Bytes
			}
		}
		if row.Groups = s.Groups.CountReading(t.Name); seen != nil {
			row.Groups = len(readers(s, t.Name, seen))
		}
		out = append(out, row)
	}
	return out
}

// readers returns the groups of a topic that someone may see.
func readers(s *watch.Snapshot, topic string, seen func(string) bool) []*list.GroupRow {
	all := s.Groups.Reading(topic)
	if seen == nil {
		return all
	}
	return slices.DeleteFunc(all, func(g *list.GroupRow) bool { return !seen(g.Name) })
}

// ownTopic shows a topic as this broker knows it.
func (a *api) ownTopic(c *call) (*TopicDetail, error) {
	name := c.param("topic")
	t := a.reads.Image().Topic(name)
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", name)
	}
	s := a.reads.Snapshot()
	out := &TopicDetail{
		At: known(s.At), Name: t.Name, ID: t.ID.String(), Internal: t.Internal, Partitions: partitionsOf(t, s),
		Groups: []TopicGroup{}, Incomplete: a.unasked(c, "partitions and groups"),
	}
	if prefix := t.Config.StreamPrefix; prefix != "" && !t.Internal {
		prefix += ":" + name + ":"
		out.Streams = &prefix
	}
	if a.gate.Sees(c.asks(auth.DescribeConfigs, auth.Topic, name)) {
		out.Settings = []TopicSetting{}
		for _, d := range config.TopicDefs() {
			if value, set := t.Set[d.Name]; set {
				out.Settings = append(out.Settings, TopicSetting{d.Name, value})
			}
		}
	}
	groups := readers(s, name, a.groupsSeen(c))
	out.MoreGroups = max(len(groups)-maxTopicGroups, 0)
	a.reads.Lag(func(tracker *lag.Tracker) {
		for _, g := range groups[:len(groups)-out.MoreGroups] {
			out.Groups = append(out.Groups, topicGroup(tracker, g, name))
		}
	})
	return out, nil
}

// partitionsOf shows the partitions of a topic: who leads them, as of now, and what the
// last look found where this broker does.
func partitionsOf(t *metadata.Topic, s *watch.Snapshot) []TopicPartition {
	var seen []watch.Partition
	at, found := slices.BinarySearchFunc(s.Topics, t.Name, func(x watch.Topic, name string) int { return cmp.Compare(x.Name, name) })
	if found && s.Topics[at].ID == t.ID {
		seen = s.Topics[at].Partitions
	}
	out := make([]TopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		out[i].Partition = int32(i)
		if leader := p.Leader; leader >= 0 {
			out[i].Leader = &leader
		}
		if i >= len(seen) || !seen[i].Here {
			continue
		}
		x := &seen[i]
		bytes := x.Bytes
		out[i].LogStartOffset, out[i].LogEndOffset, out[i].LastStableOffset = offset(&x.Start), offset(&x.End), offset(&x.LastStable)
		out[i].Bytes = &bytes
		if x.Dense {
			records := max(x.End-x.Start, 0)
			out[i].Records = &records
		}
	}
	return out
}

// topicGroup is how far a group is behind in one topic.
func topicGroup(t *lag.Tracker, g *list.GroupRow, topic string) TopicGroup {
	in := t.InTopic(g.Name, topic)
	return TopicGroup{
		Name: g.Name, State: g.State, Members: g.Members,
		Partitions: in.Partitions, Lag: in.Lag, LagUnknown: in.Unknown, LagSeconds: in.Seconds,
	}
}

var readsTopicSettings = need{operation: auth.DescribeConfigs, kind: auth.Topic, param: "topic"}

// TopicConfigs is all settings of a topic.
type TopicConfigs struct {
	Configs []TopicConfig `json:"configs" csv:"rows" doc:"by name"`
}

// TopicConfig is a setting that a topic can have.
type TopicConfig struct {
	Name    string   `json:"name"`
	Value   string   `json:"value" doc:"that holds"`
	Default string   `json:"default" doc:"that holds if the topic has none of its own: the broker's"`
	Set     bool     `json:"set" doc:"it was set for this topic"`
	OneOf   []string `json:"oneOf" doc:"the values that it can have, each of them if it is a list; empty if they are not counted"`
	Doc     string   `json:"doc"`
}

// topicConfigs lists the settings that a topic has, and what they would be by default.
func (a *api) topicConfigs(c *call, _ *None) (*TopicConfigs, error) {
	image, name := a.reads.Image(), c.param("topic")
	t := image.Topic(name)
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", name)
	}
	out := &TopicConfigs{Configs: []TopicConfig{}}
	for _, d := range config.TopicDefs() {
		_, set := t.Set[d.Name]
		if d.Inert && !set {
			continue // It means nothing here.
		}
		out.Configs = append(out.Configs, TopicConfig{
			Name: d.Name, Value: config.TopicValue(image.Config, t.Set, d.Name), Default: config.TopicValue(image.Config, nil, d.Name),
			Set: set, OneOf: some(d.OneOf), Doc: d.Doc,
		})
	}
	return out, nil
}

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
	sort.SliceStable(own.Groups, func(i, j int) bool { return own.Groups[i].Name < own.Groups[j].Name })
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
