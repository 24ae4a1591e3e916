package schema

// record is a kind of record of __consumer_offsets, or of __share_group_state. From this table records_gen.go is
// generated. A new field is a line with the version that it came with, as in Kafka's own
// message definitions; a new kind of record is an entry.
type record struct {
	key      int    // the version of its key
	name     string // of its value's type; the record's has Record after it
	doc      string
	value    string // the doc of its value's type
	kind     string // the kind of group that it makes; "" for what any group may have
	names    []field
	fields   []field
	flexible int    // the first version of the value that is flexible, 0 for all; never for none
	version  string // the version that is written: a number, or a method of the value
	versions int    // how many versions of the value there are
	skip     bool   // a value of a later version is skipped, else it is an error
	open     bool   // what comes after the last field is of a later version, and skipped
	opaque   string // the value is these bytes, and only that it is there is known of it
	byHand   bool   // the key is read by hand
}

// field is a field of a key or a value.
type field struct {
	name, typ    string
	doc          string
	since, until int    // the versions that have it; until 0 is for good
	tag          int    // of a tagged field, counted from 1 here
	initial      string // what it is in versions that do not have it
	optional     bool   // an older muster left it and what comes after it out
}

const (
	never    = 1 << 10
	startTag = 10_000 // of machine.TxnStart
)

// structs are what fields consist of that are not plain values. A structure that has a
// check is checked, or put right, by hand after it was read.
var structs = []struct {
	name, doc string
	flexible  bool
	check     bool
	fields    []field
}{
	{"GroupMember", "is a member of a generation.", false, false, []field{
		{name: "MemberID", typ: "string"},
		{name: "InstanceID", typ: "*string", since: 3},
		{name: "ClientID", typ: "string"},
		{name: "ClientHost", typ: "string"},
		{name: "RebalanceTimeoutMillis", typ: "int32", since: 1, initial: "-1"},
		{name: "SessionTimeoutMillis", typ: "int32"},
		{name: "Subscription", typ: "[]byte"},
		{name: "Assignment", typ: "[]byte"},
	}},
	{"ClassicMember", "is what a group of the consumer protocol knows of a member that uses the classic one.", true, false, []field{
		{name: "SessionTimeoutMillis", typ: "int32"},
		{name: "Protocols", typ: "[]ClassicProtocol"},
	}},
	{"ClassicProtocol", "is a protocol that a member supports.", true, false, []field{
		{name: "Name", typ: "string"},
		{name: "Metadata", typ: "[]byte"},
	}},
	{"TopicPartitions", "are partitions of a topic.", true, false, []field{
		{name: "Topic", typ: "uuid"},
		{name: "Partitions", typ: "[]int32"},
	}},
	{"OwnedPartitions", "are partitions of a topic that a member may be working on. Epochs has, for each, the epoch " +
		"in which the member got it (KIP-1251). It is empty in records of Kafka before 4.3, and where its length would be wrong: " +
		"Kafka then takes the member's epoch, or 0 if that is negative, and so must every reader.", true, true, []field{
		{name: "Topic", typ: "uuid"},
		{name: "Partitions", typ: "[]int32"},
		{name: "Epochs", typ: "?[]int32", tag: 1},
	}},
	{"TaskIDs", "are tasks of a subtopology: a task has the partitions of one number of all its source topics.", true, false, []field{
		{name: "Subtopology", typ: "string"},
		{name: "Partitions", typ: "[]int32"},
	}},
	{"OwnedTasks", "are tasks of a subtopology that a member may be working on. Epochs has, for each, the epoch in which " +
		"the member got it; it is empty where that is not known.", true, true, []field{
		{name: "Subtopology", typ: "string"},
		{name: "Partitions", typ: "[]int32"},
		{name: "Epochs", typ: "?[]int32", tag: 1},
	}},
	{"KeyValue", "is a setting of a topic, a tag of a client, or a setting of an assignor.", true, false, []field{
		{name: "Key", typ: "string"},
		{name: "Value", typ: "string"},
	}},
	{"TopicInfo", "is an internal topic of a streams application.", true, false, []field{
		{name: "Name", typ: "string"},
		{name: "Partitions", typ: "int32", doc: "0 if it is for the broker to say"},
		{name: "Replication", typ: "int16", doc: "0 for the default"},
		{name: "Configs", typ: "[]KeyValue"},
	}},
	{"Copartition", "is source topics of a subtopology that must have the same number of partitions, as indexes in its lists.", true, false, []field{
		{name: "Sources", typ: "[]int16"},
		{name: "Patterns", typ: "[]int16"},
		{name: "Repartitions", typ: "[]int16"},
	}},
	{"Subtopology", "is a part of a topology that is worked on as a whole.", true, false, []field{
		{name: "ID", typ: "string"},
		{name: "Sources", typ: "[]string", doc: "topics that it reads, without the internal ones"},
		{name: "Patterns", typ: "[]string", doc: "regular expressions of topics that it reads"},
		{name: "Changelogs", typ: "[]TopicInfo"},
		{name: "Sinks", typ: "[]string", doc: "repartition topics that it writes"},
		{name: "Repartitions", typ: "[]TopicInfo", doc: "that it reads"},
		{name: "Copartitions", typ: "[]Copartition"},
	}},
	{"ShareTopic", "are partitions of a topic of which there is, or will be, state in the share coordinator.", true, false, []field{
		{name: "Topic", typ: "uuid"},
		{name: "Name", typ: "string"},
		{name: "Partitions", typ: "[]int32"},
	}},
	{"ShareDeletedTopic", "is a topic whose state in the share coordinator is being deleted.", true, false, []field{
		{name: "Topic", typ: "uuid"},
		{name: "Name", typ: "string"},
	}},
	{"ShareRun", "is offsets of a share partition with the state and the delivery count of their records.", true, false, []field{
		{name: "First", typ: "int64"},
		{name: "Last", typ: "int64"},
		{name: "State", typ: "int8"},
		{name: "Count", typ: "int16"},
	}},
}

