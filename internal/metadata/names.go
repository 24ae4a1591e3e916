package metadata

import "fmt"

const maxTopicName = 249

// CheckTopicName says what is wrong with a topic name, nil if nothing.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a topic name must not be empty")
	case name == "." || name == "..":
		return fmt.Errorf("a topic cannot be named %q", name)
	case len(name) > maxTopicName:
		return fmt.Errorf("a topic name has at most %d characters, this one has %d", maxTopicName, len(name))
	}
	for _, c := range name {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return fmt.Errorf("topic name %q has the character %q; allowed are letters, digits, '.', '_' and '-'", name, c)
		}
	}
	return nil
}
