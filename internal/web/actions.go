package web

import (
	"context"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/groupview"
)

// Actions does what people want done, each by the request of the Kafka protocol that
// stands for it, through the broker's own handler. What that refuses is a *RefusedError,
// and what another broker has to do is an *ElsewhereError.
type Actions interface {
	CreateTopic(ctx context.Context, who Asker, t *NewTopic, validateOnly bool) (partitions int32, err error)
	DeleteTopic(ctx context.Context, who Asker, topic string) error
	AddPartitions(ctx context.Context, who Asker, topic string, count int32, validateOnly bool) error
	AlterTopic(ctx context.Context, who Asker, topic string, change *ChangedConfigs, validateOnly bool) error
	// Produce appends a record, and returns where it is.
	Produce(ctx context.Context, who Asker, topic string, r *Message) (partition int32, offset int64, err error)
	// DeleteRecords returns where each partition begins afterwards.
	DeleteRecords(ctx context.Context, who Asker, topic string, before map[int32]int64) (starts map[int32]int64, err error)

	// Committed returns what a group has committed: of the partitions that are named, or
	// of all.
	Committed(ctx context.Context, who Asker, group string, of []groupview.TopicPartition) (map[groupview.TopicPartition]int64, error)
	// Offsets returns the bounds of partitions, and where records of a time begin, if one
	// is given. Partitions without a leader are left out.
	Offsets(ctx context.Context, who Asker, of []groupview.TopicPartition, from *time.Time) (map[groupview.TopicPartition]Place, error)
	// Commit sets committed offsets of a group without members.
	Commit(ctx context.Context, who Asker, group string, to map[groupview.TopicPartition]int64) error
	DeleteGroup(ctx context.Context, who Asker, group string) error
	DeleteOffsets(ctx context.Context, who Asker, group, topic string, partitions []int32) error
	RemoveMember(ctx context.Context, who Asker, group string, m *MemberToRemove) error

	// SetPassword sets what a user logs in with, by the mechanisms that are named.
	SetPassword(ctx context.Context, who Asker, user, password string, mechanisms []string) error
	DeleteUser(ctx context.Context, who Asker, user string) error
	AddRule(ctx context.Context, who Asker, r auth.Rule) error
	// RemoveRule says whether there was such a rule.
	RemoveRule(ctx context.Context, who Asker, r auth.Rule) (found bool, err error)
	AlterQuota(ctx context.Context, who Asker, q *ChangedQuota, validateOnly bool) error
}

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

// RefusedError is what the Kafka protocol refuses.
type RefusedError struct {
	Code    int16  // Kafka's
	Name    string // Kafka's, as in TOPIC_ALREADY_EXISTS
	Message string // a sentence
	// Lacks is the right that lacks, and Command gives it.
	Lacks   *auth.Request
	Command string
	// Wait is how long to wait before trying again, if a quota is exceeded.
	Wait time.Duration
}

func (e *RefusedError) Error() string { return e.Message }

func (c *call) asker() Asker { return Asker{c.who, c.groups, c.host} }
