package record

import "fmt"

// ErrInvalid says that a batch is whole but not one that a producer may send.
var ErrInvalid = fmt.Errorf("invalid record batch")

// ValidateProduced checks a batch that a client wants appended: beyond Check,
// what Kafka asks of producers. It looks at the header only.
func (b Batch) ValidateProduced() error {
	if err := b.Check(); err != nil {
		return err
	}
	switch {
	case b.Count() <= 0:
		return fmt.Errorf("%w: no records", ErrInvalid)
	case b.LastOffsetDelta() != b.Count()-1:
		return fmt.Errorf("%w: last offset delta %d does not fit %d records", ErrInvalid, b.LastOffsetDelta(), b.Count())
	case b.Control():
		return fmt.Errorf("%w: clients may not write control batches", ErrInvalid)
	case b.Codec() > ZSTD:
		return fmt.Errorf("%w: unknown compression codec %d", ErrInvalid, b.Codec())
	case b.Attributes()&deleteHorizonBit != 0:
		return fmt.Errorf("%w: clients may not set a delete horizon", ErrInvalid)
	case b.LogAppendTime():
		return fmt.Errorf("%w: producers may not set the timestamp type to LogAppendTime", ErrInvalid)
	}
	return b.validateProducer()
}

// validateProducer checks that the idempotence fields are set together.
func (b Batch) validateProducer() error {
	if b.ProducerID() < 0 {
		if b.Transactional() {
			return fmt.Errorf("%w: transactional without producer id", ErrInvalid)
		}
		return nil
	}
	if b.ProducerEpoch() < 0 {
		return fmt.Errorf("%w: producer id without producer epoch", ErrInvalid)
	}
	if b.BaseSequence() < 0 {
		return fmt.Errorf("%w: producer id without sequence", ErrInvalid)
	}
	return nil
}
