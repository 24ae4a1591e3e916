package txns

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster"
	"muster/cmd/muster/internal/cli"
)

// A transaction hangs if no coordinator ends it in its partition: that another producer's goes
// on there says nothing of it.
func TestATransactionHangsIfNoCoordinatorHasItThere(t *testing.T) {
	b, err := muster.Start(t.Context(), muster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	flags := &cli.Flags{Brokers: []string{b.Addr()}}
	client, err := flags.Connect(t.Context(), kgo.TransactionalID("goes-on"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	admin, err := connect(t.Context(), flags)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	open, err := openTxns(t.Context(), admin, "orders", 0)
	if err != nil || len(open) != 1 {
		t.Fatalf("open are %+v (%v)", open, err)
	}
	unknown, elsewhere := open[0], open[0]
	unknown.ProducerID += 1000
	elsewhere.Partition = 1
	all := []openTxn{open[0], unknown, elsewhere}
	hangs := func(older time.Duration) (out []bool) {
		t.Helper()
		if err := judge(t.Context(), admin, all, older, time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			out = append(out, x.hangs)
		}
		return out
	}
	if got := hangs(0); !slices.Equal(got, []bool{false, true, true}) {
		t.Errorf("hanging are %v", got)
	}
	if all[0].TransactionalID != "goes-on" || all[1].TransactionalID != "" {
		t.Errorf("their ids are %q and %q", all[0].TransactionalID, all[1].TransactionalID)
	}
	if got := hangs(time.Hour); slices.Contains(got, true) {
		t.Errorf("hanging since an hour are %v", got)
	}
}
