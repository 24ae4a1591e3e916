package source

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"muster"
	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
	"muster/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type line struct {
	time time.Time
	text string
}

// A journal may have several partitions, each of which is in order of time by itself.
func TestEntriesOfSeveralPartitionsComeInOrderOfTime(t *testing.T) {
	b, err := muster.Start(t.Context(), muster.Config{})
	assert.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	flags := &cli.Flags{Brokers: []string{b.Addr()}}
	j := &Journal[line]{
		Topic: "some-journal", ErrNone: errors.New("there is none"), name: "the journal",
		parse: func(r *kgo.Record) (line, error) { return line{r.Timestamp, string(r.Value)}, nil },
		time:  func(l *line) time.Time { return l.time },
	}
	if _, err := j.Read(t.Context(), flags, time.Time{}); err != j.ErrNone {
		t.Fatalf("without the topic: %v", err)
	}

	const partitions = 3
	client, err := flags.Connect(t.Context(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	assert.Must(t, err)
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, j.Topic); err != nil {
		t.Fatal(err)
	}
	began := time.UnixMilli(1_700_000_000_000)
	for i, key := range []string{"a", "b", "c", "d", "b", "a"} {
		r := &kgo.Record{Topic: j.Topic, Partition: journal.PartitionFor(key, partitions), Key: []byte(key), Value: []byte(key), Timestamp: began.Add(time.Duration(i) * time.Second)}
		assert.Must(t, client.ProduceSync(t.Context(), r).FirstErr())
	}
	read := func(since time.Time, keys ...string) string {
		t.Helper()
		lines, err := j.Read(t.Context(), flags, since, keys...)
		assert.Must(t, err)
		var out []string
		for _, l := range lines {
			out = append(out, l.text)
		}
		return strings.Join(out, " ")
	}
	for want, got := range map[string]string{
		"a b c d b a": read(began), "d b a": read(began.Add(3 * time.Second)), "a a": read(began, "a"), "b c b": read(began, "b", "c"), "": read(began.Add(time.Hour)),
	} {
		assert.Equal(t, got, want)
	}
}
