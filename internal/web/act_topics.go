package web

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"muster/internal/metadata"
	"muster/internal/watch/groupview"
	"muster/internal/web/act"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
	"muster/internal/words"
)

// done is what was done, in sentences.
func done(format string, args ...any) *Done {
	return &Done{Done: true, Sentences: []string{fmt.Sprintf(format, args...)}}
}

// preview is what would be done, in sentences.
func preview(sentences ...string) *Done { return &Done{Sentences: sentences} }

func (a *api) createTopic(c *call, q *ActQuery, t *act.NewTopic) (*Done, error) {
	only := q.Preview || t.ValidateOnly
	if t.Name == "" {
		return nil, problem.BadRequest("the topic needs a name")
	}
	partitions, err := a.acts.CreateTopic(c.ctx(), c.asker(), t, only)
	if err != nil {
		return nil, err
	}
	with := ""
	if partitions > 0 {
		with = " with " + words.Plural(int(partitions), "partition")
	}
	if only {
		return preview(fmt.Sprintf("Topic %q would be created%s.", t.Name, with)), nil
	}
	return done("Topic %q was created%s.", t.Name, with), nil
}

func (a *api) deleteTopic(c *call, q *ActQuery, _ *Nothing) (*Done, error) {
	name := c.param("topic")
	if q.Preview {
		return a.previewDeleteTopic(c, name)
	}
	if err := a.acts.DeleteTopic(c.ctx(), c.asker(), name); err != nil {
		return nil, err
	}
	return done("Topic %q was deleted.", name), nil
}

func (a *api) previewDeleteTopic(c *call, name string) (*Done, error) {
	if err := a.allowed(c, []need{deletesTopic}); err != nil {
		return nil, err
	}
	image := a.reads.Image()
	t := image.Topic(name)
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", name)
	}
	effect := a.readersOf(c, name)
	effect.Partitions = len(t.Partitions)
	if _, err := a.addRecords(c, effect, t, nil); err != nil {
		return nil, err
	}
	effect.Bytes = a.bytesOf(t)
	out := preview(fmt.Sprintf("Topic %q would be deleted with its %s and %s.", name, words.Plural(len(t.Partitions), "partition"), effect.lost()))
	out.Effect = effect
	if n := len(effect.Groups) + effect.MoreGroups; n > 0 {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s read it or have read it, and would lose what they have committed there: %s.", words.Plural(n, "group"), words.ListSome(effect.Groups, n)))
	}
	if effect.Members > 0 {
		out.Sentences = append(out.Sentences, fmt.Sprintf("These have %s now, who would rebalance or fail.", words.Plural(effect.Members, "member")))
	}
	out.Sentences = append(out.Sentences, effect.doubts()...)
	switch {
	case t.Internal:
		out.Refused = fmt.Sprintf("topic %q is internal", name)
	case !image.Config.Bool("delete.topic.enable"):
		out.Refused = "delete.topic.enable is false"
	}
	return out, nil
}

// maxEffectGroups is how many groups are named that something concerns.
const maxEffectGroups = 20

