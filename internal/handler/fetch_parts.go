package handler

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/partition"
)

// fetchPart is one partition that a fetch asks for.
type fetchPart struct {
	topic   string
	topicID [16]byte
	index   int32
	spec    partition.Fetch

	refused *kerr.Error          // why it is not read, found out once per attempt
	part    *partition.Partition // found once per attempt
	result  partition.Fetched
}

// fetchPartSize is the memory of a fetchPart, and fetchPartWork about what it takes
// with its place in the answer.
const (
	fetchPartSize = int(unsafe.Sizeof(fetchPart{}))
	fetchPartWork = 448
)

// countNamed counts the partitions that a request names.
func countNamed(req *kmsg.FetchRequest) (n int) {
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	return n
}

// fewNamed is up to how many partitions it is cheaper to look at all of them than
// to keep a map.
const fewNamed = 64

// requested lists the partitions that a request names, each of them once: as in
// Kafka the last word about a partition counts.
func requested(req *kmsg.FetchRequest) []fetchPart {
	named := countNamed(req)
	parts := make([]fetchPart, 0, named)
	var places map[sessionKey]int
	if named > fewNamed {
		places = make(map[sessionKey]int, named)
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			p := fetchPart{topic: t.Topic, topicID: t.TopicID, index: t.Partitions[j].Partition, spec: spec(&t.Partitions[j])}
			if at, again := place(parts, places, &p); again {
				parts[at].spec = p.spec
			} else {
				parts = append(parts, p)
			}
		}
	}
	return parts
}

// place finds a partition among others, and if it is not there notes where it
// will be.
func place(parts []fetchPart, places map[sessionKey]int, p *fetchPart) (at int, there bool) {
	if places == nil {
		at = slices.IndexFunc(parts, func(q fetchPart) bool {
			return q.index == p.index && q.topicID == p.topicID && q.topic == p.topic
		})
		return at, at >= 0
	}
	key := sessionKey{p.topic, p.topicID, p.index}
	if at, there = places[key]; !there {
		places[key] = len(parts)
	}
	return at, there
}

func spec(p *kmsg.FetchRequestTopicPartition) partition.Fetch {
	return partition.Fetch{
		Offset: p.FetchOffset, LeaderEpoch: p.CurrentLeaderEpoch,
		LastFetchedEpoch: p.LastFetchedEpoch, MaxBytes: int(p.PartitionMaxBytes),
	}
}

const (
	// recordBudget is how much memory records of a store far away may take on
	// their way to clients; those on this machine are sent from where they are.
	recordBudget = 256 << 20
	// leastRecords is what a fetch may read however little is free, so that
	// every client gets on.
	leastRecords = 1 << 20
)

// records is the memory that records of a store far away may take. When it
// becomes scarce, fetches get less than they ask for, as they may.
type records struct {
	mu   sync.Mutex
	free int
}

// take returns how much a fetch may read. The rest of it is given back when it is
// known how much that was.
func (r *records) take(want int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := min(want, max(r.free/4, leastRecords))
	r.free -= got
	return got
}

func (r *records) give(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += bytes
}
