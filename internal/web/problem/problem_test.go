package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"muster/internal/auth"
)

// What the Kafka protocol refuses has a status, with the right that lacks and when to try
// again.
func TestWhatKafkaRefusesHasAStatus(t *testing.T) {
	lacks := &auth.Request{Principal: "User:ann", Operation: auth.Create, Type: auth.Topic, Name: "x"}
	for code, want := range map[int16]int{
		29: 403, 30: 403, 31: 403, 53: 403, 3: 404, 69: 404, 91: 404, 100: 404, 25: 404, 36: 409, 68: 409, 86: 409, 89: 429, 10: 413, -1: 500,
		17: 400, 37: 400, 40: 400, 42: 400, 44: 400, 6: 503, 7: 503, 14: 503, 15: 503, 16: 503, 56: 503,
	} {
		p := Of(fmt.Errorf("an act: %w", &Refused{Code: code, Name: "NAME", Message: "a sentence", Lacks: lacks, Command: "a command", Wait: 1500 * time.Millisecond}))
		if p.Status != want || p.Message != "a sentence" || p.Kafka != "NAME" || (p.MissingACL != nil) != (want == 403) || (p.RetryAfter == 2) != (want == 429) {
			t.Errorf("%d: %+v", code, p)
		}
		if acl := p.MissingACL; acl != nil && *acl != (MissingACL{Principal: "User:ann", Operation: "CREATE", ResourceType: "TOPIC", ResourceName: "x", Command: "a command"}) {
			t.Errorf("%d: %+v", code, acl)
		}
	}
}

func TestOtherErrorsHaveAStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{&Elsewhere{What: "x", Broker: 2}, 421, "other_broker"},
		{&Elsewhere{What: "x", Broker: -1}, 503, "unavailable"},
		{context.DeadlineExceeded, 503, "unavailable"},
		{errors.New("something broke"), 500, "internal"},
		{Busy(), 503, "busy"},
		{BadRequest("%d", 1), 400, "bad_request"},
		{NotFound("it"), 404, "not_found"},
		{Conflict("it"), 409, "conflict"},
	} {
		if p := Of(c.err); p.Status != c.status || p.Code != c.code || p.Message == "" {
			t.Errorf("%v: %+v", c.err, p)
		}
	}
}

func TestAProblemIsWrittenAsJSON(t *testing.T) {
	w := httptest.NewRecorder()
	Write(w, NotFound("there is no group %q", "<a>"))
	var got map[string]string
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 404 || w.Header().Get("Content-Type") != JSON || len(got) != 2 || got["message"] != `there is no group "<a>"` {
		t.Errorf("%d %v %s (%v)", w.Code, w.Header(), w.Body, err)
	}
}
