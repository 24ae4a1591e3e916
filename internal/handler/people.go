package handler

import (
	"time"

	"muster/internal/auth"
	"muster/internal/quota"
)

// Allowed says whether someone who comes by another way than the Kafka protocol may do
// something, by the rules of this moment, and which command would allow it if not. The
// denial is logged as others are; to audit it is the caller's.
func (h *Handler) Allowed(q auth.Request) (ok bool, command string) {
	if h.Sees(q) {
		return true, ""
	}
	rules := h.opts.Controller.Image().Rules
	h.logDenial(rules, q)
	return false, rules.Why(q).Fix
}

// Sees says the same of one thing among many, of which those that are denied are left
// out, and logs nothing.
func (h *Handler) Sees(q auth.Request) bool {
	image := h.opts.Controller.Image()
	return !image.Authorizes() || image.Rules.Allows(q)
}

// Readings counts what someone reads of records without a Fetch against their quota of
// bytes (consumer_byte_rate).
type Readings struct {
	h     *Handler
	share *share // nil for no quota
}

// Readings returns those of someone at a client.
func (h *Handler) Readings(who auth.Principal, clientID string) *Readings {
	image := h.opts.Controller.Image()
	if image.Quotas == nil {
		return &Readings{h: h}
	}
	return &Readings{h, h.shareOf(image, quota.Fetched, who.Name(), clientID)}
}

// Room returns how much of what someone wants to read they may read now, or how long they
// have to wait before they may read anything.
func (r *Readings) Room(want int) (n int, wait time.Duration) {
	if r.share == nil {
		return want, 0
	}
	n, wait = r.share.room(want)
	if wait > 0 && r.h.opts.Throttled != nil {
		r.h.opts.Throttled(quota.Fetched, wait)
	}
	return n, wait
}

// Take counts what was read.
func (r *Readings) Take(n int) { r.share.take(n) }
