package trail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/watch/writer"
)

// withoutStore is an audit log whose topic cannot be created.
func withoutStore(log io.Writer, dropped *int) *Trail {
	return New(Options{
		Writer: writer.Options{
			Topic:       func(string) *metadata.Topic { return nil },
			CreateTopic: func(context.Context, string) error { return errors.New("there is no store") },
			Dropped: func(n int) {
				if dropped != nil {
					*dropped += n
				}
			},
			Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		Node: func() int32 { return 1 },
	})
}

// What does not fit, and what cannot be written, is counted, and the next entry says how much
// was left out.
func TestEntriesThatAreLeftOutAreCounted(t *testing.T) {
	dropped := 0
	a := withoutStore(io.Discard, &dropped)
	for a.Free() > 0 {
		a.put(audit.Entry{})
	}
	a.put(audit.Entry{})
	assert.True(t, dropped == 1 && a.leftOut == 1, "%d are dropped, and the next entry says that %d are left out", dropped, a.leftOut)
	dropped = 0
	a = withoutStore(io.Discard, &dropped)
	a.Offer(make([]audit.Entry, 3))
	ended, end := context.WithCancel(t.Context())
	end()
	a.Journal.Run(ended)
	assert.Equal(t, dropped, 3, "that cannot be written are dropped")
}

// What is told of logins, denials and acts over HTTP says who, from where and how.
func TestEntriesSayWhoCameFromWhereAndHow(t *testing.T) {
	a := withoutStore(io.Discard, nil)
	var got []audit.Entry
	a.Lost = func(entries []audit.Entry, _ error) { got = append(got, entries...) }
	a.Login("User:ann", "10.0.0.1", "PLAIN", nil)
	a.Login("User:eve", "10.0.0.2", "PLAIN", errors.New("wrong password"))
	a.Denied(auth.Request{Principal: "User:eve", Host: "10.0.0.2", Operation: auth.Read, Type: auth.Topic, Name: "orders"})
	a.HTTP(audit.Entry{Kind: audit.TopicDeleted, Principal: "User:ann", Host: "10.0.0.1"})
	ended, end := context.WithCancel(t.Context())
	end()
	a.Run(ended)
	want := []audit.Entry{
		{Kind: audit.Login, Via: audit.ViaKafka, Broker: 1, Principal: "User:ann", Host: "10.0.0.1", Mechanism: "PLAIN"},
		{Kind: audit.LoginFailed, Via: audit.ViaKafka, Broker: 1, Principal: "User:eve", Host: "10.0.0.2", Mechanism: "PLAIN", Reason: "wrong password"},
		{Kind: audit.Denied, Via: audit.ViaKafka, Broker: 1, Principal: "User:eve", Host: "10.0.0.2", Operation: "READ", Resources: []audit.Resource{{Type: "topic", Name: "orders"}}, ResourceN: 1},
		{Kind: audit.TopicDeleted, Via: audit.ViaHTTP, Broker: 1, Principal: "User:ann", Host: "10.0.0.1"},
	}
	assert.MustEqual(t, len(got), len(want), "told are %+v", got)
	for i := range want {
		assert.False(t, got[i].Time.IsZero(), "entry %d has no time", i)
		if got[i].Time = (time.Time{}); fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			t.Errorf("told is %+v, want %+v", got[i], want[i])
		}
	}
}

// No log takes what it is told, and tells no one.
func TestWithoutAnAuditLogNothingIsTold(t *testing.T) {
	var none *Trail
	none.Denied(auth.Request{})
	none.HTTP(audit.Entry{})
	none.Run(t.Context())
	assert.True(t, none.Changed() == nil, "changes are told")
}

// TestAnAuditLogThatStopsWithoutItsStoreTellsWhatIsLost has the store fail for good when
// the broker stops, as a Redis does that dies first.
func TestAnAuditLogThatStopsWithoutItsStoreTellsWhatIsLost(t *testing.T) {
	var log bytes.Buffer
	stop := func(entries ...audit.Entry) {
		a := withoutStore(&log, nil)
		for _, e := range entries {
			a.tell(e)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		a.Run(ended)
	}
	stop()
	if log.Len() > 0 {
		t.Errorf("of nothing it tells\n%s", &log)
	}
	denied := audit.Entry{Kind: audit.Denied, Principal: "User:eve", Operation: "READ", Resources: []audit.Resource{{Type: "topic", Name: "orders"}}}
	stop(audit.Entry{Kind: audit.TopicDeleted, Principal: "User:ann"})
	if n := strings.Count(log.String(), "User:ann deleted"); n != 1 || !strings.Contains(log.String(), "count=1\n") {
		t.Errorf("of one it tells\n%s", &log)
	}
	log.Reset()
	stop(denied, audit.Entry{Kind: audit.RuleAdded, Principal: "User:ann"}, denied, denied)
	for _, want := range []string{"User:eve was denied READ on topic orders\"", "User:ann added", "orders; 2 times", "count=3\n"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s is not once in\n%s", want, &log)
		}
	}
}

// TestTheAuditKeepsRoomForWhatMattersMore fills the queue with what someone can do as often
// as they like, while the store does not answer.
func TestTheAuditKeepsRoomForWhatMattersMore(t *testing.T) {
	a, found := withoutStore(io.Discard, nil), map[audit.Kind]int{}
	for _, kind := range []audit.Kind{audit.OffsetsSet, audit.Denied, audit.LoginFailed, audit.Login, audit.RuleAdded} {
		for range 20_000 {
			if a.put(audit.Entry{Kind: kind}); a.leftOut == 0 {
				found[kind]++
			}
		}
	}
	if found[audit.OffsetsSet] == 0 || found[audit.RuleAdded] == 20_000 || found[audit.Denied] == 0 || found[audit.LoginFailed] == 0 || found[audit.RuleAdded] < 100 {
		t.Errorf("there is room for %v", found)
	}
}
