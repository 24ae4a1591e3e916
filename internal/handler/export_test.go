package handler

// SetFar makes the store one far away, whose records may take so much memory.
func (h *Handler) SetFar(records int) {
	h.opts.Far = true
	h.records.free = records
}

// FreeRecords returns how much memory records may still take.
func (h *Handler) FreeRecords() int { return h.records.free }

// Audits says whether the audit is told what requests of a key change.
func Audits(key int16) bool { return changes[key] != nil }
