package interop

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/redistest"
)

func TestTransactionsAreNotForLayoutStream(t *testing.T) {
	onlyOn(t, "redis")
	b := startMuster(t, "--store", redistest.Single(t).URL(), "--set", "muster.redis.prefix="+redistest.Prefix(t), "--listen", "127.0.0.1:0")
	createTopic(t, b.addr(), "out", 2, "muster.redis.layout", "stream")
	for name, opts := range transactionVersions {
		cl := transactional(t, b.addr(), name, opts...)
		if err := tryTransaction(t.Context(), cl, kgo.TryCommit, "a"); !errors.Is(err, kerr.UnsupportedForMessageFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A batch is refused with a reason that says what to do.
	w := dial(t, b.addr())
	id := "x"
	req := produceRequest("out", 0, -1, batch{values: values("a", 1), idempotent: true, producer: 7, attributes: 0x10}.encode())
	req.TransactionID = &id
	got := produced(t, ask[*kmsg.ProduceResponse](w, req))
	if got.ErrorCode != kerr.UnsupportedForMessageFormat.Code || !strings.Contains(text(got.ErrorMessage), "muster.redis.layout=indexed") {
		t.Errorf("error %d, %s", got.ErrorCode, text(got.ErrorMessage))
	}
	createTopic(t, b.addr(), "in", 2)
	createTopic(t, b.addr(), "log", 2, "muster.redis.layout", "log")
	cl := transactional(t, b.addr(), "y", kgo.DefaultProduceTopic("log"))
	inTransaction(t, cl, kgo.TryCommit, "a1", "a2")
	wantTopic(t, b.addr(), "log", kgo.ReadCommitted(), "a1", "a2")
}
