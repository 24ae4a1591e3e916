package handler_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/meter"
	"muster/internal/quota"
)

// TestTrafficOfTopicsIsCounted compares what is counted with what clients send and get.
func TestTrafficOfTopicsIsCounted(t *testing.T) {
	w := newWorld(t)
	topics := &meter.Topics{}
	w.opts.Topics = topics
	w.h = handler.New(w.opts)
	one := uint64(len(batch(t, 3)))
	var want meter.Traffic
	check := func(what string) {
		t.Helper()
		assert.Equal(t, topics.Read("t"), want, "%s", what)
	}
	for v := int16(3); v <= 13; v++ {
		w.request(w.produceRequest(v, 0, 1))
		want.Produced, want.Records, want.BytesIn = want.Produced+2, want.Records+6, want.BytesIn+2*one
	}
	check("produced")
	w.request(w.produceRequest(9, 1000)) // There is no such partition.
	bad := w.produceRequest(9, 0)
	bad.Topics[0].Partitions[0].Records = []byte("no batch")
	w.request(bad)
	want.Produced, want.Refused = want.Produced+2, 2
	check("refused")
	fetch := limitedFetch(0, -1)
	fetch.MinBytes, fetch.MaxWaitMillis = 0, 0
	got := records(w.request(fetch).(*kmsg.FetchResponse))
	want.Fetched, want.BytesOut = 1, uint64(got)
	check("fetched")
	assert.Equal(t, got, 11*int(one), "bytes are fetched")
	fetch.Topics[0].Partitions[0].FetchOffset = 1 << 40
	w.request(fetch)
	want.Fetched, want.Failed = 2, 1
	check("out of range")
	strange := w.produceRequest(9, 0)
	strange.Topics[0].Topic = "made-up"
	w.request(strange)
	fetch.Topics[0].Topic = "made-up"
	w.request(fetch)
	assert.Equal(t, topics.Read("made-up"), meter.Traffic{}, "a topic is counted that does not exist")
	check("in the end")
}

func TestWaitsForQuotasAreTold(t *testing.T) {
	w := newLimited(t)
	waits := map[quota.Kind]time.Duration{}
	w.opts.Throttled = func(k quota.Kind, wait time.Duration) { waits[k] += wait }
	w.h = handler.New(w.opts)
	w.produce("alice", "app")
	assert.Equal(t, len(waits), 0, "without quotas: %v", waits)
	w.set("alice", "-", metadata.ProducerByteRate, 1)
	wait, _ := w.produce("alice", "app")
	assert.True(t, wait != 0 && waits[quota.Produced] == wait && len(waits) == 1, "told %v, waits %s", waits, wait)
	w.set("bob", "-", metadata.ConsumerByteRate, 1)
	_, _, first := w.ask("bob", "app", limitedFetch(0, -1))
	_, _, second := w.ask("bob", "app", limitedFetch(0, -1))
	assert.True(t, first+second != 0 && waits[quota.Fetched] == first+second, "told %v, waits %s", waits, first+second)
}
