package source

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"muster/internal/record"
)

// Whatever changes the offsets of a group, or whether there is one, is a record that its
// shard appends. So the names in these records tell the watch which groups it must look
// at; all others have the offsets that they had. A shard may have very many groups, so
// names share marks: a mark too many costs a look.

const (
	markWords = 256
	markBits  = 64 * markWords
)

// Marks are the groups of a shard that something was appended of since they were taken.
type Marks struct {
	any  atomic.Bool
	all  atomic.Bool // Something was appended that does not say of which groups.
	bits [markWords]atomic.Uint64
}

// taken is what was marked.
type taken struct {
	any, all bool
	bits     [markWords]uint64
}

var markSeed = maphash.MakeSeed()

// markOf is the place of the mark of a group.
func markOf(name string) uint16 { return uint16(maphash.String(markSeed, name) % markBits) }

// Batch marks the groups that the records of a batch are about.
func (m *Marks) Batch(b record.Batch) {
	if len(b) < record.HeaderSize || b.Control() || b.Each(m.record) != nil {
		m.all.Store(true) // The end of a transaction does not say whose offsets it commits.
	}
	m.any.Store(true)
}

// record marks the group that a record is about: all keys begin with a version and the
// group's name.
func (m *Marks) record(r *record.Record) error {
	if k := r.Key; len(k) >= 4 {
		if n := int(binary.BigEndian.Uint16(k[2:])); n <= len(k)-4 {
			m.mark(uint16(maphash.Bytes(markSeed, k[4:4+n]) % markBits))
			return nil
		}
	}
	m.all.Store(true)
	return nil
}

func (m *Marks) mark(bit uint16) { m.bits[bit/64].Or(1 << (bit % 64)) }

// take returns what was marked, and begins anew.
func (m *Marks) take(out *taken) {
	if out.any = m.any.Swap(false); !out.any {
		return
	}
	out.all = m.all.Swap(false)
	for i := range m.bits {
		out.bits[i] = m.bits[i].Swap(0)
	}
}

// has says whether a group was marked.
func (t *taken) has(bit uint16) bool { return t.any && (t.all || t.bits[bit/64]>>(bit%64)&1 != 0) }

// shardMarks has the marks of all shards. One that begins to be led has new ones.
type shardMarks struct {
	mu sync.Mutex
	of map[int32]*Marks
}

// Marks returns new marks for a shard that this broker begins to lead.
func (s *Source) Marks(shard int32) *Marks { return s.marks.begin(shard) }

func (s *shardMarks) begin(shard int32) *Marks {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[int32]*Marks{}
	}
	s.of[shard] = &Marks{}
	return s.of[shard]
}

func (s *shardMarks) get(shard int32) *Marks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[shard]
}
