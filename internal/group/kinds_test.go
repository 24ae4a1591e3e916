package group

import (
	"muster/internal/group/classic"
	"muster/internal/group/consumer"
)

// classic returns a group if it is a classic one, nil if not.
func (s *Shard) classic(id string) *classic.Group {
	g, _ := s.Groups[id].(*classic.Group)
	return g
}

// consumer returns a group if it is a consumer group, nil if not.
func (s *Shard) consumer(id string) *consumer.Group {
	g, _ := s.Groups[id].(*consumer.Group)
	return g
}
