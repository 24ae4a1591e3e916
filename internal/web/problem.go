package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// The problems that a client can do something about.

func badRequest(format string, args ...any) *Problem {
	return &Problem{status: http.StatusBadRequest, Code: "bad_request", Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *Problem {
	return &Problem{status: http.StatusNotFound, Code: "not_found", Message: fmt.Sprintf(format, args...)}
}

// busy says that there is no room for the request now.
func busy() *Problem {
	return &Problem{status: http.StatusServiceUnavailable, Code: "busy", Message: "the broker answers as many requests as it may; try again"}
}

func unavailable(message string) *Problem {
	return &Problem{status: http.StatusServiceUnavailable, Code: "unavailable", Message: message}
}

// ElsewhereError says that another broker has what was asked for.
type ElsewhereError struct {
	What   string
	Broker int32  // -1 if no broker has it now.
	Why    string // Why that one was not asked, if it should have been.
}

func (e *ElsewhereError) Error() string {
	if e.Broker < 0 {
		return e.What + " has no broker now; try again"
	}
	if e.Why != "" {
		return fmt.Sprintf("broker %d has %s; ask it, since this one cannot: %s", e.Broker, e.What, e.Why)
	}
	return fmt.Sprintf("broker %d has %s; ask it", e.Broker, e.What)
}

// problemOf turns an error into what is answered.
func problemOf(err error) *Problem {
	var p *Problem
	var elsewhere *ElsewhereError
	var refused *RefusedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &elsewhere) && elsewhere.Broker < 0:
		return unavailable(err.Error())
	case errors.As(err, &elsewhere):
		return &Problem{status: http.StatusMisdirectedRequest, Code: "other_broker", Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable("the answer took too long")
	}
	return &Problem{status: http.StatusInternalServerError, Code: "internal", Message: err.Error()}
}
