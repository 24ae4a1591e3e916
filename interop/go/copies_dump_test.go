package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// dump writes what a run that failed has left in the logs of partitions to a file
// beside the brokers' logs: its records, its transactions and its offsets.
func (r *copyRun) dump() error {
	file, err := os.Create(filepath.Join(os.Getenv("INTEROP_LOGS"), r.name+".dump"))
	if err != nil {
		return err
	}
	defer file.Close()
	for _, topic := range []string{"__transaction_state", "__consumer_offsets", r.out()} {
		if err := r.dumpTopic(file, topic); err != nil {
			fmt.Fprintln(file, err)
		}
	}
	return nil
}

func (r *copyRun) dumpTopic(file *os.File, topic string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	ends, err := endsOf(ctx, strings.Join(r.addrs, ","), topic, kgo.ReadUncommitted())
	if err != nil {
		return err
	}
	from := map[int32]kgo.Offset{}
	for p := range ends {
		from[p] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.addrs...), kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(ends) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if text := r.describe(topic, rec); text != "" {
				fmt.Fprintf(file, "%s %s-%d@%d leader epoch %d, producer %d epoch %d, transactional %t: %s\n", rec.Timestamp.Format(time.StampMicro),
					topic, rec.Partition, rec.Offset, rec.LeaderEpoch, rec.ProducerID, rec.ProducerEpoch, rec.Attrs.IsTransactional(), text)
			}
			if rec.Offset+1 >= ends[rec.Partition] {
				delete(ends, rec.Partition)
			}
		})
	}
	return nil
}

// describe says what a record is about, if it may be of the run.
func (r *copyRun) describe(topic string, rec *kgo.Record) string {
	if rec.Attrs.IsControl() {
		return fmt.Sprintf("control %x", rec.Key)
	}
	switch topic {
	case r.out():
		return string(rec.Value)
	case "__transaction_state":
		var key kmsg.TxnMetadataKey
		var value kmsg.TxnMetadataValue
		if key.ReadFrom(rec.Key) != nil || value.ReadFrom(rec.Value) != nil || !strings.HasPrefix(key.TransactionalID, r.name) {
			return ""
		}
		return fmt.Sprintf("%s %+v", key.TransactionalID, value)
	}
	var offset kmsg.OffsetCommitKey
	if offset.ReadFrom(rec.Key) == nil && offset.Version < 2 && offset.Group == r.name {
		var value kmsg.OffsetCommitValue
		err := value.ReadFrom(rec.Value)
		return fmt.Sprintf("%s-%d is at %d, %v", offset.Topic, offset.Partition, value.Offset, err)
	}
	var group kmsg.GroupMetadataKey
	if group.ReadFrom(rec.Key) != nil || group.Version != 2 || group.Group != r.name {
		return ""
	}
	var value kmsg.GroupMetadataValue
	err := value.ReadFrom(rec.Value)
	text := fmt.Sprintf("generation %d, %v:", value.Generation, err)
	for _, m := range value.Members {
		var a kmsg.ConsumerMemberAssignment
		_ = a.ReadFrom(m.Assignment)
		text += fmt.Sprintf(" %s %v", m.MemberID, a.Topics)
	}
	return text
}
