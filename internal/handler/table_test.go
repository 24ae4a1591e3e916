package handler

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/protocol"
)

var rewrite = flag.Bool("rewrite", false, "write what a test finds out of date")

const compatibilityDoc = "../../docs/compatibility.md"

func TestTableIsSortedAndWithinWhatKmsgKnows(t *testing.T) {
	assert.True(t, slices.IsSortedFunc(table, func(a, b Entry) int { return int(a.Key) - int(b.Key) }), "the table is not in the order of keys")
	for _, e := range table {
		req := kmsg.RequestForKey(e.Key)
		if req == nil || e.Max > req.MaxVersion() || e.Min > e.Max || e.serveMin() > e.Max {
			t.Errorf("%s: versions %d to %d, kmsg knows up to %d", e.Name(), e.Min, e.Max, req.MaxVersion())
		}
		if (e.serve == nil) == (e.raw == nil) {
			t.Errorf("%s has not exactly one handler", e.Name())
		}
	}
}

// TestRequestsAreThoseOfTheTable compares what can be decoded with what is served. Brokers ask
// themselves for producer ids, and streams groups are only in the table of some builds.
func TestRequestsAreThoseOfTheTable(t *testing.T) {
	for key := range int16(200) {
		req := protocol.NewRequest(key)
		switch {
		case req == nil:
			assert.True(t, entryForBroker(key) == nil, "%s is served, and package protocol cannot decode it", kmsg.NameForKey(key))
		case req.Key() != key:
			t.Errorf("the request of key %d is %T", key, req)
		case !slices.Contains([]int16{67, 88, 89}, key):
			assert.True(t, entryForBroker(key) != nil, "package protocol has %T, which is not served", req)
		}
	}
	assert.True(t, protocol.NewRequest(-1) == nil, "there is a request of key -1")
}

// compatibility renders the document from the table.
func compatibility() []byte {
	var b bytes.Buffer
	b.WriteString(`# Compatibility

muster speaks the Kafka protocol. This table is generated from the handler table
(` + "`internal/handler/table.go`" + `, ` + "`make generate`" + `) and checked by the tests; ApiVersions
tells clients the same.

The rights are those that a client needs where there is an authorizer, with the error
code that it gets without. "Else left out" means that the answer has no trace of it.

| key | API | versions | rights | notes |
|----:|-----|----------|--------|-------|
`)
	for _, e := range table {
		versions := fmt.Sprintf("%d–%d", e.Min, e.Max)
		if e.serveMin() > e.Min {
			versions += fmt.Sprintf(" (served from %d)", e.serveMin())
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", e.Key, e.Name(), versions, e.Needs(), e.Note)
	}
	b.WriteString(`
## Not served

- **Version 1 of the streams protocol** (keys 88 and 89), which has warm-up tasks; see
  [streams groups](streams-groups.md).
- **Transactions in topics of the Redis layout ` + "`stream`" + `.** Producers get
  UNSUPPORTED_FOR_MESSAGE_FORMAT there; see [transactions](transactions.md).
- **Message formats v0 and v1.** A batch in one of them is rejected with
  INVALID_RECORD and a message that says so. Every client since Kafka 0.11 sends v2.
- **Replication.** A partition has one replica, with the broker that leads it. Brokers
  that share a Redis accept a replication factor up to their number, which changes
  nothing: what is replicated is what Redis replicates.

## Where muster is stricter than Kafka

- **Internal topics** (` + "`__consumer_offsets`" + `, ` + "`__group_journal`" + ` and the other names that
  muster keeps for itself) can be read by every user who may read topics of their names. Clients cannot create, delete or
  grow them, produce to them or delete their records, and the settings
  that they need (` + "`cleanup.policy`" + `, ` + "`max.message.bytes`" + ` …) cannot be altered. Kafka
  allows some of this, and loses offsets by it.

An unsupported version of ApiVersions is answered with a version 0 response and
error 35, so that the client can try again. An unsupported version of anything
else, or an unknown key, ends the connection, as in Kafka.
`)
	return b.Bytes()
}

func TestCompatibilityDocIsCurrent(t *testing.T) {
	want := compatibility()
	if *rewrite {
		assert.Must(t, os.WriteFile(compatibilityDoc, want, 0o644))
	}
	got, err := os.ReadFile(compatibilityDoc)
	assert.Must(t, err)
	assert.True(t, bytes.Equal(got, want), "%s is out of date; make generate writes it", compatibilityDoc)
}