var (
	member = field{name: "Member", typ: "string"}

	records = []record{
		{
			key: 1, name: "Offset", byHand: true, names: []field{{name: "Topic", typ: "string"}, {name: "Partition", typ: "int32"}},
			doc: "is an offset that a group committed.", value: "is a committed offset.",
			versions: 5, flexible: 4, version: "version", open: true,
			fields: []field{
				{name: "Offset", typ: "int64"},
				{name: "LeaderEpoch", typ: "int32", since: 3, initial: "-1"},
				{name: "Metadata", typ: "long"},
				{name: "CommitTimestamp", typ: "int64", doc: "in milliseconds"},
				{name: "ExpireTimestamp", typ: "int64", since: 1, until: 1, initial: "-1", doc: "when it may be deleted, in milliseconds; -1 by the broker's retention"},
				{name: "TopicID", typ: "uuid", since: 4, tag: 1},
				{name: "Start", typ: "start", since: 4, tag: startTag + 1, doc: "of the transaction that it is part of; zero if there is none or it is not known. Only needed until that has ended"},
			},
		},
		{
			key: 2, name: "Group", kind: "Classic", doc: "is a generation of a classic group.", value: "is a generation of a classic group.",
			versions: 4, flexible: never, version: "groupVersion", open: true,
			fields: []field{
				{name: "ProtocolType", typ: "string"},
				{name: "Generation", typ: "int32"},
				{name: "Protocol", typ: "*string"},
				{name: "Leader", typ: "*string"},
				{name: "CurrentStateTimestamp", typ: "int64", since: 2, initial: "-1"},
				{name: "Members", typ: "[]GroupMember"},
			},
		},
		{
			key: 3, name: "ConsumerEpoch", kind: "Consumer", doc: "is the epoch of a consumer group.",
			value:   "is the epoch of a group, with a hash of the topics that it subscribes to, zero for none or not known.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Epoch", typ: "int32"}, {name: "Hash", typ: "int64", tag: 1}},
		},
		{
			key: 4, name: "ConsumerTopics", kind: "Consumer", opaque: `\x00\x00\x01\x00`,
			doc: "is what Kafka before 4.1 remembered of the topics that a group subscribes to. What it says is not kept, only " +
				"that it is there: whoever bumps the group's epoch removes it.",
		},
		{
			key: 5, name: "ConsumerMember", kind: "Consumer", names: []field{member},
			doc: "is what a member has said of itself.", value: "is what a member has said of itself.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Instance", typ: "*string"},
				{name: "Rack", typ: "*string"},
				{name: "ClientID", typ: "string"},
				{name: "Host", typ: "string"},
				{name: "Topics", typ: "[]string"},
				{name: "Regex", typ: "*string", doc: "\"\" is none, as is nil"},
				{name: "RebalanceTimeoutMillis", typ: "int32"},
				{name: "Assignor", typ: "*string"},
				{name: "Classic", typ: "*ClassicMember", tag: 1, doc: "nil unless the member uses the classic protocol"},
			},
		},
		{
			key: 6, name: "ConsumerTargetEpoch", kind: "Consumer", doc: "is the group epoch that the target assignment is of.",
			value:   "is the group epoch of the target assignment, and when that was made, in milliseconds; zero if it is not known.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Epoch", typ: "int32"}, {name: "Timestamp", typ: "int64", tag: 1}},
		},
		{
			key: 7, name: "ConsumerTarget", kind: "Consumer", names: []field{member},
			doc: "is the target assignment of a member.", value: "is the target assignment of a member.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Assigned", typ: "[]TopicPartitions"}},
		},
		{
			key: 8, name: "ConsumerCurrent", kind: "Consumer", names: []field{member},
			doc:     "is the current assignment of a member.",
			value:   "is the current assignment of a member, with its epoch, the one before that, and its state.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Epoch", typ: "int32"},
				{name: "Previous", typ: "int32"},
				{name: "State", typ: "int8"},
				{name: "Assigned", typ: "[]OwnedPartitions"},
				{name: "Pending", typ: "[]OwnedPartitions", doc: "to be revoked"},
			},
		},
		{
			key: 10, name: "ShareMember", kind: "Share", names: []field{member},
			doc: "is what a member of a share group has said of itself.", value: "is what a member of a share group has said of itself.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Rack", typ: "*string"},
				{name: "ClientID", typ: "string"},
				{name: "Host", typ: "string"},
				{name: "Topics", typ: "[]string"},
			},
		},
		{
			key: 11, name: "ShareEpoch", kind: "Share", doc: "is the epoch of a share group.",
			value:   "is the epoch of a share group, with a hash of the topics that it subscribes to, zero for none.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Epoch", typ: "int32"}, {name: "Hash", typ: "int64"}},
		},
		{
			key: 12, name: "ShareTargetEpoch", kind: "Share", doc: "is the group epoch that the target assignment is of.",
			value:   "is the group epoch of the target assignment, and when that was made, in milliseconds; zero if it is not known.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Epoch", typ: "int32"}, {name: "Timestamp", typ: "int64", tag: 1}},
		},
		{
			key: 13, name: "ShareTarget", kind: "Share", names: []field{member},
			doc: "is the target assignment of a member of a share group.", value: "is the target assignment of a member of a share group.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Assigned", typ: "[]TopicPartitions"}},
		},
		{
			key: 14, name: "ShareCurrent", kind: "Share", names: []field{member},
			doc:     "is the current assignment of a member of a share group.",
			value:   "is the current assignment of a member of a share group, with its epoch, the one before that, and its state.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Epoch", typ: "int32"},
				{name: "Previous", typ: "int32"},
				{name: "State", typ: "int8"},
				{name: "Assigned", typ: "[]TopicPartitions"},
			},
		},
		{
			key: 15, name: "ShareTopics", kind: "Share",
			doc:     "says of which partitions the share coordinator has state for a share group, and is asked to make or to delete it.",
			value:   "is the partitions of which the share coordinator has state for a share group, is asked to make it, and the topics of which it is asked to delete it.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Initializing", typ: "[]ShareTopic"},
				{name: "Initialized", typ: "[]ShareTopic"},
				{name: "Deleting", typ: "[]ShareDeletedTopic"},
			},
		},
		{
			key: 16, name: "ConsumerRegex", kind: "Consumer", names: []field{{name: "Regex", typ: "string"}},
			doc: "is what a regular expression was found to match.", value: "is what a regular expression matched: topics, as of which version of the metadata, and when.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Topics", typ: "[]string"}, {name: "Version", typ: "int64"}, {name: "Timestamp", typ: "int64"}},
		},
		{
			key: 17, name: "StreamsEpoch", kind: "Streams", doc: "is the epoch of a streams group.",
			value: "is the epoch of a streams group, with a hash of the topics that its topology needs, the epoch of " +
				"the topology that was found to have all of them, -1 for none, and the settings of the assignor.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Epoch", typ: "int32"},
				{name: "Hash", typ: "int64"},
				{name: "Validated", typ: "int32", tag: 1, initial: "-1"},
				{name: "Configs", typ: "?[]KeyValue", tag: 2},
			},
		},
		{
			key: 19, name: "StreamsMember", kind: "Streams", names: []field{member},
			doc: "is what a member of a streams group has said of itself.", value: "is what a member of a streams group has said of itself.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Instance", typ: "*string"},
				{name: "Rack", typ: "*string"},
				{name: "ClientID", typ: "string"},
				{name: "Host", typ: "string"},
				{name: "RebalanceTimeoutMillis", typ: "int32"},
				{name: "TopologyEpoch", typ: "int32"},
				{name: "Process", typ: "string", doc: "the instance of the application, which has a member for each thread"},
				{name: "Endpoint", typ: "*Endpoint", doc: "nil unless it answers queries"},
				{name: "Tags", typ: "[]KeyValue"},
			},
		},
		{
			key: 20, name: "StreamsTargetEpoch", kind: "Streams", doc: "is the group epoch that the target assignment is of.",
			value:   "is the group epoch of the target assignment, and when that was made, in milliseconds; zero if it is not known.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Epoch", typ: "int32"}, {name: "Timestamp", typ: "int64", tag: 1}},
		},
		{
			key: 21, name: "StreamsTarget", kind: "Streams", names: []field{member},
			doc: "is the target assignment of a member.", value: "is the target assignment of a member, by role.",
			version: "0", versions: 1, skip: true,
			fields: []field{{name: "Active", typ: "[]TaskIDs"}, {name: "Standby", typ: "[]TaskIDs"}, {name: "Warmup", typ: "[]TaskIDs"}},
		},
		{
			key: 22, name: "StreamsCurrent", kind: "Streams", names: []field{member},
			doc:     "is the current assignment of a member.",
			value:   "is the current assignment of a member by role, with its epoch, the one before that, and its state.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "Epoch", typ: "int32"},
				{name: "Previous", typ: "int32"},
				{name: "State", typ: "int8"},
				{name: "Active", typ: "[]OwnedTasks"},
				{name: "Standby", typ: "[]OwnedTasks"},
				{name: "Warmup", typ: "[]OwnedTasks"},
				{name: "PendingActive", typ: "[]OwnedTasks", doc: "to be revoked"},
				{name: "PendingStandby", typ: "[]OwnedTasks"},
				{name: "PendingWarmup", typ: "[]OwnedTasks"},
			},
		},
		{
			key: 23, name: "StreamsTopology", kind: "Streams", doc: "is the topology of a streams group.",
			value: "is the topology of a streams application, as its members say it.", version: "0", versions: 1, skip: true,
			fields: []field{{name: "Epoch", typ: "int32"}, {name: "Subtopologies", typ: "[]Subtopology"}},
		},

		// Ours, with keys that Kafka's own tools skip.
		{
			key: 1000, name: "Rebalance", kind: "Classic",
			doc:     "says that a classic group has begun to form the generation after the one that its GroupRecord has.",
			value:   "is a rebalance that is not over.",
			version: "0", versions: 1, flexible: never, skip: true, open: true,
			fields: []field{
				{name: "Generation", typ: "int32", doc: "of the GroupRecord that it belongs to"},
				{name: "Loads", typ: "count", doc: "how often the group was loaded since it began"},
				{name: "Lives", typ: "count", optional: true, initial: "v.Loads", doc: "how many loads of the shard have given out generations after it was loaded, see kind.NextAfterLoad"},
			},
		},
		{
			key: 1001, name: "Departure", kind: "Classic", names: []field{member},
			doc: "says that a member of the generation that the GroupRecord has is no longer a member. A record of its own is small; " +
				"the whole group's, written again for each of a thousand members that leave, is not.",
			value:   "is a member that is gone.",
			version: "0", versions: 1, flexible: never, skip: true, open: true,
			fields: []field{{name: "Generation", typ: "int32", doc: "of the GroupRecord that it belongs to"}},
		},
		{
			key: 1002, name: "Silence", names: []field{member},
			doc:     "says how long a member was silent that was loaded and not heard of since.",
			value:   "is how long a member was silent, over all loads.",
			version: "0", versions: 1, flexible: never, skip: true, open: true,
			fields: []field{{name: "Lasted", typ: "millis"}},
		},
	}

	// shareRecords are those of __share_group_state, which counts its keys for itself.
	shareRecords = []record{
		{
			key: 0, name: "ShareSnapshot", names: sharePartition,
			doc: "is all that is known of a share partition (KIP-932).", value: "is all that is known of a share partition.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "SnapshotEpoch", typ: "int32", doc: "how many snapshots there were before"},
				{name: "StateEpoch", typ: "int32"},
				{name: "LeaderEpoch", typ: "int32"},
				{name: "Start", typ: "int64", doc: "-1 if it is for the leader to say"},
				{name: "CreateTimestamp", typ: "int64", doc: "in milliseconds"},
				{name: "WriteTimestamp", typ: "int64", doc: "in milliseconds"},
				{name: "Runs", typ: "[]ShareRun"},
				completed,
			},
		},
		{
			key: 1, name: "ShareUpdate", names: sharePartition,
			doc: "is what changed of a share partition since a snapshot.", value: "is what changed since a snapshot.",
			version: "0", versions: 1, skip: true,
			fields: []field{
				{name: "SnapshotEpoch", typ: "int32", doc: "of the snapshot that it comes after"},
				{name: "LeaderEpoch", typ: "int32", doc: "-1 if it is as it was"},
				{name: "Start", typ: "int64", doc: "-1 if it is as it was"},
				{name: "Runs", typ: "[]ShareRun"},
				completed,
			},
		},
	}
	sharePartition = []field{{name: "Topic", typ: "uuid"}, {name: "Partition", typ: "int32"}}
	completed      = field{name: "Completed", typ: "int32", tag: 1, initial: "-1", doc: "how many offsets from the start on need no more delivery (KIP-1226), -1 if it is not known"}
)
