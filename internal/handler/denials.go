package handler

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"muster/internal/auth"
)

const (
	// denialEvery is how often one denial is logged: a client that is denied
	// something tries again, many times a second.
	denialEvery = time.Minute
	// maxDenials is how many lines there are in that time, whatever clients ask for.
	maxDenials = 200
)

// denials remembers which denials were logged.
type denials struct {
	mu     sync.Mutex
	logged map[auth.Request]*list.Element
	order  *list.List // of loggedDenial, the oldest first
	more   int        // that were not logged for want of room
}

type loggedDenial struct {
	of auth.Request
	at time.Time
}

// denied notes that the client may not do something.
func (c *call) denied(rules *auth.Index, q auth.Request) {
	switch {
	case c.origin.Denied != nil:
		c.origin.Denied(q)
	case c.h.opts.Denied != nil:
		c.h.opts.Denied(q)
	}
	c.h.logDenial(rules, q)
}

// logDenial logs a denial with the command that would allow it.
func (h *Handler) logDenial(rules *auth.Index, q auth.Request) {
	more, ok := h.denials.admit(q, h.opts.Now())
	if !ok {
		return
	}
	why := rules.Why(q)
	args := []any{"why", why.Sentence}
	if why.Fix != "" {
		args = append(args, "allow_with", why.Fix)
	}
	if more > 0 {
		args = append(args, "not_logged", more)
	}
	h.opts.Logger.Warn("a request was denied", args...)
}

// admit says whether a denial is to be logged now, and how many of others were not
// since the last that was. It matters not from which host someone asks.
func (d *denials) admit(q auth.Request, now time.Time) (more int, ok bool) {
	q.Host = ""
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.order == nil {
		d.logged, d.order = map[auth.Request]*list.Element{}, list.New()
	}
	for e := d.order.Front(); e != nil && now.Sub(e.Value.(loggedDenial).at) >= denialEvery; e = d.order.Front() {
		delete(d.logged, d.order.Remove(e).(loggedDenial).of)
	}
	switch {
	case d.logged[q] != nil:
		return 0, false
	case len(d.logged) >= maxDenials:
		d.more++
		return 0, false
	}
	q.Name = strings.Clone(q.Name) // It may be part of something large.
	d.logged[q] = d.order.PushBack(loggedDenial{q, now})
	more, d.more = d.more, 0
	return more, true
}
