// Package assignor computes the target assignment of a consumer group (KIP-848) or a
// share group (KIP-932): which member shall own which partitions of the topics that the
// group subscribes to. It owns Kafka's server-side assignors, range and uniform for
// consumer groups and simple for share groups, and nothing else: who votes for which,
// when a target is computed and how members get there is the group's business.
//
//	Input{Topics, Members{Topics, Previous}} → Range, Uniform or Simple → a list of partitions per member
//
// An assignor is a function of its input. It has no clock, lock or randomness,
// writes nothing that it was given, and its result shares no memory with the
// input: it runs as a task, beside the shard that asked for it. Where Kafka's
// result depends on the order of a hash map, ours depends on the order of the
// input, which is that of topic names and member ids.
//
// Whatever the assignor, each partition of a topic with a subscriber goes to one
// member, and that member subscribes to the topic. Simple may give it to more.
//
//	range.go    blocks of each topic, the same for topics of one size
//	uniform.go  sizes that differ by one at most, and few moves
//	hetero.go   uniform, where members subscribe to different topics
//	simple.go   as uniform, and partitions have several members if there are more of these
//	tasks.go    sticky, of the tasks of streams groups (KIP-1071), with standbys
//	owners.go   who owns which partition, while that is being decided
//	classes.go  members with the same topics, which are looked at together
//	heap.go     the first of many, while their order changes
//
// Time and memory grow with the partitions, the members, and the lists of topics
// that differ from one another; never with members times partitions.
package assignor

// Topic is a topic that members subscribe to.
type Topic struct {
	ID         [16]byte
	Name       string
	Partitions int32
}

// Partitions is a part of one topic.
type Partitions struct {
	Topic int32   // its index in Input.Topics
	List  []int32 // ascending
}

// Member is a member of the group.
type Member struct {
	ID       string
	Instance string // the group instance id, "" if it has none
	// Topics are those that the member subscribes to and that exist, by name or
	// by regex, as ascending indexes in Input.Topics. Members may share a list,
	// and should if they can: a list that many have is looked at once.
	Topics []int32
	// Previous is the last target, ascending by topic. What it has of a topic that
	// the member does not subscribe to (whatever its index), of a partition that
	// does not exist or that an earlier member has too, counts for nothing. A
	// static member has that of the member it replaced.
	Previous []Partitions
}

// Input is all that an assignor knows.
type Input struct {
	Topics  []Topic  // ascending by name
	Members []Member // ascending by id
}
