package share

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/metadata"
)

// What is asked for about the offsets of share groups is parked until share coordinators have
// answered. maxParked bounds how many bytes of that a shard holds.
const maxParked = 8 << 20

// What parked requests are counted for.
const (
	parkedRequest   = 400
	parkedTopic     = 120
	parkedPartition = 120
)

// park makes room for a request that waits; whoever answers it gives it back.
func park(x *kind.Step, bytes int) *kerr.Error {
	if x.Waiting+bytes > maxParked {
		return kerr.CoordinatorLoadInProgress
	}
	x.Waiting += bytes
	return nil
}

// empty finds a group whose offsets may be changed, nil if there is none.
func empty(x *kind.Step, id string) (*Group, *kerr.Error) {
	g, ok := x.Groups[id].(*Group)
	switch {
	case id == "":
		return nil, kerr.InvalidGroupID
	case !ok && x.Groups[id] != nil:
		return nil, kerr.GroupIDNotFound
	case !ok:
		return nil, nil
	case !g.IsEmpty():
		return nil, kerr.NonEmptyGroup
	case g.isBusy(x):
		return nil, kerr.CoordinatorLoadInProgress // It may be tried again soon.
	}
	return g, nil
}

// find finds a topic by its name.
func find(image *metadata.Image, name string) *metadata.Topic {
	if image == nil {
		return nil
	}
	return image.Topic(name)
}

// reasonOf is an error as the answer to a client has it.
func reasonOf(err *kerr.Error) *string { return &err.Description }
