package handler

import (
	"muster/internal/metadata"
	"muster/internal/meter"
	"muster/internal/record"
)

// Traffic of topics is counted once for each partition of a request, when its outcome is
// known. Only topics that exist are counted: clients could make up any number of others.

// producedBatch is a batch that is counted when it is known what became of it. The
// frame that it came in is gone by then.
type producedBatch struct {
	topic          *meter.Topic // nil if it is not counted
	records, bytes int
}

// countProduced has a batch be counted.
func (h *Handler) countProduced(image *metadata.Image, name string, records []byte, o *produceOutcome) {
	t := image.Topic(name)
	if h.opts.Topics == nil || t == nil {
		return
	}
	o.counted = producedBatch{topic: h.opts.Topics.Of(t.Name), bytes: len(records)}
	if len(records) >= record.HeaderSize {
		o.counted.records = int(record.Batch(records).Count())
	}
}

// count counts the batch of an outcome that is known.
func (o *produceOutcome) count(conn uint32) {
	switch b := &o.counted; {
	case b.topic == nil:
	case o.result.Err != nil:
		b.topic.Refused(conn)
	default:
		b.topic.Produced(conn, b.records, b.bytes)
	}
}

// count counts what was read. Partitions of a topic come together mostly, and are added
// together.
func (f *fetchRead) count() {
	if f.h.opts.Topics == nil {
		return
	}
	for from := 0; from < len(f.parts); {
		topic, to, failed, bytes := f.parts[from].topic, from, 0, 0
		for ; to < len(f.parts) && f.parts[to].topic == topic; to++ {
			r := &f.parts[to].result
			bytes += r.Records.Len
			if r.Err != nil {
				failed++
			}
		}
		if t := f.c.image.Topic(topic); t != nil {
			f.h.opts.Topics.Of(t.Name).Fetched(f.c.origin.Number, to-from, failed, bytes)
		}
		from = to
	}
}
