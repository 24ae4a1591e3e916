// Package audit is the form of the audit log: who logged in, who was refused what, and
// who changed what, written as JSON to the topic __audit_log.
//
//	handler (knows who asks and what came of it) → broker (counts, stores) → __audit_log → muster audit
//
// It owns the types and their names in JSON, which are an interface to the outside:
// any Kafka client can read the topic. It also counts what may happen as often as
// someone likes (counter.go), so that no one fills the log by trying again and
// again, and puts entries into words (line.go). It is pure: it is told the time, does
// nothing by itself, and never sees a password.
package audit

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is what someone did, or was not allowed to do.
type Entry struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Principal is who it was, as in User:alice. Of a login that failed it is who someone
	// said to be.
	Principal string `json:"principal,omitempty"`
	Host      string `json:"host,omitempty"`
	ClientID  string `json:"clientId,omitempty"`
	// Via is the way that it came, and Request what it was there: for kafka the name of
	// the API.
	Via     Via    `json:"via"`
	Request string `json:"request,omitempty"`
	// Broker is the node id of the one that was asked.
	Broker int32 `json:"broker"`
	// Operation is what was denied, under Kafka's name.
	Operation string `json:"operation,omitempty"`
	// Mechanism is that of a login, and Reason why it failed.
	Mechanism string `json:"mechanism,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Resources are the first of those that it was about; ResourceN counts all of them.
	Resources []Resource `json:"resources,omitempty"`
	ResourceN int        `json:"resourceCount,omitempty"`
	// Count is how often the same has happened again since Since, in an entry that stands
	// for all of these. The first was told by an entry of its own.
	Count int       `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// LeftOut is how many entries before this one are missing, because they came faster
	// than they could be written.
	LeftOut int `json:"leftOut,omitempty"`
}

// Resource is something that was changed, or that someone may not touch.
type Resource struct {
	Type   string `json:"type"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"` // what it was made, or what was made of it
}

// The types of resources besides those that rules are about.
const (
	TypeTopic   = "topic"
	TypeGroup   = "group"
	TypeBroker  = "broker"
	TypeCluster = "cluster"
	TypeUser    = "user"
	TypeQuota   = "quota"
	// TypeProducer is a producer by its id, where no one knows its transactional id.
	TypeProducer = "producer"
	// TypeRequest is a request that a broker may not send to another.
	TypeRequest = "request"
)

// Via is the way that someone came.
type Via string

// ViaKafka is a request of the Kafka protocol.
const ViaKafka Via = "kafka"

// Kind says what an entry tells.
type Kind string

// The kinds of entries.
const (
	Login       Kind = "login"
	LoginFailed Kind = "login-failed"
	Logout      Kind = "logout" // of those who come over HTTP; others only hang up
	Denied      Kind = "denied"

	TopicCreated    Kind = "topic-created"
	TopicDeleted    Kind = "topic-deleted"
	PartitionsAdded Kind = "partitions-added"
	// PartitionsReassigned is that partitions were given to other brokers.
	PartitionsReassigned Kind = "partitions-reassigned"
	RecordsDeleted       Kind = "records-deleted"
	SettingsChanged      Kind = "settings-changed"
	GroupDeleted         Kind = "group-deleted"
	OffsetsDeleted       Kind = "offsets-deleted"
	OffsetsSet           Kind = "offsets-set"    // by someone who is no member of the group
	MemberRemoved        Kind = "member-removed" // by a person, over HTTP
	// RecordProduced is that a person has produced a record, over HTTP.
	RecordProduced Kind = "record-produced"
	// TransactionEnded is that someone wrote the end of a transaction to its partitions,
	// past the coordinator.
	TransactionEnded Kind = "transaction-ended"
	RuleAdded        Kind = "acl-added"
	RuleRemoved      Kind = "acl-removed"
	UserSet          Kind = "user-set"
	UserDeleted      Kind = "user-deleted"
	QuotaChanged     Kind = "quota-changed"
	// SecretRotated is that brokers were given another secret to know each other by.
	SecretRotated Kind = "secret-rotated"
)

// Kinds returns all kinds, in the order of the documents.
func Kinds() []Kind {
	return []Kind{
		Login, LoginFailed, Logout, Denied,
		TopicCreated, TopicDeleted, PartitionsAdded, PartitionsReassigned, RecordsDeleted, SettingsChanged,
		GroupDeleted, OffsetsDeleted, OffsetsSet, MemberRemoved, RecordProduced, TransactionEnded, RuleAdded, RuleRemoved, UserSet, UserDeleted, QuotaChanged, SecretRotated,
	}
}

// Counted says whether clients do such things all the time, or can as often as they
// like, so that only the first is told at once. A consumer that has no group to join
// commits its offsets as an operator sets them, and a Streams application deletes
// records every half a minute.
func (k Kind) Counted() bool {
	switch k {
	case Login, LoginFailed, Logout, Denied, OffsetsSet, RecordsDeleted, RecordProduced, TransactionEnded:
		return true
	}
	return false
}

// Counted says whether an entry is only counted if the same was told just now. What a
// person does over HTTP to a group or a topic is told each time.
func (e *Entry) Counted() bool {
	return e.Kind.Counted() && (e.Via != ViaHTTP || e.Kind != OffsetsSet && e.Kind != RecordsDeleted)
}

const (
	// maxText is how much of a text of a client's is kept, in bytes.
	maxText = 255
	// maxResources is how many resources an entry names.
	maxResources = 20
)

// Bounded returns the entry with texts and lists cut to what an entry may have. What it
// returns shares no memory with what came from a client.
func (e Entry) Bounded() Entry {
	for _, s := range []*string{&e.Principal, &e.Host, &e.ClientID, &e.Request, &e.Operation, &e.Mechanism, &e.Reason} {
		*s = cut(*s)
	}
	e.ResourceN = max(e.ResourceN, len(e.Resources))
	some := make([]Resource, min(len(e.Resources), maxResources))
	for i := range some {
		r := e.Resources[i]
		some[i] = Resource{Type: cut(r.Type), Name: cut(r.Name), Detail: cut(r.Detail)}
	}
	e.Resources = some
	return e
}

// Size is about how many bytes of memory an entry takes, for those who let some wait.
func (e *Entry) Size() int {
	n := 512 + len(e.Principal) + len(e.Host) + len(e.ClientID) + len(e.Request) + len(e.Operation) + len(e.Mechanism) + len(e.Reason)
	for i := range e.Resources {
		r := &e.Resources[i]
		n += 48 + len(r.Type) + len(r.Name) + len(r.Detail)
	}
	return n
}

// cut returns a copy of a text that is not too long, and valid in JSON.
func cut(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(strings.Clone(s), "\uFFFD")
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.ToValidUTF8(s[:end], "\uFFFD") + "…"
}
