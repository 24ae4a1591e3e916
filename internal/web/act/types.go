package act

import "muster/internal/auth"

// Asker is who wants something done, and where they are.
type Asker struct {
	Principal auth.Principal
	Groups    auth.Groups
	Host      string // In the form of auth.Host.
}

// Message is a record to produce.
type Message struct {
	Partition  *int32 // nil for the one of the key, or any without a key
	Key, Value []byte // nil for none
	Headers    []MessageHeader
}

// MessageHeader is a header of a record.
type MessageHeader struct {
	Key   string
	Value []byte // nil for none
}

// Place is where a partition begins and ends.
type Place struct {
	Start, End int64
	At         int64 // where records of the time begin; End if there are none
	Dense      bool  // a difference of offsets is a number of records
}

// NewTopic is a topic to create.
type NewTopic struct {
	Name         string            `json:"name"`
	Partitions   *int32            `json:"partitions,omitempty" doc:"how many; absent for num.partitions of the broker"`
	Configs      map[string]string `json:"configs,omitempty" doc:"settings of the topic, under Kafka's names"`
	ValidateOnly bool              `json:"validateOnly,omitempty" doc:"the same as preview"`
}

// ChangedConfigs is what settings of a topic are to become.
type ChangedConfigs struct {
	Set    map[string]string `json:"set,omitempty" doc:"settings and their values"`
	Delete []string          `json:"delete,omitempty" doc:"settings that are to be as by default"`
}

// MemberToRemove is a member that is to leave its group.
type MemberToRemove struct {
	Member   string `json:"memberId,omitempty" doc:"of a member; absent for a static one"`
	Instance string `json:"instanceId,omitempty" doc:"of a static member"`
	Reason   string `json:"reason,omitempty" doc:"for the journal"`
}

// ChangedQuota is what quotas of someone are to become.
type ChangedQuota struct {
	Entity []QuotaPart  `json:"entity" doc:"whose they are: a user, a client-id, both, or an ip"`
	Set    []QuotaValue `json:"set,omitempty"`
	Remove []string     `json:"remove,omitempty" doc:"names of quotas"`
}

// QuotaPart is a part of whom quotas are for.
type QuotaPart struct {
	Type string  `json:"type" doc:"user, client-id or ip"`
	Name *string `json:"name" doc:"null for all that have none of their own"`
}

// QuotaValue is a quota.
type QuotaValue struct {
	Name  string  `json:"name" doc:"producer_byte_rate, consumer_byte_rate, controller_mutation_rate, request_percentage or connection_creation_rate"`
	Value float64 `json:"value" doc:"a second, or percent"`
}
