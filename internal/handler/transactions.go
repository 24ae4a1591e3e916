package handler

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// holds says whether a topic can hold transactions, and if not why.
func (h *Handler) holds(t *metadata.Topic) (*kerr.Error, string) {
	if t.Config.Traits.Transactions || metadata.IsInternal(t.Name) {
		return nil, ""
	}
	return kerr.UnsupportedForMessageFormat, fmt.Sprintf(
		"topic %q is kept as Redis streams, which cannot hold transactions; create it with muster.redis.layout=%s", t.Name, config.TransactionalLayout)
}

// keepStart keeps the start of a transaction among tagged fields, and the run of the store,
// outside of the frame, and drops the others.
func keepStart(tags *kmsg.Tags) {
	start, run := machine.TxnStartOf(tags), machine.StoreRunOf(tags)
	*tags = kmsg.Tags{}
	start.Set(tags)
	run.Set(tags)
}
