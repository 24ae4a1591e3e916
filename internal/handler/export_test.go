package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

// SetFar makes the store one far away, whose records may take so much memory.
func (h *Handler) SetFar(records int) {
	h.opts.Far = true
	h.records.free = records
}

// FreeRecords returns how much memory records may still take.
func (h *Handler) FreeRecords() int { return h.records.free }

// Who returns the principal and the host of a request from somewhere.
func Who(origin Origin) (principal, host string) {
	c := &call{origin: origin}
	return string(c.principal()), c.host()
}

// FromBroker says whether a request from somewhere is taken for that of a broker, where the
// cluster has a secret.
func FromBroker(origin Origin, req kmsg.Request, secret string) bool {
	c := &call{origin: origin, req: req, image: &metadata.Image{Secret: secret}}
	return c.fromBroker()
}
