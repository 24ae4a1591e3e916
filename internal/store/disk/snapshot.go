package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"muster/internal/store"
)

const (
	snapshotMagic = 0x4d555354 // MUST
	// plainMagic is that of snapshots before there were transactions.
	plainMagic = 0x4d555350 // MUSP

	plainProducerSize = 19
	producerSize      = 31
	producerBatchSize = 32
	abortedSize       = 24
)

var errSnapshot = errors.New("producer snapshot is torn")

// encodeSnapshot makes the content of a snapshot file: the producers, then the
// aborted transactions, then a checksum over both.
func encodeSnapshot(producers []store.Producer, aborted []store.Aborted) []byte {
	b := binary.BigEndian.AppendUint32(nil, snapshotMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(producers)))
	for _, p := range producers {
		b = binary.BigEndian.AppendUint64(b, uint64(p.ID))
		b = binary.BigEndian.AppendUint16(b, uint16(p.Epoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.LastTimestamp))
		b = append(b, byte(len(p.Batches)))
		b = binary.BigEndian.AppendUint32(b, uint32(p.CoordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.TxnFirst))
		for _, x := range p.Batches {
			b = binary.BigEndian.AppendUint32(b, uint32(x.BaseSequence))
			b = binary.BigEndian.AppendUint32(b, uint32(x.LastSequence))
			b = binary.BigEndian.AppendUint64(b, uint64(x.BaseOffset))
			b = binary.BigEndian.AppendUint64(b, uint64(x.LastOffset))
			b = binary.BigEndian.AppendUint64(b, uint64(x.Timestamp))
		}
	}
	for _, a := range aborted {
		b = binary.BigEndian.AppendUint64(b, uint64(a.ProducerID))
		b = binary.BigEndian.AppendUint64(b, uint64(a.FirstOffset))
		b = binary.BigEndian.AppendUint64(b, uint64(a.LastOffset))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

// decodeSnapshot reads a snapshot file, also one of before there were
// transactions.
func decodeSnapshot(b []byte) ([]store.Producer, []store.Aborted, error) {
	if len(b) < 12 {
		return nil, nil, errSnapshot
	}
	magic, body, sum := binary.BigEndian.Uint32(b), b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	size := producerSize
	if magic == plainMagic {
		size = plainProducerSize
	}
	n := binary.BigEndian.Uint32(b[4:])
	if magic != snapshotMagic && magic != plainMagic || crc32.Checksum(body, crcTable) != sum || int64(n)*int64(size) > int64(len(b)) {
		return nil, nil, errSnapshot
	}
	out := make([]store.Producer, n)
	body = body[8:]
	for i := range out {
		var err error
		if body, err = decodeProducer(body, size, &out[i]); err != nil {
			return nil, nil, err
		}
	}
	if len(body)%abortedSize != 0 || len(body) > 0 && magic == plainMagic {
		return nil, nil, errSnapshot
	}
	return out, decodeAborted(body), nil
}

// decodeProducer reads a producer whose fixed part has a size, and returns what
// follows it.
func decodeProducer(body []byte, size int, p *store.Producer) ([]byte, error) {
	if len(body) < size {
		return nil, errSnapshot
	}
	p.ID = int64(binary.BigEndian.Uint64(body))
	p.Epoch = int16(binary.BigEndian.Uint16(body[8:]))
	p.LastTimestamp = int64(binary.BigEndian.Uint64(body[10:]))
	k := int(body[18])
	p.CoordinatorEpoch, p.TxnFirst = -1, store.NoTxn
	if size == producerSize {
		p.CoordinatorEpoch = int32(binary.BigEndian.Uint32(body[19:]))
		p.TxnFirst = int64(binary.BigEndian.Uint64(body[23:]))
	}
	body = body[size:]
	if len(body) < k*producerBatchSize {
		return nil, errSnapshot
	}
	for range k {
		p.Batches = append(p.Batches, store.ProducerBatch{
			BaseSequence: int32(binary.BigEndian.Uint32(body)),
			LastSequence: int32(binary.BigEndian.Uint32(body[4:])),
			BaseOffset:   int64(binary.BigEndian.Uint64(body[8:])),
			LastOffset:   int64(binary.BigEndian.Uint64(body[16:])),
			Timestamp:    int64(binary.BigEndian.Uint64(body[24:])),
		})
		body = body[producerBatchSize:]
	}
	return body, nil
}

func decodeAborted(body []byte) []store.Aborted {
	out := make([]store.Aborted, 0, len(body)/abortedSize)
	for ; len(body) >= abortedSize; body = body[abortedSize:] {
		out = append(out, store.Aborted{
			ProducerID:  int64(binary.BigEndian.Uint64(body)),
			FirstOffset: int64(binary.BigEndian.Uint64(body[8:])),
			LastOffset:  int64(binary.BigEndian.Uint64(body[16:])),
		})
	}
	return out
}
