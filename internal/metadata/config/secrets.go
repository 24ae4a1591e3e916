package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// reference is what stands in a value for something kept elsewhere: ${env:NAME} is an
// environment variable, and ${file:/path} what is in a file. Other words before the colon
// are refused: a password that was meant to be looked up must not be one by itself.
var reference = regexp.MustCompile(`\$\{([A-Za-z]+):([^}]*)\}`)

// Lookup finds what a reference stands for.
type Lookup func(name string) (string, error)

// Resolve returns settings in which values stand in the place of references. Errors name the
// setting and the reference, and no value.
func Resolve(set map[string]string, kinds map[string]Lookup) (map[string]string, error) {
	out := maps.Clone(set)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		var failed error
		// One pass: what a reference stands for is not searched for others.
		out[name] = reference.ReplaceAllStringFunc(set[name], func(ref string) string {
			parts := reference.FindStringSubmatch(ref)
			lookup := kinds[parts[1]]
			if lookup == nil {
				failed = fmt.Errorf("%s: %s is neither ${env:NAME} nor ${file:/path}", name, ref)
				return ""
			}
			value, err := lookup(parts[2])
			if err != nil && failed == nil {
				failed = fmt.Errorf("%s: %s: %w", name, ref, err)
			}
			return value
		})
		if failed != nil {
			return nil, failed
		}
	}
	return out, nil
}

// HasReference says whether something in a value is kept elsewhere.
func HasReference(value string) bool { return reference.MatchString(value) }

// IsSecret says whether a setting's value is for no one's eyes.
func IsSecret(name string) bool {
	if def := BrokerDef(name); def != nil {
		return def.Type == Password
	}
	// The end of the name is that of the setting, whatever stands before it.
	return IsOfListener(name) && slices.ContainsFunc(brokerTable.defs, func(d Def) bool {
		return d.Type == Password && d.Scope != Whole && len(name) > len(d.Name) && name[len(name)-len(d.Name)-1:] == "."+d.Name
	})
}
