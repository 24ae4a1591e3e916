package config

import (
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
)

func TestEveryGroupSettingHasItsBoundsInTheBroker(t *testing.T) {
	b := broker(t, nil)
	for i := range GroupDefs() {
		d := &GroupDefs()[i]
		for _, which := range []string{"min", "max"} {
			own := d.Name == "streams.initial.rebalance.delay.ms" || which == "min" && d.Name == "streams.num.standby.replicas" // Kafka has none.
			if d.Synonym != "" && BrokerDef(d.bound(which)) == nil && !own {
				t.Errorf("%s is bounded by %s, which does not exist", d.Name, d.bound(which))
			}
		}
		assert.NoError(t, CheckGroupSet(b, map[string]string{d.Name: GroupValue(b, nil, d.Name)}), "the default of %s", d.Name)
	}
}

func TestGroupSettingsAreRefusedOutsideOfTheBrokersBounds(t *testing.T) {
	low := map[string]string{
		"group.consumer.min.session.timeout.ms": "1000", "group.consumer.min.heartbeat.interval.ms": "100",
		"group.consumer.max.heartbeat.interval.ms": "50000", "group.consumer.min.assignment.interval.ms": "10", "group.consumer.max.assignment.interval.ms": "2000",
	}
	for _, tt := range []struct {
		broker map[string]string
		set    map[string]string
		want   string // of the message; "" if it is allowed
	}{
		{nil, map[string]string{consumerSession: "45000", consumerHeartbeat: "15000", consumerInterval: "0"}, ""},
		{nil, map[string]string{consumerSession: "60000", consumerHeartbeat: "5000", consumerInterval: "15000"}, ""},
		{nil, map[string]string{consumerSession: "44999"}, "group.consumer.min.session.timeout.ms"},
		{nil, map[string]string{consumerSession: "60001"}, "group.consumer.max.session.timeout.ms"},
		{nil, map[string]string{consumerHeartbeat: "4999"}, "group.consumer.min.heartbeat.interval.ms"},
		{nil, map[string]string{consumerHeartbeat: "15001"}, "group.consumer.max.heartbeat.interval.ms"},
		{nil, map[string]string{consumerInterval: "15001"}, "group.consumer.max.assignment.interval.ms"},
		{low, map[string]string{consumerInterval: "9"}, "group.consumer.min.assignment.interval.ms"},
		{low, map[string]string{consumerInterval: "2001"}, "group.consumer.max.assignment.interval.ms"},
		{low, map[string]string{consumerSession: "1000", consumerHeartbeat: "999"}, ""},
		{low, map[string]string{consumerSession: "1000", consumerHeartbeat: "1000"}, "must be greater than consumer.heartbeat.interval.ms"},
		{low, map[string]string{consumerSession: "5000"}, "must be greater than consumer.heartbeat.interval.ms"}, // The broker's.
		{low, map[string]string{consumerHeartbeat: "45000"}, "must be greater than consumer.heartbeat.interval.ms"},
		// What is wrong with the broker's own is not the fault of a group that has others.
		{map[string]string{"group.consumer.session.timeout.ms": "5000"}, map[string]string{consumerInterval: "5"}, ""},
		{map[string]string{"group.consumer.session.timeout.ms": "5000"}, nil, ""},
		{nil, map[string]string{"streams.num.standby.replicas": "2", "streams.initial.rebalance.delay.ms": "0"}, ""},
		{nil, map[string]string{"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"},
		{nil, map[string]string{"streams.session.timeout.ms": "44999"}, "group.streams.min.session.timeout.ms"},
		// What the broker has, its groups may have.
		{map[string]string{"group.consumer.session.timeout.ms": "6000"}, map[string]string{consumerSession: "6000"}, ""},
		{map[string]string{"group.consumer.session.timeout.ms": "6000"}, map[string]string{consumerSession: "5999"}, "at least 6000"},
		{map[string]string{"group.consumer.heartbeat.interval.ms": "20000"}, map[string]string{consumerHeartbeat: "20000"}, ""},
	} {
		err := CheckGroupSet(broker(t, tt.broker), tt.set)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%v with broker %v: %v", tt.set, tt.broker, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%v with broker %v: %v, want %q", tt.set, tt.broker, err, tt.want)
		}
	}
	for name, value := range map[string]string{"consumer.session.timeout": "50000", consumerSession: "long", consumerHeartbeat: "0", consumerInterval: "-1"} {
		assert.True(t, CheckGroup(name, value) != nil, "%s may be %s", name, value)
	}
}

// The settings of consumer groups.
const (
	consumerSession   = "consumer" + session
	consumerHeartbeat = "consumer" + heartbeat
	consumerInterval  = "consumer" + interval
)

func TestGroupSettingsInUseAreWithinTheBrokersBounds(t *testing.T) {
	set := map[string]string{consumerSession: "50000", consumerHeartbeat: " 10000", consumerInterval: "3000"}
	for _, tt := range []struct {
		broker map[string]string
		set    map[string]string
		want   [3]time.Duration
	}{
		{nil, nil, [3]time.Duration{45 * time.Second, 5 * time.Second, time.Second}},
		{nil, set, [3]time.Duration{50 * time.Second, 10 * time.Second, 3 * time.Second}},
		{map[string]string{"group.consumer.max.session.timeout.ms": "48000", "group.consumer.max.heartbeat.interval.ms": "9000", "group.consumer.max.assignment.interval.ms": "2000"}, set, [3]time.Duration{48 * time.Second, 9 * time.Second, 2 * time.Second}},
		{map[string]string{"group.consumer.max.session.timeout.ms": "40000"}, set, [3]time.Duration{45 * time.Second, 10 * time.Second, 3 * time.Second}},
		{map[string]string{"group.consumer.min.session.timeout.ms": "55000", "group.consumer.session.timeout.ms": "55000", "group.consumer.heartbeat.interval.ms": "12000", "group.consumer.min.heartbeat.interval.ms": "12000", "group.consumer.min.assignment.interval.ms": "4000", "group.consumer.assignment.interval.ms": "5000"}, set, [3]time.Duration{55 * time.Second, 12 * time.Second, 4 * time.Second}},
		{map[string]string{"group.consumer.session.timeout.ms": "50000", "group.consumer.heartbeat.interval.ms": "6000"}, map[string]string{consumerSession: "long", consumerHeartbeat: "0", "consumer.of.a.newer.version": "1"}, [3]time.Duration{50 * time.Second, 6 * time.Second, time.Second}},
	} {
		b := broker(t, tt.broker)
		got := [3]time.Duration{GroupDuration(b, tt.set, consumerSession), GroupDuration(b, tt.set, consumerHeartbeat), GroupDuration(b, tt.set, consumerInterval)}
		assert.Equal(t, got, tt.want, "%v with broker %v", tt.set, tt.broker)
	}
}
