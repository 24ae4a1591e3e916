package web

import (
	"time"

	"muster/internal/web/login"
)

// Session is who somebody is here, and what is open to them.
type Session struct {
	User        *string    `json:"user" doc:"who is logged in; null without a login"`
	Login       string     `json:"login" doc:"how: none, basic, cookie or bearer"`
	LoginWanted bool       `json:"loginWanted" doc:"whoever wants to know anything else has to log in"`
	Ways        []string   `json:"ways" doc:"how people can log in: password, oidc"`
	Ends        *time.Time `json:"ends" doc:"when the login ends by itself; null if it does not"`
	May         Abilities  `json:"may" doc:"what is open to them; rights decide the rest"`
	ReadOnly    *string    `json:"readOnly" doc:"why they may change nothing, as a sentence; null if they may"`
}

// Abilities is what is open to somebody, as far as their rights go.
type Abilities struct {
	Act     bool `json:"act" doc:"to change anything"`
	Records bool `json:"records" doc:"to see what is in records"`
}

// session tells people who they are.
func (a *api) session(c *call, _ *None) (*Session, error) {
	out := &Session{User: c.user(), Login: c.login, LoginWanted: a.gate.WantsLogin(), Ways: []string{}, Ends: known(c.ends)}
	if out.LoginWanted {
		out.Ways = append(out.Ways, "password")
	}
	if out.LoginWanted && a.gate.Issuer() != nil {
		out.Ways = append(out.Ways, login.WayOIDC)
	}
	out.May.Records = a.whyNoRecords(c) == ""
	why := a.whyNotAct(c)
	if out.May.Act = why == ""; why != "" {
		out.ReadOnly = &why
	}
	return out, nil
}

// opened has a route want no login.
func opened(r route) route {
	r.open = true
	return r
}
