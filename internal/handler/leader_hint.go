package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
)

// leaderHint is who leads a partition that this broker did not serve, so that a
// client need not ask for metadata first (KIP-951).
type leaderHint struct {
	metadata.Partition
	broker   *metadata.Broker
	endpoint metadata.Endpoint
}

// hint returns who leads a partition after an error that says that the client
// asked the wrong broker, or with an old leader epoch; false after any other
// error, and if no one better is known.
func (h *Handler) hint(listener, topic string, index int32, err *kerr.Error) (out leaderHint, ok bool) {
	if err == nil || err != kerr.NotLeaderForPartition && err != kerr.FencedLeaderEpoch {
		return out, false
	}
	image := h.opts.Controller.Image()
	t := image.Topic(topic)
	if t == nil || index < 0 || int(index) >= len(t.Partitions) {
		return out, false
	}
	out.Partition = t.Partitions[index]
	if out.Leader == h.opts.NodeID && err == kerr.NotLeaderForPartition {
		return out, false // It cannot lead now, though it should.
	}
	if out.broker = image.Broker(out.Leader); out.broker == nil {
		return out, false
	}
	out.endpoint, ok = out.broker.Endpoint(listener)
	return out, ok
}
