package config

import (
	"testing"
	"time"

	"muster/internal/assert"
)

func TestShareGroupsHaveKafkasDefaults(t *testing.T) {
	want := Share{Lock: 30 * time.Second, Limit: 5, Window: 2000, Renews: true}
	assert.Equal(t, ShareOf(broker(t, nil), nil), want, "without settings")
	assert.Equal(t, ShareOf(broker(t, nil), map[string]string{shareReset: "newest", shareRenew: "no", shareIsolation: "none", shareLimit: "x"}), want, "with values of another version")
}

func TestSettingsOfAShareGroupAreWithinTheBrokersBounds(t *testing.T) {
	set := map[string]string{shareLock: "60000", shareLimit: "10", shareWindow: "100", shareReset: "by_duration:PT2H", shareIsolation: readCommitted, shareRenew: "false"}
	assert.Equal(t, ShareOf(broker(t, nil), set), Share{Lock: time.Minute, Limit: 10, Window: 100, Committed: true, Reset: Reset{Ago: 2 * time.Hour}}, "as they are")
	low := broker(t, map[string]string{"group.share.max.record.lock.duration.ms": "40000", "group.share.max.delivery.count.limit": "6", "group.share.min.partition.max.record.locks": "500"})
	got := ShareOf(low, set)
	assert.Equal(t, [3]int{int(got.Lock.Seconds()), got.Limit, got.Window}, [3]int{40, 6, 500}, "within other bounds")
	for name, value := range map[string]string{shareLock: "14999", shareLimit: "11", shareWindow: "99", "share.session.timeout.ms": "44999"} {
		assert.NoError(t, CheckGroup(name, value), "%s=%s", name, value)
		assert.True(t, CheckGroupSet(broker(t, nil), map[string]string{name: value}) != nil, "%s may be %s", name, value)
	}
	assert.NoError(t, CheckGroupSet(broker(t, nil), set), "all of them")
}

func TestWhereSharePartitionsBegin(t *testing.T) {
	for value, want := range map[string]Reset{
		"latest": {}, "earliest": {Earliest: true}, "by_duration:PT1H": {Ago: time.Hour}, "by_duration:P1DT2H3M4.5S": {Ago: 26*time.Hour + 3*time.Minute + 4500*time.Millisecond},
		"by_duration:p2d": {Ago: 48 * time.Hour}, "by_duration:P99999999999D": {Ago: maxDuration},
	} {
		got, ok := readReset(value)
		assert.True(t, ok && got == want && CheckGroup(shareReset, value) == nil, "%s is %+v", value, got)
	}
	for _, value := range []string{"", "none", "Latest", "by_duration:", "by_duration:1h", "by_duration:P", "by_duration:PT", "by_duration:PT0S", "by_duration:PT-1H", "by_duration:PT1S1M", "by_duration:P1H", "by_duration:PT1.5H", "by_duration:PTNANS", "by_duration:PTH"} {
		assert.True(t, CheckGroup(shareReset, value) != nil, "%q is allowed", value)
	}
}
