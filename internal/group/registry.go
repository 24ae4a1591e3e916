package group

import "muster/internal/group/schema"

// kinds is the registry. The first is that of groups that have only offsets.
var kinds []kind

func init() {
	kinds = []kind{
		{schema.Classic, func(b base) Group { return newClassicGroup(b) }, classicRequest},
		{schema.Consumer, func(b base) Group { return newConsumerGroup(b) }, consumerRequest},
	}
}
