package group

// classic returns a group if it is a classic one, nil if not.
func (s *Shard) classic(id string) *classicGroup {
	g, _ := s.groups[id].(*classicGroup)
	return g
}

// consumer returns a group if it is a consumer group, nil if not.
func (s *Shard) consumer(id string) *consumerGroup {
	g, _ := s.groups[id].(*consumerGroup)
	return g
}
