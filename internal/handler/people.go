package handler

import "muster/internal/auth"

// Allowed says whether somebody who comes by another way than the Kafka protocol may do
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
