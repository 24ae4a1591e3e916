package act

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/record"
)

// produceVersion is the last version that names topics.
const produceVersion = 12

// Produce appends a record, and returns where it is.
func (a *Acts) Produce(ctx context.Context, who Asker, topic string, m *Message) (partition int32, offset int64, err error) {
	partition = a.partitionFor(topic, m)
	if err := a.ledElsewhere(who, auth.Write, topic, []int32{partition}); err != nil {
		return 0, 0, err
	}
	rec := record.Record{Timestamp: time.Now().UnixMilli(), Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		rec.Headers = append(rec.Headers, record.Header{Key: h.Key, Value: h.Value})
	}
	batch, err := record.Build(record.PlainTemplate(), []record.Record{rec})
	if err != nil {
		return 0, 0, err
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = produceVersion, -1, actTimeout
	t, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	t.Topic, p.Partition, p.Records = topic, partition, batch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	o, err := request[*kmsg.ProduceResponse](ctx, a, who, req)
	if err != nil {
		return 0, 0, err
	}
	if len(o.answer.Topics) != 1 || len(o.answer.Topics[0].Partitions) != 1 {
		return 0, 0, errNoOutcome
	}
	done := &o.answer.Topics[0].Partitions[0]
	if err := o.failed(done.ErrorCode, produceMessage(done), produceWords(topic, partition, done.ErrorCode)); err != nil {
		return 0, 0, err
	}
	a.tell(who, audit.Entry{Kind: audit.RecordProduced, Request: kmsg.NameForKey(req.Key()), Resources: []audit.Resource{
		{Type: audit.TypeTopic, Name: topic, Detail: fmt.Sprintf("partition %d offset %d", partition, done.BaseOffset)},
	}})
	return partition, done.BaseOffset, nil
}

// produceMessage is what is wrong with the record, rather than with its batch.
func produceMessage(p *kmsg.ProduceResponseTopicPartition) *string {
	if len(p.ErrorRecords) > 0 && p.ErrorRecords[0].ErrorMessage != nil {
		return p.ErrorRecords[0].ErrorMessage
	}
	return p.ErrorMessage
}

func produceWords(topic string, partition int32, code int16) string {
	if code == kerr.UnknownTopicOrPartition.Code {
		return fmt.Sprintf("there is no topic %q with a partition %d", topic, partition)
	}
	return ""
}

// partitionFor chooses where a record goes: by the hash of its key as Kafka's own clients
// do, and without a key to any partition that this broker leads.
func (a *Acts) partitionFor(topic string, m *Message) int32 {
	t := a.Image().Topic(topic)
	switch {
	case m.Partition != nil:
		return *m.Partition
	case t == nil:
		return 0 // The handler says that there is no such topic, or that it is none of theirs.
	case m.Key != nil:
		return int32(kgo.StickyKeyPartitioner(nil).ForTopic(topic).Partition(&kgo.Record{Topic: topic, Key: m.Key}, len(t.Partitions)))
	}
	var here []int32
	for i := range t.Partitions {
		if t.Partitions[i].Leader == a.Node() {
			here = append(here, int32(i))
		}
	}
	if len(here) == 0 {
		return anyLed(t)
	}
	return here[rand.IntN(len(here))]
}

// anyLed returns the first partition that has a leader.
func anyLed(t *metadata.Topic) int32 {
	for i := range t.Partitions {
		if t.Partitions[i].Leader >= 0 {
			return int32(i)
		}
	}
	return 0
}

// tell tells the audit log of something that the handler does not.
func (a *Acts) tell(who Asker, e audit.Entry) {
	e.Principal, e.Host, e.ClientID = string(who.Principal), who.Host, ClientID
	a.Audit(e)
}
