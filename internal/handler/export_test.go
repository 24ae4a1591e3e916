package handler

import (
	"muster/internal/audit"
	"muster/internal/quota"
)

// SetFar makes the store one far away, whose records may take so much memory.
func (h *Handler) SetFar(records int) {
	h.opts.RemoteStore = true
	h.records.free = records
}

// FreeRecords returns how much memory records may still take.
func (h *Handler) FreeRecords() int { return h.records.free }

// Who returns the principal and the host of a request from somewhere.
func Who(origin Origin) (principal, host string) {
	c := &call{origin: origin}
	return string(c.principal()), c.host()
}

// SetAudit has the handler tell of changes.
func (h *Handler) SetAudit(told func(audit.Entry)) { h.opts.Audit = told }

// SetBuckets bounds how many clients are remembered for their quotas.
func (h *Handler) SetBuckets(n int) {
	h.limits.known, h.limits.made = quota.NewBook(n, bucketBytes), quota.NewBook(n, bucketBytes)
}

// Sessions returns how many fetch sessions there are.
func (h *Handler) Sessions() int { return len(h.sessions.byID) }

// QuotaLimit is what a quota means for a kind.
var QuotaLimit = quotaLimit

// Audits says whether the audit is told what requests of a key change.
func Audits(key int16) bool { return changes[key] != nil }
