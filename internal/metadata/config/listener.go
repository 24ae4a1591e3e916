package config

import (
	"strings"
	"time"
)

// Scope says for what a setting can be set by itself.
type Scope int8

// The scopes.
const (
	// Whole settings are the broker's only.
	Whole Scope = iota
	// Listener settings may have listener.name.<listener>. before their names.
	Listener
	// Mechanism settings may also have listener.name.<listener>.<mechanism>. there.
	Mechanism
)

const listenerPrefix = "listener.name."

// IsOfListener says whether a name is that of a setting of one listener.
func IsOfListener(name string) bool { return strings.HasPrefix(name, listenerPrefix) }

// ofListener finds what a name with a listener before it means: the setting and, if that
// stands before it too, the mechanism. Listeners and mechanisms are in small letters there,
// as in Kafka.
func ofListener(name string, listeners []string) (def *Def, err error) {
	rest, found := "", false
	for _, l := range listeners {
		if after, ok := strings.CutPrefix(name, listenerPrefix+strings.ToLower(l)+"."); ok {
			rest, found = after, true
		}
	}
	if !found {
		return nil, invalid("setting %q begins with no listener's name in small letters; there are %s", name, strings.ToLower(strings.Join(listeners, ", ")))
	}
	if unservedOfListener(rest) {
		d := inert(name)
		return &d, nil
	}
	least := Listener
	for _, m := range mechanisms {
		if after, ok := strings.CutPrefix(rest, strings.ToLower(m)+"."); ok {
			rest, least = after, Mechanism
			break
		}
	}
	switch def = brokerTable.byName[rest]; {
	case def == nil:
		return nil, invalid("setting %q: %s", name, brokerTable.unknown("broker", rest))
	case def.Scope < least:
		return nil, invalid("setting %q: %s cannot be set for that alone", name, rest)
	}
	return def, nil
}

// listenerNames returns the names of the listeners that there are.
func (b *Broker) listenerNames() (names []string) {
	for _, entry := range SplitList(b.Get("listeners")) {
		name, _, _ := strings.Cut(entry, "://")
		names = append(names, name)
	}
	return names
}

// checkListeners checks the settings of single listeners.
func (b *Broker) checkListeners(name, value string) error {
	def, err := ofListener(name, b.listenerNames())
	if err != nil {
		return err
	}
	return def.Check(value)
}

// Of is the settings as a listener has them or, if one is named, a mechanism on it: those
// of the mechanism there, else those of the listener, else those of the broker.
func (b *Broker) Of(listener, mechanism string) Settings {
	return Settings{b, listenerPrefix + strings.ToLower(listener) + ".", strings.ToLower(mechanism)}
}

// Settings are the broker's as something in it has them.
type Settings struct {
	broker              *Broker
	listener, mechanism string
}

// Get returns a setting's value.
func (s Settings) Get(name string) string {
	if s.mechanism != "" {
		if v, ok := s.broker.set[s.listener+s.mechanism+"."+name]; ok {
			return v
		}
	}
	if v, ok := s.broker.set[s.listener+name]; ok {
		return v
	}
	return s.broker.Get(name)
}

// Int returns a number.
func (s Settings) Int(name string) int64 { return integer(s.Get(name)) }

// Duration returns a setting that is given in milliseconds.
func (s Settings) Duration(name string) time.Duration { return millis(s.Int(name)) }
