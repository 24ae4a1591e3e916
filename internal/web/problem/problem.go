// Package problem is why a request over HTTP has no answer, and how that is written: a status,
// a word for programs and a sentence for people. What the Kafka protocol refuses, and what
// another broker has to be asked for, becomes a problem here and nowhere else.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// BadRequest says what is wrong with a request.
func BadRequest(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: "bad_request", Message: fmt.Sprintf(format, args...)}
}

// NotFound says that there is no such thing.
func NotFound(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "not_found", Message: fmt.Sprintf(format, args...)}
}

// Busy says that there is no room for the request now.
func Busy() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Code: "busy", Message: "the broker answers as many requests as it may; try again"}
}

// Unavailable says why another try may succeed.
func Unavailable(message string) *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: message}
}

// Elsewhere is the error that another broker has what was asked for.
type Elsewhere struct {
	What   string
	Broker int32  // -1 if no broker has it now.
	Why    string // Why that one was not asked, if it should have been.
}

func (e *Elsewhere) Error() string {
	if e.Broker < 0 {
		return e.What + " has no broker now; try again"
	}
	if e.Why != "" {
		return fmt.Sprintf("broker %d has %s; ask it, since this one cannot: %s", e.Broker, e.What, e.Why)
	}
	return fmt.Sprintf("broker %d has %s; ask it", e.Broker, e.What)
}

// Of turns an error into what is answered.
func Of(err error) *Problem {
	var p *Problem
	var elsewhere *Elsewhere
	var refused *Refused
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &elsewhere) && elsewhere.Broker < 0:
		return Unavailable(err.Error())
	case errors.As(err, &elsewhere):
		return &Problem{Status: http.StatusMisdirectedRequest, Code: "other_broker", Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable("the answer took too long")
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal", Message: err.Error()}
}
