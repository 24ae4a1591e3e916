package metrics

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/meter"
)

// addRequests adds what was counted of requests.
func (v *view) addRequests(r *recent) {
	answered := v.meters.Requests.Read()
	for i := range answered {
		a := &answered[i]
		request := v.label(requestLabel, kmsg.NameForKey(a.Key))
		for version, n := range a.Versions {
			if n > 0 {
				v.put(requestsFamily, float64(n), request, v.label(versionLabel, strconv.Itoa(version)))
			}
		}
		v.putDurations(requestTookFamily, a.Took, request)
	}
	if !v.on(JMX) {
		return
	}
	before := r.turn(v.now, answered)
	for i := range answered {
		took := answered[i].Took
		if old, ok := before[answered[i].Key]; ok {
			took = took.Since(old)
		}
		request := v.label(requestLabel, kmsg.NameForKey(answered[i].Key))
		for _, q := range quantiles {
			if d, ok := took.Quantile(q.of); ok {
				v.put(totalTimeFamily, float64(d)/float64(time.Millisecond), request, v.label(quantileLabel, q.name))
			}
		}
	}
}

// quantiles are those that Kafka has of its histograms, under the names that the JMX
// exporter makes of them.
var quantiles = []struct {
	of   float64
	name string
}{{0.5, "0.50"}, {0.75, "0.75"}, {0.95, "0.95"}, {0.98, "0.98"}, {0.99, "0.99"}, {0.999, "0.999"}}

// Quantiles are over the last five minutes, as Kafka's mostly are: over all of a
// broker's life they would hardly move. What was counted by then is remembered once a
// minute, as long as someone asks.
const (
	recentEvery = time.Minute
	recentFor   = 5 * time.Minute
)

// recent remembers what was counted of requests over the last minutes.
type recent struct{ moments []moment }

type moment struct {
	at    time.Time
	tooks map[int16]meter.Durations
}

// turn returns what was counted five minutes ago, or as long ago as is remembered, and
// remembers what is counted now.
func (r *recent) turn(now time.Time, answered []meter.Answered) map[int16]meter.Durations {
	for len(r.moments) > 1 && now.Sub(r.moments[1].at) >= recentFor {
		r.moments = r.moments[1:]
	}
	var before map[int16]meter.Durations
	if len(r.moments) > 0 {
		before = r.moments[0].tooks
	}
	if n := len(r.moments); n == 0 || now.Sub(r.moments[n-1].at) >= recentEvery {
		m := moment{now, make(map[int16]meter.Durations, len(answered))}
		for i := range answered {
			m.tooks[answered[i].Key] = answered[i].Took
		}
		r.moments = append(r.moments, m)
	}
	return before
}
