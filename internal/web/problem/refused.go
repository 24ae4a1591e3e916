package problem

import (
	"math"
	"net/http"
	"time"

	"muster/internal/auth"
)

// Kafka's error codes that mean something over HTTP.
const (
	codeUnknown           = -1
	codeNoPartition       = 3
	codeTimedOut          = 7
	codeMessageTooLarge   = 10
	codeUnknownMember     = 25
	codeTopicDenied       = 29
	codeGroupDenied       = 30
	codeClusterDenied     = 31
	codeTopicExists       = 36
	codeTransactionDenied = 53
	codeNonEmptyGroup     = 68
	codeNoGroup           = 69
	codeSubscribed        = 86
	codeQuotaExceeded     = 89
	codeNoResource        = 91
	codeNoTopicID         = 100
)

// passing are the codes of what another try may mend: leaders that change, coordinators that
// load, a store that is away.
var passing = map[int16]bool{5: true, 6: true, codeTimedOut: true, 13: true, 14: true, 15: true, 16: true, 19: true, 20: true, 41: true, 56: true}

// Refused is what the Kafka protocol refuses.
type Refused struct {
	Code    int16  // Kafka's
	Name    string // Kafka's, as in TOPIC_ALREADY_EXISTS
	Message string // a sentence
	// Lacks is the right that lacks, and Command gives it.
	Lacks   *auth.Request
	Command string
	// Wait is how long to wait before trying again, if a quota is exceeded.
	Wait time.Duration
}

func (e *Refused) Error() string { return e.Message }

// refusal turns what the Kafka protocol refuses into what is answered over HTTP.
func refusal(e *Refused) *Problem {
	p := &Problem{Status: http.StatusBadRequest, Code: "bad_request", Message: e.Message, Kafka: e.Name}
	switch e.Code {
	case codeTopicDenied, codeGroupDenied, codeClusterDenied, codeTransactionDenied:
		p.Status, p.Code = http.StatusForbidden, "forbidden"
		if q := e.Lacks; q != nil {
			p.MissingACL = &MissingACL{string(q.Principal), q.Operation.String(), q.Type.String(), q.Name, e.Command}
		}
	case codeNoPartition, codeNoGroup, codeNoResource, codeNoTopicID, codeUnknownMember:
		p.Status, p.Code = http.StatusNotFound, "not_found"
	case codeTopicExists, codeNonEmptyGroup, codeSubscribed:
		p.Status, p.Code = http.StatusConflict, "conflict"
	case codeQuotaExceeded:
		p.Status, p.Code, p.RetryAfter = http.StatusTooManyRequests, "quota_exceeded", int(math.Ceil(max(e.Wait, time.Second).Seconds()))
	case codeMessageTooLarge:
		p.Status, p.Code = http.StatusRequestEntityTooLarge, "too_large"
	case codeUnknown:
		p.Status, p.Code = http.StatusInternalServerError, "internal"
	}
	if passing[e.Code] {
		p.Status, p.Code = http.StatusServiceUnavailable, "unavailable"
	}
	return p
}

// Conflict says what stands against it.
func Conflict(message string) *Problem {
	return &Problem{Status: http.StatusConflict, Code: "conflict", Message: message}
}
