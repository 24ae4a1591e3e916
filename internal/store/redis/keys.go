package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"muster/internal/store"
)

// keys are the keys of one log. The stream's own key has no hash tag, and the
// others have it as their tag, so that a cluster keeps them in one slot.
type keys struct {
	stream    string // the records
	meta      string // a hash: what is known about the log
	index     string // a stream: where which records are (indexed layout)
	producers string // a hash: the state of each idempotent producer
	aborted   string // a sorted set: the aborted transactions, by the offsets of their markers
	// conversion is a stream: the index that a conversion makes, until it is whole.
	conversion string
	copied     string // a stream: the records that a conversion from layout log copies, until they take its place
	copiedHeld string // the same, for the rest of a transaction that is refused
	replaced   string // the stream that was replaced, for the rest of a script
	rewrite    string // a stream: what compaction writes, until it takes the place of the log
	mark       string // written to learn how far replicas are
	held       string // the stream, for the rest of a transaction that is refused
	groups     string // a set: the consumer groups that muster made, see package native
	consumers  string // a hash: the consumer that muster made of each group, see there too
}

// logKeys names the keys of a log.
func logKeys(prefix string, tp store.TopicPartition) keys {
	stream := prefix + ":" + tp.Topic + ":" + strconv.Itoa(int(tp.Partition))
	tag := "{" + stream + "}"
	return keys{
		stream: stream, meta: tag + metaSuffix, index: tag + ":i", producers: tag + ":p", aborted: tag + ":a", rewrite: tag + ":new", mark: tag + ":w",
		conversion: tag + ":ni", copied: tag + ":nd", copiedHeld: tag + ":nh", replaced: tag + ":o",
		held: tag + ":h", groups: tag + ":g", consumers: tag + ":c",
	}
}

const metaSuffix = ":m"

// parseMetaKey finds out of which log a key is the meta key.
func parseMetaKey(prefix, key string) (store.TopicPartition, bool) {
	name, ok := strings.CutPrefix(key, "{"+prefix+":")
	if !ok {
		return store.TopicPartition{}, false
	}
	if name, ok = strings.CutSuffix(name, "}"+metaSuffix); !ok {
		return store.TopicPartition{}, false
	}
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return store.TopicPartition{}, false
	}
	p, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || p < 0 || strconv.FormatInt(p, 10) != name[i+1:] {
		return store.TopicPartition{}, false
	}
	return store.TopicPartition{Topic: name[:i], Partition: int32(p)}, true
}

// escapeGlob makes a pattern that matches nothing but the text itself.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}

// entryID is the id of a stream entry.
type entryID struct{ ms, seq uint64 }

func (id entryID) String() string {
	return string(id.append(make([]byte, 0, idLength)))
}

// idLength is how long an id is that is not absurd.
const idLength = 24

func (id entryID) append(b []byte) []byte {
	b = strconv.AppendUint(b, id.ms, 10)
	b = append(b, '-')
	return strconv.AppendUint(b, id.seq, 10)
}

func (id entryID) less(other entryID) bool {
	return id.ms < other.ms || id.ms == other.ms && id.seq < other.seq
}

// after is the id that follows immediately.
func (id entryID) after() entryID {
	if id.seq == math.MaxUint64 {
		return entryID{ms: id.ms + 1}
	}
	return entryID{ms: id.ms, seq: id.seq + 1}
}

// before is the id that precedes immediately; that of the first id is itself.
func (id entryID) before() entryID {
	switch {
	case id.seq > 0:
		return entryID{ms: id.ms, seq: id.seq - 1}
	case id.ms > 0:
		return entryID{ms: id.ms - 1, seq: math.MaxUint64}
	}
	return id
}

// parseID parses an id. A lone time stands for its first id.
func parseID(text string) (entryID, error) {
	ms, seq, whole := strings.Cut(text, "-")
	var id entryID
	var err error
	if id.ms, err = strconv.ParseUint(ms, 10, 64); err == nil && whole {
		id.seq, err = strconv.ParseUint(seq, 10, 64)
	}
	if err != nil {
		return id, fmt.Errorf("%w: %q is no entry id", store.ErrCorrupt, text)
	}
	return id, nil
}

// numbering is how offsets and the ids of stream entries stand for each other.
// In the stream layout an offset is the id's time, shifted by bits, and its
// sequence; in the log layout, where bits is zero, an entry's id is the offset
// after its last record.
type numbering struct{ bits uint }

func (n numbering) perMilli() uint64 { return 1 << n.bits }

// id returns the id that stands for an offset.
func (n numbering) id(offset int64) entryID {
	if offset < 0 {
		return entryID{}
	}
	return entryID{ms: uint64(offset) >> n.bits, seq: uint64(offset) & (n.perMilli() - 1)}
}

// offset returns the offset that an id stands for. Ids with a large sequence
// or a time in the far future have none.
func (n numbering) offset(id entryID) (int64, bool) {
	if id.seq >= n.perMilli() || id.ms > math.MaxInt64>>n.bits {
		return 0, false
	}
	return int64(id.ms<<n.bits | id.seq), true
}

// atOrAfter returns the first offset whose id is not below id.
func (n numbering) atOrAfter(id entryID) int64 {
	if id.seq >= n.perMilli() {
		id = entryID{ms: id.ms + 1}
	}
	if o, ok := n.offset(id); ok {
		return o
	}
	return math.MaxInt64
}
