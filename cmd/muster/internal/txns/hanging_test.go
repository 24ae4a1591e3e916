package txns

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster"
	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
)

// A transaction hangs if no coordinator ends it in its partition: that another producer's goes
// on there says nothing of it.
func TestATransactionHangsIfNoCoordinatorHasItThere(t *testing.T) {
	b, err := muster.Start(t.Context(), muster.Config{})
	assert.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	flags := &cli.Flags{Brokers: []string{b.Addr()}}
	client, err := flags.Connect(t.Context(), kgo.TransactionalID("goes-on"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AllowAutoTopicCreation())
	assert.Must(t, err)
	defer client.Close()
	assert.Must(t, client.BeginTransaction())
	assert.Must(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}).FirstErr())
	admin, err := connect(t.Context(), flags)
	assert.Must(t, err)
	defer admin.Close()
	open, err := openTxns(t.Context(), admin, "orders", 0)
	assert.MustTrue(t, err == nil && len(open) == 1, "open are %+v (%v)", open, err)
	unknown, elsewhere := open[0], open[0]
	unknown.ProducerID += 1000
	elsewhere.Partition = 1
	all := []openTxn{open[0], unknown, elsewhere}
	hangs := func(older time.Duration) (out []bool) {
		t.Helper()
		assert.Must(t, judge(t.Context(), admin, all, older, time.Now()))
		for _, x := range all {
			out = append(out, x.hangs)
		}
		return out
	}
	assert.EqualSlices(t, hangs(0), []bool{false, true, true}, "hanging")
	if all[0].TransactionalID != "goes-on" || all[1].TransactionalID != "" {
		t.Errorf("their ids are %q and %q", all[0].TransactionalID, all[1].TransactionalID)
	}
	if got := hangs(time.Hour); slices.Contains(got, true) {
		t.Errorf("hanging since an hour are %v", got)
	}
}
