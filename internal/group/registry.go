package group

import (
	"muster/internal/group/classic"
	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/streams"
)

// kinds is the registry of the kinds of groups that there are. The first is that of groups
// that have only offsets.
var kinds = []kind.Kind{
	{Name: schema.Classic, Make: func(b kind.Base) kind.Group { return classic.New(b) }, APIs: classic.APIs},
	{Name: schema.Consumer, Make: func(b kind.Base) kind.Group { return consumer.New(b) }, APIs: consumer.APIs},
	{Name: schema.Streams, Make: func(b kind.Base) kind.Group { return streams.New(b) }, APIs: streams.APIs},
}
