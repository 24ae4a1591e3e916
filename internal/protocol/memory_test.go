package protocol

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// meter counts, and has room up to a limit.
type meter struct{ held, limit int }

func (m *meter) Hold(n int) bool {
	m.held += n
	return m.limit == 0 || m.held <= m.limit
}

// taken returns how much memory f's result takes.
func taken(f func() any) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // What was in pools.
	runtime.ReadMemStats(&before)
	kept := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// checkMemory checks that no less is counted for a body than it takes when it is
// decoded, and not far more.
func checkMemory(t *testing.T, key, version int16, body []byte) {
	t.Helper()
	const slack = 16 << 10 // The request itself is not counted, and other tests leave something.
	shapeOf(key, version)
	var m meter
	var err error
	r := Request{Key: key, Version: version, Body: body, Memory: &m}
	took := taken(func() any {
		var req kmsg.Request
		req, err = r.Decode()
		return req
	})
	runtime.KeepAlive(body)
	name := kmsg.NameForKey(key)
	assert.Must(t, err, "%s v%d", name, version)
	assert.MustTrue(t, took >= -slack, "%s v%d: it took %d bytes", name, version, took)
	if counted := m.held / andAnswer; counted+slack < took || counted > 3*max(took, 0)+slack {
		t.Errorf("%s v%d: %d bytes counted for %d", name, version, counted, took)
	}
}

func TestTheMemoryOfEveryRequestIsCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	eachRequest(func(key, version int16) {
		switch {
		case version%4 != 0:
			return // Collecting garbage for each of them takes a while.
		case key == KeyFetch && version >= fetchFlexible:
			return // Brokers send it with known tags, which are counted as unknown ones.
		}
		req := NewRequest(key)
		fill(rng, reflect.ValueOf(req).Elem(), 0)
		req.SetVersion(version)
		multiply(reflect.ValueOf(req).Elem())
		checkMemory(t, key, version, req.AppendTo(nil))
	})
}

// multiply makes the lists of a request long.
func multiply(req reflect.Value) {
	for i := range req.NumField() {
		f := req.Field(i)
		if f.Kind() != reflect.Slice || f.Len() == 0 || f.Type().Elem().Kind() == reflect.Uint8 {
			continue
		}
		long := reflect.MakeSlice(f.Type(), 0, 2000)
		for long.Len() < 2000 {
			long = reflect.AppendSlice(long, f)
		}
		f.Set(long)
	}
}

func TestTheMemoryOfManySmallThingsIsCounted(t *testing.T) {
	const many = 50_000
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Version, groups.Groups = 5, slices.Repeat([]string{"a name", ""}, many/2)
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
	tags := binary.AppendUvarint([]byte{0, 0, 0}, many) // Metadata v12 of all topics, and tags
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
	r := Request{Key: req.Key(), Version: 5, Body: req.AppendTo(nil), Memory: &meter{limit: 1 << 20}}
	shapeOf(r.Key, r.Version)
	allocs := testing.AllocsPerRun(1, func() {
		if _, err := r.Decode(); !errors.Is(err, ErrMemory) {
			t.Errorf("got %v", err)
		}
	})
	assert.True(t, allocs <= 20, "%v allocations for a request that is refused", allocs)
}

func TestAPendingResponseTakesWhatItIsSaidToUntilItIsComplete(t *testing.T) {
	resp := NewPending()
	resp.Weigh(1000)
	assert.Equal(t, resp.Memory(), 1000, "bytes while it is pending")
	resp.Complete(&Request{Key: 12}, kmsg.NewPtrHeartbeatResponse())
	assert.Equal(t, resp.Memory(), len(resp.Parts[0].Bytes), "bytes when it is complete")
}
