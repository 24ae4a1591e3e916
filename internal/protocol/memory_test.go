package protocol

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// unlimited has room for everything.
type unlimited struct{}

func (unlimited) Hold(int) bool { return true }

// meter counts, and has room up to a limit.
type meter struct{ held, limit int }

func (m *meter) Hold(n int) bool {
	m.held += n
	return m.limit == 0 || m.held <= m.limit
}

// allocated returns what f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// checkMemory checks that no less is counted for a body than decoding it takes,
// and not far more.
func checkMemory(t *testing.T, key, version int16, body []byte) {
	t.Helper()
	const root = 8 << 10 // The request itself is not counted.
	shapeOf(key, version)
	var m meter
	var err error
	r := Request{Key: key, Version: version, Body: body}
	took := allocated(func() { _, err = r.Decode(&m) })
	name := kmsg.NameForKey(key)
	if err != nil {
		t.Fatalf("%s v%d: %v", name, version, err)
	}
	if counted := m.held / andAnswer; counted+root < took || counted > 3*took+root {
		t.Errorf("%s v%d: %d bytes counted for %d", name, version, counted, took)
	}
}

func TestTheMemoryOfEveryRequestIsCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	eachRequest(func(key, version int16) {
		req := kmsg.RequestForKey(key)
		fill(rng, reflect.ValueOf(req).Elem(), 0)
		req.SetVersion(version)
		checkMemory(t, key, version, req.AppendTo(nil))
	})
}

func TestTheMemoryOfManySmallThingsIsCounted(t *testing.T) {
	const many = 50_000
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Version, groups.Groups = 5, make([]string, many)
	topics := kmsg.NewPtrMetadataRequest()
	topics.Version, topics.Topics = 12, make([]kmsg.MetadataRequestTopic, many)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.Topics = 17, make([]kmsg.FetchRequestTopic, 1)
	for range many {
		fetch.Topics[0].Partitions = append(fetch.Topics[0].Partitions, kmsg.NewFetchRequestTopicPartition())
	}
	offsets := kmsg.NewPtrOffsetFetchRequest()
	offsets.Version, offsets.Groups = 8, make([]kmsg.OffsetFetchRequestGroup, many)
	for _, req := range []kmsg.Request{groups, topics, fetch, offsets} {
		checkMemory(t, req.Key(), req.GetVersion(), req.AppendTo(nil))
	}
	tags := binary.AppendUvarint([]byte{0, 0, 0, 0}, many) // Metadata v12 of all topics, and tags
	for i := range many {
		tags = append(binary.AppendUvarint(tags, uint64(i)), 0)
	}
	checkMemory(t, 3, 12, tags)
	for i := range topics.Topics {
		topics.Topics[i].UnknownTags.Set(7, nil)
	}
	checkMemory(t, 3, 12, topics.AppendTo(nil))
}

func TestARequestWithoutRoomIsNotDecoded(t *testing.T) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 5, make([]string, 100_000)
	r := Request{Key: req.Key(), Version: 5, Body: req.AppendTo(nil)}
	shapeOf(r.Key, r.Version)
	took := allocated(func() {
		if _, err := r.Decode(&meter{limit: 1 << 20}); !errors.Is(err, ErrMemory) {
			t.Errorf("got %v", err)
		}
	})
	if took > 64<<10 {
		t.Errorf("it took %d bytes", took)
	}
}
