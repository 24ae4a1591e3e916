package metrics

import (
	"fmt"
	"regexp"
)

// Set is names that someone's dashboards know. Several can be on.
type Set uint8

// The sets.
const (
	KafkaExporter Set = 1 << iota
	LagExporter
	JMX
	Muster
)

var setNames = map[string]Set{"kafka_exporter": KafkaExporter, "lag_exporter": LagExporter, "jmx": JMX, "muster": Muster}

// Settings say what is exported.
type Settings struct {
	Sets      Set
	MaxSeries int
	Topics    Names
	Groups    Names
}

// Names says which names are exported. Nil is all of them to include, and none to
// exclude.
type Names struct{ Include, Exclude *regexp.Regexp }

func (n *Names) has(name string) bool {
	return (n.Include == nil || n.Include.MatchString(name)) && (n.Exclude == nil || !n.Exclude.MatchString(name))
}

// ParseSettings reads the settings muster.metrics.*: the sets in a list, the others by
// their names.
func ParseSettings(sets []string, maxSeries int64, get func(name string) string) (s Settings, err error) {
	s.MaxSeries = int(maxSeries)
	for _, name := range sets {
		set, ok := setNames[name]
		if !ok {
			return s, fmt.Errorf("muster.metrics.sets: there is no set %q", name)
		}
		s.Sets |= set
	}
	for name, into := range map[string]**regexp.Regexp{
		"muster.metrics.topics.include": &s.Topics.Include, "muster.metrics.topics.exclude": &s.Topics.Exclude,
		"muster.metrics.groups.include": &s.Groups.Include, "muster.metrics.groups.exclude": &s.Groups.Exclude,
	} {
		if *into, err = pattern(get(name)); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

// pattern compiles a regular expression that the whole of a name must match. Nothing is
// no expression.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	if _, err := regexp.Compile(text); err != nil {
		return nil, err // Of what was written, not of what we make of it.
	}
	return regexp.Compile(`^(?:` + text + `)$`)
}
