package group

// subscribes says whether a member of the group subscribes to the topic. It
// errs on the side of yes: a member whose subscription cannot be read may.
func (g *classicGroup) subscribes() func(topic string) bool {
	topics := map[string]bool{}
	unknown := false
	for m := g.members.first; m != nil; m = m.next {
		list, err := subscribedTopics(m.metadata(g.protocol))
		if err != nil {
			unknown = true
			break
		}
		for _, t := range list {
			topics[t] = true
		}
	}
	return func(topic string) bool { return unknown || topics[topic] }
}
