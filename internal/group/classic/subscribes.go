package classic

import "muster/internal/group/subscription"

// subscribes says whether a member of the group subscribes to the topic. It
// errs on the side of yes: a member whose subscription cannot be read may.
func (g *Group) subscribes() func(topic string) bool {
	topics := map[string]bool{}
	unknown := false
	for m := g.Members.First; m != nil; m = m.Next {
		list, err := subscription.SubscribedTopics(m.Metadata(g.Protocol))
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
