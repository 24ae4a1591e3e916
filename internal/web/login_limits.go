package web

import (
	"net/http"

	"muster/internal/web/login"
	"muster/internal/web/problem"
	"muster/internal/web/server"
)

// Where nobody logs in, everybody who reaches the address is a stranger. On this machine
// that is whoever may use it; from others they may read how things are, and no more,
// unless muster.http.anonymous says that they may.
const (
	strangersOnlyRead  = "there is no login here, so people of other machines may only read; create a user, or set muster.http.anonymous to full"
	strangersSeeNoData = "there is no login here, so people of other machines do not see what is in records; create a user, or set muster.http.anonymous to full"
	nobodyMay          = "log in first"
)

// mayAct returns the problem of somebody who may change nothing here, whatever rights
// there are.
func (a *api) mayAct(c *call) error {
	if why := a.whyNotAct(c); why != "" {
		return &problem.Problem{Status: http.StatusForbidden, Code: "read_only", Message: why}
	}
	return nil
}

// maySeeRecords returns the problem of somebody who may not see what is in records,
// whatever rights there are.
func (a *api) maySeeRecords(c *call) error {
	if why := a.whyNoRecords(c); why != "" {
		return &problem.Problem{Status: http.StatusForbidden, Code: "no_records", Message: why}
	}
	return nil
}

func (a *api) whyNotAct(c *call) string { return a.whyNot(c, strangersOnlyRead) }

func (a *api) whyNoRecords(c *call) string { return a.whyNot(c, strangersSeeNoData) }

func (a *api) whyNot(c *call, stranger string) string {
	if c.note != nil {
		return "" // The broker that they asked knows whether they are strangers.
	}
	switch wanted := a.gate.WantsLogin(); {
	case wanted && c.login == login.None:
		return nobodyMay
	case !wanted && !a.full && (a.far || isFar(c.request)):
		return stranger
	}
	return ""
}

// isFar says whether a request that came to a loopback address is somebody else's: a proxy
// says so, or it was sent to a name that is not this machine's for itself.
func isFar(r *http.Request) bool {
	return r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" || !server.IsLocalName(server.HostOf(r.Host))
}
