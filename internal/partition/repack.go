package partition

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

// producerCompression is the compression.type that keeps batches as they came.
const producerCompression = "producer"

// repack returns a validated batch packed as compression.type wants it. What the
// broker writes for itself stays as it is, and where records are kept one by one
// there is nothing to pack.
func (p *Partition) repack(b record.Batch, cfg *config.Topic) (record.Batch, Appended) {
	if cfg.Compression == producerCompression || metadata.IsInternal(p.topic) {
		return b, Appended{}
	}
	codec, ok := record.ParseCodec(cfg.Compression)
	if !ok || cfg.Traits.Records {
		return b, Appended{}
	}
	packed, err := b.Repack(record.Packing{Codec: codec, Level: cfg.CompressLevel}, int(cfg.MaxMessageBytes))
	switch {
	case errors.Is(err, record.ErrTooLarge):
		return nil, refused(kerr.MessageTooLarge, fmt.Sprintf("compressed with %s, as compression.type wants it, the record batch has more bytes than the %d that the topic allows (max.message.bytes)", cfg.Compression, cfg.MaxMessageBytes))
	case err != nil:
		return nil, refused(kerr.CorruptMessage, err.Error())
	}
	return packed, Appended{}
}
