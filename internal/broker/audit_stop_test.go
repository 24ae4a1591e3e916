package broker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"muster/internal/audit"
	"muster/internal/broker"
)

// TestAnAuditLogThatStopsWithoutItsStoreTellsWhatIsLost has the store fail for good when
// the broker stops, as a Redis does that dies first.
func TestAnAuditLogThatStopsWithoutItsStoreTellsWhatIsLost(t *testing.T) {
	var log bytes.Buffer
	b := start(t, nil, func(c *broker.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	b.StopAuditWithoutStore()
	if log.Len() > 0 {
		t.Errorf("of nothing it tells\n%s", &log)
	}
	denied := audit.Entry{Kind: audit.Denied, Principal: "User:eve", Operation: "READ", Resources: []audit.Resource{{Type: "topic", Name: "orders"}}}
	b.StopAuditWithoutStore(audit.Entry{Kind: audit.TopicDeleted, Principal: "User:ann"})
	if n := strings.Count(log.String(), "User:ann deleted"); n != 1 || !strings.Contains(log.String(), "count=1\n") {
		t.Errorf("of one it tells\n%s", &log)
	}
	log.Reset()
	b.StopAuditWithoutStore(denied, audit.Entry{Kind: audit.RuleAdded, Principal: "User:ann"}, denied, denied)
	for _, want := range []string{"User:eve was denied READ on topic orders\"", "User:ann added", "orders; 2 times", "count=3\n"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s is not once in\n%s", want, &log)
		}
	}
}

// TestTheAuditKeepsRoomForWhatMattersMore fills the queue with what somebody can do as often
// as they like, while the store does not answer.
func TestTheAuditKeepsRoomForWhatMattersMore(t *testing.T) {
	found := start(t, nil).AuditQueue(func(yield func(audit.Entry) bool) {
		for _, kind := range []audit.Kind{audit.OffsetsSet, audit.Denied, audit.LoginFailed, audit.Login, audit.RuleAdded} {
			for range 20_000 {
				if !yield(audit.Entry{Kind: kind}) {
					return
				}
			}
		}
	})
	if found[audit.OffsetsSet] == 0 || found[audit.RuleAdded] == 20_000 || found[audit.Denied] == 0 || found[audit.LoginFailed] == 0 || found[audit.RuleAdded] < 100 {
		t.Errorf("there is room for %v", found)
	}
}
