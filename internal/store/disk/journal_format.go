package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
)

// A journal file is a sequence of rounds, each with what was synced at once. A round
// begins at a block and fills whole blocks, so that no write touches what an earlier
// one has made durable.
//
//	round  magic, checksum of what follows, size, frames, use, number
//	frame  kind, sizes of name and data, base, position, name, data
const (
	roundMagic      = 0x4d554a31 // MUJ1
	roundBlock      = 4096
	roundHeadSize   = 28
	roundSummedFrom = 8
	frameHeadSize   = 23
	// frameNameMost is more than the name of a log can be long.
	frameNameMost = 512
)

// The kinds of frames.
const (
	// dataFrame holds bytes of a segment.
	dataFrame byte = iota + 1
	// unsyncedNamesFrame does so too. The segment's name may not be durable yet, and all that the
	// segment holds is in such frames.
	unsyncedNamesFrame
	// voidFrame says that the frames of a log before it are not to be used any more.
	voidFrame
)

var errRound = errors.New("no round of the journal")

// frame is one entry of a round.
type frame struct {
	kind byte
	name string // of the log's folder
	base int64  // of the segment
	pos  int64
	data []byte
	at   int // where in the round the data are
}

// roundHead says which round it is. Each use of a file has a number, higher than those
// of all uses before, by which what an earlier use left is told from it.
type roundHead struct {
	use    uint64
	number uint32 // of the round in that use
}

// roundBuilder puts a round together.
type roundBuilder struct {
	buf    []byte
	frames uint32
}

func (r *roundBuilder) reset() {
	r.buf = append(r.buf[:0], make([]byte, roundHeadSize)...)
	r.frames = 0
}

// add adds a frame with room for data, and returns the room.
func (r *roundBuilder) add(kind byte, name string, base, pos int64, size int) []byte {
	r.buf = append(r.buf, kind)
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(name)))
	r.buf = binary.BigEndian.AppendUint32(r.buf, uint32(size))
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(base))
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(pos))
	r.buf = append(r.buf, name...)
	at := len(r.buf)
	r.buf = extend(r.buf, size)
	r.frames++
	return r.buf[at:]
}

// extend makes a slice longer; what it holds there is not said.
func extend(b []byte, n int) []byte {
	if len(b)+n > cap(b) {
		grown := make([]byte, len(b), max(2*cap(b), len(b)+n))
		copy(grown, b)
		b = grown
	}
	return b[:len(b)+n]
}

// finish completes the round, which is then ready to be written.
func (r *roundBuilder) finish(h roundHead) []byte {
	size := len(r.buf)
	binary.BigEndian.PutUint32(r.buf, roundMagic)
	binary.BigEndian.PutUint32(r.buf[8:], uint32(size))
	binary.BigEndian.PutUint32(r.buf[12:], r.frames)
	binary.BigEndian.PutUint64(r.buf[16:], h.use)
	binary.BigEndian.PutUint32(r.buf[24:], h.number)
	binary.BigEndian.PutUint32(r.buf[4:], crc32.Checksum(r.buf[roundSummedFrom:], crcTable))
	r.buf = extend(r.buf, int(wholeBlocks(int64(size)))-size)
	clear(r.buf[size:])
	return r.buf
}

// wholeBlocks is how much of a file a round of a size takes.
func wholeBlocks(size int64) int64 { return (size + roundBlock - 1) / roundBlock * roundBlock }

// decodeRoundHead reads how long a round is and which.
func decodeRoundHead(b []byte) (h roundHead, size int64, err error) {
	if len(b) < roundHeadSize || binary.BigEndian.Uint32(b) != roundMagic {
		return h, 0, errRound
	}
	size = int64(binary.BigEndian.Uint32(b[8:]))
	if size < roundHeadSize {
		return h, 0, errRound
	}
	h.use = binary.BigEndian.Uint64(b[16:])
	h.number = binary.BigEndian.Uint32(b[24:])
	return h, size, nil
}

// decodeRound reads the frames of a whole round. They point into it.
func decodeRound(b []byte) ([]frame, error) {
	if _, size, err := decodeRoundHead(b); err != nil || size != int64(len(b)) {
		return nil, errRound
	}
	if crc32.Checksum(b[roundSummedFrom:], crcTable) != binary.BigEndian.Uint32(b[4:]) {
		return nil, errRound
	}
	n, size := int(binary.BigEndian.Uint32(b[12:])), len(b)
	b = b[roundHeadSize:]
	if n > len(b)/frameHeadSize {
		return nil, errRound
	}
	out := make([]frame, n)
	for i := range out {
		var err error
		if b, err = decodeFrame(b, &out[i]); err != nil {
			return nil, err
		}
		out[i].at = size - len(b) - len(out[i].data)
	}
	if len(b) > 0 {
		return nil, errRound
	}
	return out, nil
}

// decodeFrame reads a frame and returns what follows it.
func decodeFrame(b []byte, f *frame) ([]byte, error) {
	if len(b) < frameHeadSize {
		return nil, errRound
	}
	f.kind = b[0]
	name, data := int(binary.BigEndian.Uint16(b[1:])), int64(binary.BigEndian.Uint32(b[3:]))
	base, pos := binary.BigEndian.Uint64(b[7:]), binary.BigEndian.Uint64(b[15:])
	b = b[frameHeadSize:]
	// Positions in a segment have 31 bits, and offsets fewer than 61.
	if name > frameNameMost || int64(len(b)) < int64(name)+data || base > maxOffset || pos > math.MaxInt32 {
		return nil, errRound
	}
	f.name, f.base, f.pos = string(b[:name]), int64(base), int64(pos)
	f.data = b[name:][:data]
	return b[int64(name)+data:], nil
}
