package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster/internal/watch/groupview"
	"muster/internal/web/act"
	"muster/internal/web/problem"
	"muster/internal/words"
)

func (a *api) produce(c *call, _ *None, r *NewRecord) (*Produced, error) {
	topic := c.param("topic")
	m, err := r.message()
	if err != nil {
		return nil, err
	}
	partition, offset, err := a.acts.Produce(c.ctx(), c.asker(), topic, m)
	if err != nil {
		return nil, err
	}
	return &Produced{topic, partition, Offset(offset)}, nil
}

// message decodes a record.
func (r *NewRecord) message() (*act.Message, error) {
	decode := func(what string, text *string) ([]byte, error) {
		switch {
		case text == nil:
			return nil, nil
		case r.Encoding == "" || r.Encoding == "text":
			return []byte(*text), nil
		case r.Encoding == "base64":
			out, err := base64.StdEncoding.DecodeString(*text)
			if err != nil {
				return nil, problem.BadRequest("%s is not base64: %v", what, err)
			}
			return append([]byte{}, out...), nil // Empty is not none.
		}
		return nil, problem.BadRequest("encoding is text or base64, not %q", r.Encoding)
	}
	if r.Partition != nil && *r.Partition < 0 {
		return nil, problem.BadRequest("partition is a number from 0 on, not %d", *r.Partition)
	}
	out := &act.Message{Partition: r.Partition}
	var err error
	if out.Key, err = decode("key", r.Key); err != nil {
		return nil, err
	}
	if out.Value, err = decode("value", r.Value); err != nil {
		return nil, err
	}
	for i := range r.Headers {
		value, err := decode(fmt.Sprintf("header %q", r.Headers[i].Key), r.Headers[i].Value)
		if err != nil {
			return nil, err
		}
		out.Headers = append(out.Headers, act.MessageHeader{Key: r.Headers[i].Key, Value: value})
	}
	return out, nil
}

func (a *api) deleteRecords(c *call, q *ActQuery, r *RecordsBefore) (*Done, error) {
	topic := c.param("topic")
	before := map[int32]int64{}
	for _, p := range r.Partitions {
		if _, twice := before[p.Partition]; twice {
			return nil, problem.BadRequest("partition %d is named twice", p.Partition)
		}
		if p.Offset < -1 || p.Partition < 0 {
			return nil, problem.BadRequest("partition %d before %d: neither is negative, but for -1 as the offset, which means the end", p.Partition, p.Offset)
		}
		before[p.Partition] = int64(p.Offset)
	}
	if len(before) == 0 {
		return nil, problem.BadRequest("say in which partitions")
	}
	if q.Preview {
		return a.previewDeleteRecords(c, topic, before)
	}
	if leaders := a.leadersOf(c, topic, before); len(leaders) > 1 {
		return a.deleteRecordsOfAll(c, topic, leaders, len(before))
	}
	return a.deleteRecordsHere(c, topic, before)
}

// deleteRecordsHere deletes records of partitions that this broker leads.
func (a *api) deleteRecordsHere(c *call, topic string, before map[int32]int64) (*Done, error) {
	starts, err := a.acts.DeleteRecords(c.ctx(), c.asker(), topic, before)
	if err != nil {
		return nil, partly(err, len(starts), len(before))
	}
	out := deletedRecords(topic, len(starts))
	for _, i := range slices.Sorted(maps.Keys(starts)) {
		out.Sentences = append(out.Sentences, fmt.Sprintf("Partition %d begins at offset %d now.", i, starts[i]))
	}
	return tellSome(out, len(starts)), nil
}

func deletedRecords(topic string, partitions int) *Done {
	return done("Records of %s of topic %q were deleted.", words.Plural(partitions, "partition"), topic)
}

// leadersOf sorts partitions by who leads them, if the brokers of a fleet can be asked for
// that. A partition that is not there, or that no one leads, is this broker's to refuse.
func (a *api) leadersOf(c *call, topic string, before map[int32]int64) map[int32]map[int32]int64 {
	t := a.reads.Image().Topic(topic)
	if a.fleet == nil || c.note != nil || t == nil {
		return nil
	}
	out := map[int32]map[int32]int64{}
	for i, offset := range before {
		if int(i) >= len(t.Partitions) || t.Partitions[i].Leader < 0 {
			return nil
		}
		leader := t.Partitions[i].Leader
		if out[leader] == nil {
			out[leader] = map[int32]int64{}
		}
		out[leader][i] = offset
	}
	return out
}

