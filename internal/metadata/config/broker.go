package config

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Broker holds the broker settings that were set: of the zero Broker, none. It is immutable.
type Broker struct {
	set map[string]string
	// found are defaults that depend on where the broker runs.
	found map[string]string

	once   sync.Once // requests ask for settings: the strings are read once
	parsed map[string]parsed
}

// parsed is a value as what it may be.
type parsed struct {
	number int64
	yes    bool
}

// NewBroker checks the settings and makes a Broker of them.
func NewBroker(set map[string]string) (*Broker, error) {
	b := &Broker{set: maps.Clone(set)}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		check := CheckBroker
		switch {
		case IsOfListener(name):
			check = b.checkListeners
		case unservedPrefix(name):
			continue
		}
		if err := check(name, set[name]); err != nil {
			return nil, err
		}
	}
	if dirs := SplitList(b.Get("log.dirs")); len(dirs) > 1 {
		return nil, invalid("log.dirs must name one folder, not %d", len(dirs))
	}
	if _, _, ok := b.BootstrapUser(); !ok && b.Get(bootstrapUser) != "" {
		return nil, invalid("%s must be name:password", bootstrapUser)
	}
	return b, nil
}

const bootstrapUser = "muster.bootstrap.user"

// BootstrapUser returns the first user, if one is set.
func (b *Broker) BootstrapUser() (name, password string, ok bool) {
	name, password, _ = strings.Cut(b.Get(bootstrapUser), ":")
	return name, password, name != "" && password != ""
}

// CheckBroker says whether a broker setting may have a value.
func CheckBroker(name, value string) error { return brokerTable.check("broker", name, value) }

// With returns the settings with some of them replaced; dynamic settings come
// this way. They may have been altered when their names meant nothing: a value
// that is not allowed now is left out.
func (b *Broker) With(changes map[string]string) *Broker {
	set := maps.Clone(b.set)
	if set == nil {
		set = map[string]string{}
	}
	for name, value := range changes {
		if d := brokerTable.byName[name]; d != nil && !d.Static && d.Check(value) == nil {
			set[name] = value
		}
	}
	return &Broker{set: set, found: b.found}
}

// Found returns the settings with another default for one of them, which was found out
// when the broker started.
func (b *Broker) Found(name, value string) *Broker {
	found := maps.Clone(b.found)
	if found == nil {
		found = map[string]string{}
	}
	found[name] = value
	return &Broker{set: b.set, found: found}
}

// BrokerDef returns the definition of a broker setting, nil if there is none.
func BrokerDef(name string) *Def { return brokerTable.byName[name] }

// BrokerDefs lists the broker settings in the order of their names.
func BrokerDefs() []Def { return brokerTable.defs }

// IsSet says whether a setting was set, under its own name.
func (b *Broker) IsSet(name string) bool {
	_, ok := b.set[name]
	return ok
}

// Ending iterates, in the order of their names, over the settings that were set whose names
// end like this: a setting, and that of each listener.
func (b *Broker) Ending(end string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(b.set)) {
			if (name == end || strings.HasSuffix(name, "."+end)) && !yield(name, b.set[name]) {
				return
			}
		}
	}
}

// Get returns a setting's value: as set, or of its fallbacks, or the default.
func (b *Broker) Get(name string) string {
	if v, ok := b.set[name]; ok {
		return v
	}
	if v, ok := b.found[name]; ok {
		return v
	}
	d := brokerTable.byName[name]
	if d == nil {
		panic("unknown broker setting " + name)
	}
	for _, f := range d.Fallbacks {
		if v, ok := b.set[f.Name]; ok {
			return scale(v, f.Factor)
		}
	}
	if d.Default == "" && len(d.Fallbacks) > 0 {
		return b.Get(d.Fallbacks[0].Name)
	}
	return d.Default
}

// scale converts a number to another unit; negative ones mean no limit in all.
func scale(v string, factor int64) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || factor == 1 {
		return v
	}
	if n < 0 {
		return "-1"
	}
	return strconv.FormatInt(n*factor, 10)
}

// Int returns a number. Values were checked when they were set.
func (b *Broker) Int(name string) int64 { return b.read(name).number }

// Bool returns a truth value.
func (b *Broker) Bool(name string) bool { return b.read(name).yes }

func (b *Broker) read(name string) parsed {
	b.once.Do(func() {
		b.parsed = make(map[string]parsed, len(brokerTable.defs))
		for i := range brokerTable.defs {
			name := brokerTable.defs[i].Name
			b.parsed[name] = parse(b.Get(name))
		}
	})
	if v, ok := b.parsed[name]; ok {
		return v
	}
	return parse(b.Get(name))
}

func parse(v string) parsed { return parsed{number: integer(v), yes: v == "true"} }

// Duration returns a setting that is given in milliseconds.
func (b *Broker) Duration(name string) time.Duration { return millis(b.Int(name)) }

// Inert lists the settings that were set and have no effect.
func (b *Broker) Inert() []string {
	var out []string
	for name := range b.set {
		def := brokerTable.byName[name]
		if IsOfListener(name) {
			def, _ = ofListener(name, b.listenerNames())
		}
		if def == nil || def.Inert {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func integer(v string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n
}

// millis converts milliseconds, with what exceeds a Duration as its maximum.
func millis(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	switch {
	case n > most:
		return 1<<63 - 1
	case n < 0:
		return -1
	}
	return time.Duration(n) * time.Millisecond
}
