package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// groupPrefix is what the broker setting has before the name that a group's has.
const groupPrefix = "group."

// groupKinds are the kinds of groups that have settings. Each has the same; what one has
// besides is beside them in groupTable.
var groupKinds = []string{"consumer", "share", "streams"}

// groupTable lists the settings that a group may have for itself. The broker has nearly each
// of them too, as Synonym says, with "group." before its name, and its bounds with "min." and "max."
// before the last part.
var groupTable = newTable(groupDefs())

func groupDefs() (out []Def) {
	for _, kind := range groupKinds {
		out = append(out,
			ofGroup(kind+session, 1, "How long a member of the group may be silent."),
			ofGroup(kind+heartbeat, 1, "How often a member of the group is to be heard of."),
			ofGroup(kind+interval, 0, "How long the group rests between two assignments."))
	}
	return append(append(out, shareDefs()...),
		ofGroup("streams.initial.rebalance.delay.ms", 0, "How long the first assignment of the group waits for more members, when it was empty."),
		ofGroup("streams.num.standby.replicas", 0, "How many standbys the stateful tasks of the group have."))
}

// What comes after the kind in the names of settings.
const (
	session   = ".session.timeout.ms"
	heartbeat = ".heartbeat.interval.ms"
	interval  = ".assignment.interval.ms"
)

func ofGroup(name string, least float64, doc string) Def {
	return Def{Name: name, Type: Int, Min: least, Max: 1<<31 - 1, Synonym: groupPrefix + name, Doc: doc}
}

// GroupDef returns the definition of a group setting, nil if there is none.
func GroupDef(name string) *Def { return groupTable.byName[name] }

// GroupDefs lists the group settings in the order of their names.
func GroupDefs() []Def { return groupTable.defs }

// CheckGroup says whether a group setting may have a value, as far as that does not
// depend on the broker's bounds.
func CheckGroup(name, value string) error { return groupTable.check("group", name, value) }

// CheckGroupSet says whether a group may have these settings, each of which CheckGroup
// allows, with a broker that has those.
func CheckGroupSet(b *Broker, set map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		d := groupTable.byName[name]
		if d.Synonym == "" {
			continue
		}
		n := integer(set[name])
		switch low, high := d.boundsIn(b); {
		case n < low:
			return invalid("%s must be at least %d, which is %s, not %d", name, low, d.bound("min"), n)
		case n > high:
			return invalid("%s must be at most %d, which is %s, not %d", name, high, d.bound("max"), n)
		}
	}
	for _, kind := range groupKinds {
		if err := checkHeartbeat(b, set, kind); err != nil {
			return err
		}
	}
	return nil
}

// checkHeartbeat says whether members send heartbeats more often than they must.
func checkHeartbeat(b *Broker, set map[string]string, kind string) error {
	_, ownSession := set[kind+session]
	_, ownHeartbeat := set[kind+heartbeat]
	silent, often := GroupDuration(b, set, kind+session), GroupDuration(b, set, kind+heartbeat)
	if (ownSession || ownHeartbeat) && silent <= often {
		return invalid("%s must be greater than %s: %d is not greater than %d", kind+session, kind+heartbeat, silent.Milliseconds(), often.Milliseconds())
	}
	return nil
}

// bound names the broker setting that bounds a group setting, if there is one.
func (d *Def) bound(which string) string {
	protocol, rest, _ := strings.Cut(d.Name, ".")
	return groupPrefix + protocol + "." + which + "." + strings.TrimPrefix(rest, "num.")
}

// boundsIn returns the bounds of a group setting. What the broker has for groups
// without settings of their own is within them, whatever they are.
func (d *Def) boundsIn(b *Broker) (low, high int64) {
	own, low, high := b.Int(d.Synonym), int64(d.Min), int64(d.Max)
	if name := d.bound("min"); BrokerDef(name) != nil {
		low = b.Int(name)
	}
	if name := d.bound("max"); BrokerDef(name) != nil {
		high = b.Int(name)
	}
	return min(low, own), max(high, own)
}

// GroupValue returns the value that a group setting has.
func GroupValue(b *Broker, set map[string]string, name string) string {
	if v, ok := set[name]; ok {
		return v
	}
	d := groupTable.byName[name]
	if d.Synonym == "" {
		return d.Default
	}
	return b.Get(d.Synonym)
}

// GroupDuration returns a setting that is in use, of those that are set on a group. The
// broker's bounds may have changed since: what is beyond them is the bound. A value
// that is not allowed any more counts as not set.
func GroupDuration(b *Broker, set map[string]string, name string) time.Duration {
	return millis(GroupInt(b, set, name))
}

// GroupInt is the same of a number.
func GroupInt(b *Broker, set map[string]string, name string) int64 {
	d := groupTable.byName[name]
	v, ok := set[name]
	if !ok || d.Check(v) != nil {
		return b.Int(d.Synonym)
	}
	low, high := d.boundsIn(b)
	return max(low, min(integer(v), high))
}
