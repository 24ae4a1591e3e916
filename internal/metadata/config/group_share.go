package config

import (
	"strconv"
	"strings"
	"time"
)

// shareDefs are the settings that only share groups have (KIP-932). What the broker has no
// setting for has a default of its own.
func shareDefs() []Def {
	return []Def{
		ofGroup(shareLock, 1, "How long a record is locked for the member that it was delivered to."),
		ofGroup(shareLimit, 1, "How often a record is delivered at most."),
		ofGroup(shareWindow, 1, "How many records of a partition, from the first that is not done with on, may be delivered and not yet done with."),
		{Name: shareReset, Type: String, Default: "latest", Doc: "Where a partition begins that the group has not read before: `latest`, `earliest`, or `by_duration:` and a duration such as `PT1H` before now.", check: checkReset},
		{Name: shareIsolation, Type: String, Default: "read_uncommitted", OneOf: []string{"read_uncommitted", readCommitted}, Doc: "Whether records of transactions are delivered before these end."},
		{Name: shareRenew, Type: Boolean, Default: "true", Doc: "Whether a member may renew the locks of its records."},
	}
}

const (
	shareLock      = "share.record.lock.duration.ms"
	shareLimit     = "share.delivery.count.limit"
	shareWindow    = "share.partition.max.record.locks"
	shareReset     = "share.auto.offset.reset"
	shareIsolation = "share.isolation.level"
	shareRenew     = "share.renew.acknowledge.enable"
	readCommitted  = "read_committed"
)

// Share is the settings of a share group that are about records.
type Share struct {
	Lock      time.Duration // share.record.lock.duration.ms
	Limit     int           // share.delivery.count.limit
	Window    int           // share.partition.max.record.locks
	Renews    bool          // share.renew.acknowledge.enable
	Committed bool          // share.isolation.level
	Reset     Reset         // share.auto.offset.reset
}

// Reset is where a share partition begins that the group has not read before.
type Reset struct {
	Earliest bool
	Ago      time.Duration // before now; 0 for none
}

// ShareOf returns those in use, of those that are set on a group.
func ShareOf(b *Broker, set map[string]string) Share {
	reset, _ := readReset(groupText(set, shareReset))
	return Share{
		Lock: GroupDuration(b, set, shareLock), Limit: int(GroupInt(b, set, shareLimit)), Window: int(GroupInt(b, set, shareWindow)),
		Renews: groupText(set, shareRenew) == "true", Committed: groupText(set, shareIsolation) == readCommitted, Reset: reset,
	}
}

// groupText returns a setting that the broker has none for. A value that is not allowed any
// more counts as not set.
func groupText(set map[string]string, name string) string {
	d := groupTable.byName[name]
	if v, ok := set[name]; ok && d.Check(v) == nil {
		return v
	}
	return d.Default
}

func checkReset(value string) error {
	if _, ok := readReset(value); !ok {
		return invalid("%s must be latest, earliest, or by_duration: and a duration such as PT1H, not %q", shareReset, value)
	}
	return nil
}

func readReset(value string) (r Reset, ok bool) {
	const byDuration = "by_duration:"
	switch {
	case value == "latest":
		return r, true
	case value == "earliest":
		return Reset{Earliest: true}, true
	case !strings.HasPrefix(value, byDuration):
		return r, false
	}
	r.Ago, ok = readDuration(value[len(byDuration):])
	return r, ok && r.Ago > 0
}

// maxDuration is the longest that is read: what is longer goes further back than any record.
const maxDuration = 200 * 365 * 24 * time.Hour

// readDuration reads a duration as Java writes it, of ISO 8601: days, hours, minutes, and seconds
// with a fraction.
func readDuration(s string) (d time.Duration, ok bool) {
	s = strings.ToUpper(s)
	if !strings.HasPrefix(s, "P") {
		return 0, false
	}
	date, clock, timed := strings.Cut(s[1:], "T")
	if timed && clock == "" || date == "" && clock == "" {
		return 0, false
	}
	total := 0.0
	read := func(part, units string, of []time.Duration) bool {
		for part != "" {
			i := strings.IndexAny(part, "DHMS")
			if i < 1 {
				return false
			}
			unit := strings.IndexByte(units, part[i])
			n, err := strconv.ParseFloat(part[:i], 64)
			if unit < 0 || err != nil || n < 0 || n != float64(int64(n)) && part[i] != 'S' {
				return false
			}
			total += n * float64(of[unit])
			part, units, of = part[i+1:], units[unit+1:], of[unit+1:]
		}
		return true
	}
	if !read(date, "D", []time.Duration{24 * time.Hour}) || !read(clock, "HMS", []time.Duration{time.Hour, time.Minute, time.Second}) {
		return 0, false
	}
	return time.Duration(min(total, float64(maxDuration))), true
}
