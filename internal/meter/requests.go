package meter

import (
	"sync/atomic"
	"time"
)

// The highest API key and version that are counted. Kafka's are lower.
const (
	maxKey     = 127
	maxVersion = 31
)

// Requests counts requests that were answered, by API key and version, and how long
// that took.
type Requests struct {
	stripes [stripes][maxKey + 1]atomic.Pointer[requests]
}

// requests are those of one API key on some of the connections.
type requests struct {
	versions [maxVersion + 1]atomic.Uint64
	took     *Histogram
}

// Answered counts a request that a connection, which has a number, has had an answer
// to. The first of its kind makes room for the others.
func (r *Requests) Answered(conn uint32, key, version int16, took time.Duration) {
	if uint16(key) > maxKey || uint16(version) > maxVersion {
		return // No one serves them.
	}
	place := &r.stripes[conn%stripes][key]
	c := place.Load()
	if c == nil {
		place.CompareAndSwap(nil, &requests{took: NewHistogram(Fast)})
		c = place.Load()
	}
	c.versions[version].Add(1)
	c.took.Observe(took)
}

// Answered is what was counted of the requests of an API key.
type Answered struct {
	Key      int16
	Versions []uint64 // How many, by version.
	Took     Durations
}

// Read returns the API keys that requests came of, in their order.
func (r *Requests) Read() []Answered {
	var out []Answered
	for key := range int16(maxKey + 1) {
		a := Answered{Key: key}
		for s := range r.stripes {
			c := r.stripes[s][key].Load()
			if c == nil {
				continue
			}
			if a.Versions == nil {
				a.Versions, a.Took = make([]uint64, maxVersion+1), NewDurations(Fast)
			}
			for v := range c.versions {
				a.Versions[v] += c.versions[v].Load()
			}
			c.took.addTo(&a.Took)
		}
		if a.Versions != nil {
			out = append(out, a)
		}
	}
	return out
}