// deleteRecordsOfAll has each broker delete what it leads, one after the other. What one of
// them refuses ends it.
func (a *api) deleteRecordsOfAll(c *call, topic string, leaders map[int32]map[int32]int64, all int) (*Done, error) {
	out := deletedRecords(topic, all)
	did := 0
	for _, leader := range slices.Sorted(maps.Keys(leaders)) {
		before := leaders[leader]
		remove := a.deleteRecordsHere
		if leader != a.reads.Node() {
			remove = func(c *call, topic string, before map[int32]int64) (*Done, error) {
				return a.deleteRecordsThere(c, topic, leader, before)
			}
		}
		got, err := remove(c, topic, before)
		if err != nil {
			return nil, partly(err, did, all)
		}
		did += len(before)
		out.Sentences = append(out.Sentences, got.Sentences[1:]...)
	}
	return tellSome(out, all), nil
}

// deleteRecordsThere has another broker delete records of partitions that it leads.
func (a *api) deleteRecordsThere(c *call, topic string, leader int32, before map[int32]int64) (*Done, error) {
	var ask RecordsBefore
	for _, i := range slices.Sorted(maps.Keys(before)) {
		ask.Partitions = append(ask.Partitions, PartitionOffset{i, Offset(before[i])})
	}
	some := *c
	var err error
	if some.body, err = json.Marshal(&ask); err != nil {
		return nil, err
	}
	_, body, err := a.passOn(&some, &problem.Elsewhere{What: fmt.Sprintf("%s of topic %q", words.Plural(len(before), "partition"), topic), Broker: leader})
	if err != nil {
		return nil, err
	}
	out := &Done{}
	if err := json.Unmarshal(body, out); err != nil || len(out.Sentences) == 0 {
		return nil, errors.New(unreadable)
	}
	return out, nil
}

// tellSome leaves out what is too much to read of what was done in partitions.
func tellSome(d *Done, partitions int) *Done {
	if partitions > maxTold {
		d.Sentences = append(d.Sentences[:maxTold+1], fmt.Sprintf("And so on in %d more.", partitions-maxTold))
	}
	return d
}

// maxTold is how many partitions have a sentence each.
const maxTold = 50

// partly says that something was done before it was refused.
func partly(err error, did, of int) error {
	p := problem.Of(err)
	if did > 0 && did < of {
		p.Message = fmt.Sprintf("in %d of %d partitions it was done, in the others not: %s", did, of, p.Message)
	}
	return p
}

func (a *api) previewDeleteRecords(c *call, topic string, before map[int32]int64) (*Done, error) {
	if err := a.allowed(c, []need{deletesTopic}); err != nil {
		return nil, err
	}
	t := a.reads.Image().Topic(topic)
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", topic)
	}
	for i := range before {
		if int(i) >= len(t.Partitions) {
			return nil, problem.NotFound("topic %q has no partition %d; it has %s", topic, i, words.Plural(len(t.Partitions), "partition"))
		}
	}
	effect := a.readersOf(c, topic)
	effect.Partitions = len(before)
	places, err := a.addRecords(c, effect, t, before)
	if err != nil {
		return nil, err
	}
	out := preview(fmt.Sprintf("%s of %s of topic %q would be deleted.", words.Capital(effect.lost()), words.Plural(len(before), "partition"), topic))
	if effect.Records == nil {
		out.Sentences[0] = fmt.Sprintf("The records before these offsets in %s of topic %q would be deleted.", words.Plural(len(before), "partition"), topic)
	}
	if n := len(effect.Groups) + effect.MoreGroups; n > 0 {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s read the topic or have read it, and do not get those that they have not read yet: %s.", words.Plural(n, "group"), words.ListSome(effect.Groups, n)))
	}
	out.Sentences = append(out.Sentences, effect.doubts()...)
	out.Effect, out.Refused = effect, beyondEnd(topic, before, places)
	switch {
	case t.Internal:
		out.Refused = fmt.Sprintf("topic %q is internal", topic)
	case !t.Config.Delete:
		out.Refused = fmt.Sprintf("the cleanup.policy of topic %q does not delete", topic)
	}
	return out, nil
}

// beyondEnd says which of some offsets the Kafka protocol would refuse; empty if none.
func beyondEnd(topic string, before map[int32]int64, places map[groupview.TopicPartition]act.Place) string {
	for _, i := range slices.Sorted(maps.Keys(before)) {
		if p, known := places[groupview.TopicPartition{Topic: topic, Partition: i}]; known && before[i] > p.End {
			return fmt.Sprintf("offset %d lies beyond the end of partition %d of topic %q, which is %d", before[i], i, topic, p.End)
		}
	}
	return ""
}
