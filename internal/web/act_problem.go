package web

import (
	"math"
	"net/http"
	"time"
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

// refusal turns what the Kafka protocol refuses into what is answered over HTTP.
func refusal(e *RefusedError) *Problem {
	p := &Problem{status: http.StatusBadRequest, Code: "bad_request", Message: e.Message, Kafka: e.Name}
	switch e.Code {
	case codeTopicDenied, codeGroupDenied, codeClusterDenied, codeTransactionDenied:
		p.status, p.Code = http.StatusForbidden, "forbidden"
		if q := e.Lacks; q != nil {
			p.MissingACL = &MissingACL{string(q.Principal), q.Operation.String(), q.Type.String(), q.Name, e.Command}
		}
	case codeNoPartition, codeNoGroup, codeNoResource, codeNoTopicID, codeUnknownMember:
		p.status, p.Code = http.StatusNotFound, "not_found"
	case codeTopicExists, codeNonEmptyGroup, codeSubscribed:
		p.status, p.Code = http.StatusConflict, "conflict"
	case codeQuotaExceeded:
		p.status, p.Code, p.RetryAfter = http.StatusTooManyRequests, "quota_exceeded", int(math.Ceil(max(e.Wait, time.Second).Seconds()))
	case codeMessageTooLarge:
		p.status, p.Code = http.StatusRequestEntityTooLarge, "too_large"
	case codeUnknown:
		p.status, p.Code = http.StatusInternalServerError, "internal"
	}
	if passing[e.Code] {
		p.status, p.Code = http.StatusServiceUnavailable, "unavailable"
	}
	return p
}

func conflict(message string) *Problem {
	return &Problem{status: http.StatusConflict, Code: "conflict", Message: message}
}