// readersOf finds the groups that something about a topic concerns, at all brokers of a
// fleet. Who did not answer is named.
func (a *api) readersOf(c *call, topic string) *Effect {
	out := &Effect{Groups: []string{}}
	members := map[string]int{}
	for _, g := range readers(a.reads.Snapshot(), topic, a.groupsSeen(c)) {
		members[g.Name] = g.Members
	}
	if others := a.others(c); len(others) > 0 {
		answers, silent := askOthers[TopicDetail](a, c, others, fleet.Question{URI: Prefix + "/topics/" + url.PathEscape(topic)})
		out.Incomplete = silent
		for _, t := range answers {
			out.MoreGroups += t.answer.MoreGroups
			for i := range t.answer.Groups {
				g := &t.answer.Groups[i]
				members[g.Name] = max(members[g.Name], g.Members) // One that has just moved is there twice.
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out.Members += members[name]
		if len(out.Groups) < maxEffectGroups {
			out.Groups = append(out.Groups, name)
		} else {
			out.MoreGroups++
		}
	}
	return out
}

// doubts says that there may be more groups than are named.
func (e *Effect) doubts() []string {
	if len(e.Incomplete) == 0 {
		return nil
	}
	var brokers []string
	for _, s := range e.Incomplete {
		brokers = append(brokers, strconv.Itoa(int(s.Broker)))
	}
	return []string{fmt.Sprintf("There may be more groups that read it: broker %s did not answer.", words.List(brokers))}
}

// addRecords counts the records that would be lost: those before offsets, or all. It returns
// where the partitions begin and end, as far as that is known.
func (a *api) addRecords(c *call, e *Effect, t *metadata.Topic, before map[int32]int64) (map[groupview.TopicPartition]act.Place, error) {
	var of []groupview.TopicPartition
	for i := range t.Partitions {
		if _, named := before[int32(i)]; named || before == nil {
			of = append(of, groupview.TopicPartition{Topic: t.Name, Partition: int32(i)})
		}
	}
	places, err := a.acts.Offsets(c.ctx(), c.asker(), of, nil)
	if err != nil {
		return nil, err
	}
	sum, known := int64(0), true
	for _, tp := range of {
		p, ok := places[tp]
		to := p.End
		if before != nil && before[tp.Partition] >= 0 {
			to = min(before[tp.Partition], p.End)
		}
		known = known && ok && p.Dense
		sum += max(to-p.Start, 0)
	}
	if known {
		e.Records = &sum
	}
	return places, nil
}

// bytesOf is how large a topic was when it was last looked at; nil if this broker does not
// lead all of it.
func (a *api) bytesOf(t *metadata.Topic) *int64 {
	sum := int64(0)
	for _, p := range partitionsOf(t, a.reads.Snapshot()) {
		if p.Bytes == nil {
			return nil
		}
		sum += *p.Bytes
	}
	return &sum
}

// lost words the records that would be lost.
func (e *Effect) lost() string {
	out := "all records"
	if e.Records != nil {
		out = "about " + words.Plural(int(*e.Records), "record")
	}
	if e.Bytes != nil {
		out += ", " + words.Size(*e.Bytes)
	}
	return out
}

func (a *api) addPartitions(c *call, q *ActQuery, more *MorePartitions) (*Done, error) {
	name := c.param("topic")
	if more.Count < 1 {
		return nil, problem.BadRequest("count is how many partitions there are afterwards")
	}
	before := 0
	if t := a.reads.Image().Topic(name); t != nil {
		before = len(t.Partitions)
	}
	if err := a.acts.AddPartitions(c.ctx(), c.asker(), name, more.Count, q.Preview); err != nil {
		return nil, err
	}
	if !q.Preview {
		return done("Topic %q has %s now.", name, words.Plural(int(more.Count), "partition")), nil
	}
	out := preview(
		fmt.Sprintf("Topic %q would have %s in place of %d.", name, words.Plural(int(more.Count), "partition"), before),
		"Records go to other partitions by their keys from then on, so that those of a key are no longer all in one. Partitions cannot be taken away again.",
	)
	out.Effect = a.readersOf(c, name)
	out.Effect.Partitions = int(more.Count) - before
	if n := out.Effect.Members; n > 0 {
		out.Sentences = append(out.Sentences, fmt.Sprintf("Groups that read it rebalance: %s in %s.", words.Plural(n, "member"), words.Plural(len(out.Effect.Groups)+out.Effect.MoreGroups, "group")))
	}
	out.Sentences = append(out.Sentences, out.Effect.doubts()...)
	return out, nil
}

func (a *api) alterTopic(c *call, q *ActQuery, change *act.ChangedConfigs) (*Done, error) {
	name := c.param("topic")
	if len(change.Set)+len(change.Delete) == 0 {
		return nil, problem.BadRequest("say what to set or delete")
	}
	seen := map[string]bool{}
	for _, setting := range change.Delete {
		if _, set := change.Set[setting]; set || seen[setting] {
			return nil, problem.BadRequest("%s is named twice", setting)
		}
		seen[setting] = true
	}
	t := a.reads.Image().Topic(name) // As it was before.
	if err := a.acts.AlterTopic(c.ctx(), c.asker(), name, change, q.Preview); err != nil {
		return nil, err
	}
	if !q.Preview {
		return done("%s of topic %q changed.", words.Plural(len(change.Set)+len(change.Delete), "setting"), name), nil
	}
	out := preview()
	for _, setting := range slices.Sorted(maps.Keys(change.Set)) {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s would become %s%s.", setting, change.Set[setting], wasSet(t, setting)))
		out.Sentences = append(out.Sentences, costOf(setting, change.Set[setting])...)
	}
	for _, setting := range change.Delete {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s would be as by default%s.", setting, wasSet(t, setting)))
	}
	return out, nil
}

// wasSet says what a setting of a topic is.
func wasSet(t *metadata.Topic, setting string) string {
	if t == nil {
		return ""
	}
	if value, set := t.Set[setting]; set {
		return "; it is " + value
	}
	return "; it is as by default"
}

// costOf says which records a setting deletes.
func costOf(setting, value string) []string {
	switch {
	case setting == "retention.ms" && value != "-1":
		if ms, err := time.ParseDuration(value + "ms"); err == nil {
			return []string{fmt.Sprintf("Records that are older than %s are deleted soon after.", words.Duration(ms))}
		}
	case setting == "retention.bytes" && value != "-1":
		return []string{fmt.Sprintf("The oldest records of partitions that are larger than %s bytes are deleted soon after.", value)}
	case setting == "cleanup.policy":
		return []string{"What is deleted by another policy does not come back."}
	}
	return nil
}
