package records

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"muster"
	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnescapeRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{`\`, `\q`, `\x`, `\x4`, `\xzz`} {
		if got, err := unescape(text); err == nil {
			t.Errorf("unescape(%q) = %q", text, got)
		}
	}
}

// newConsumer starts a broker with a topic that has the given records, and makes a
// consumer of it that prints values into a buffer.
func newConsumer(t *testing.T, topic string, values ...string) (*consumer, *bytes.Buffer) {
	t.Helper()
	b, err := muster.Start(t.Context(), muster.Config{})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	flags := cli.Flags{Brokers: []string{b.Addr()}}
	client, err := flags.Connect(t.Context(), append(source.ConsumerOptions(kgo.ReadUncommitted()),
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.GzipCompression()))...)
	must(t, err)
	t.Cleanup(client.Close)
	var out bytes.Buffer
	c := &consumer{
		client: client, admin: kadm.NewClient(client), topics: []string{topic},
		write: func(r *kgo.Record) error { _, err := fmt.Fprintf(&out, "%s\n", r.Value); return err },
		flush: func() error { return nil },
		warn:  func(format string, args ...any) { t.Logf(format, args...) },
		ids:   map[string]kadm.TopicID{}, reading: map[source.TopicPartition]*span{},
	}
	if _, err := c.admin.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(v)})
	}
	must(t, client.ProduceSync(t.Context(), records...).FirstErr())
	return c, &out
}

func TestConsumeFollowsPartitionsThatAreAdded(t *testing.T) {
	c, out := newConsumer(t, "a")
	c.follow, c.limit = true, 1
	must(t, c.open(t.Context(), from{}))
	if _, err := c.admin.CreatePartitions(t.Context(), 1, "a"); err != nil {
		t.Fatal(err)
	}
	for len(c.reading) == 1 {
		must(t, c.discover(t.Context()))
	}
	must(t, c.client.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Partition: 1, Value: []byte("new")}).FirstErr())
	must(t, c.run(t.Context()))
	assert.Equal(t, out.String(), "new\n", "the output is %q", out)

	if _, err := c.admin.DeleteTopic(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		err = c.discover(t.Context())
	}
	assert.Equal(t, err.Error(), `there is no topic "a"`, "the error after a deletion is %v", err)
}

func TestConsumeStopsWhenItsTopicIsAnother(t *testing.T) {
	c, _ := newConsumer(t, "a")
	c.follow = true
	must(t, c.open(t.Context(), from{}))
	c.ids["a"] = kadm.TopicID{1}
	if err := c.discover(t.Context()); err == nil || err.Error() != "topic a was deleted and created again" {
		t.Errorf("the error is %v", err)
	}
}

func TestConsumeEndsThoughRecordsWereDeletedMeanwhile(t *testing.T) {
	c, out := newConsumer(t, "a", "1", "2", "3")
	var deleted kadm.Offsets
	deleted.Add(kadm.Offset{Topic: "a", At: 3})
	if _, err := c.admin.DeleteRecords(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	// The consumer believes in the offsets 0 to 3, as it did before.
	assign := map[string]map[int32]kgo.Offset{}
	c.assign(assign, source.TopicPartition{Topic: "a", Partition: 0}, 0, 3)
	c.client.AddConsumePartitions(assign)
	must(t, c.run(t.Context()))
	assert.True(t, out.Len() == 0, "the output is %q", out)
}

func TestNextRecordFindsTheRecordOrTheEnd(t *testing.T) {
	c, _ := newConsumer(t, "a", "1", "2", "3")
	topics, err := c.admin.ListTopics(t.Context(), "a")
	must(t, err)
	for offset := range int64(4) {
		next, err := c.nextRecord(t.Context(), source.TopicPartition{Topic: "a", Partition: 0}, topics["a"].ID, 1, offset)
		assert.True(t, err == nil && next == offset, "the next record from %d on is %d, %v", offset, next, err)
	}
	if _, err := c.nextRecord(t.Context(), source.TopicPartition{Topic: "a", Partition: 0}, topics["a"].ID, 1, 99); err == nil {
		t.Error("an offset beyond the end is no error")
	}
}
