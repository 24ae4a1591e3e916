package web

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Offset is an offset in JSON: a string, since on Redis offsets are larger than the
// numbers that JavaScript can tell apart.
type Offset int64

// MarshalText implements encoding.TextMarshaler.
func (o Offset) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(o), 10), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Offset) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*o = Offset(n)
	return err
}

func offset(n *int64) *Offset {
	if n == nil {
		return nil
	}
	o := Offset(*n)
	return &o
}

// RawEntry is an entry of the journal as the broker wrote it.
type RawEntry json.RawMessage

// MarshalJSON implements json.Marshaler.
func (r RawEntry) MarshalJSON() ([]byte, error) { return json.RawMessage(r).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (r *RawEntry) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(r).UnmarshalJSON(b) }

// Silent is a broker of which an answer has nothing.
type Silent struct {
	Broker  int32  `json:"broker" doc:"its node id"`
	Message string `json:"message" doc:"why"`
}

// known returns a time, nil for none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// finite returns a number of seconds, nil if it is never.
func finite(seconds float64) *float64 {
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return nil
	}
	return &seconds
}

// some returns a list that is not null in JSON.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// TopicsQuery asks for topics.
type TopicsQuery struct {
	Q        string `query:"q" doc:"a part of the name, in large or small letters"`
	Internal bool   `query:"internal" doc:"also the topics in which the broker keeps what it needs itself"`
	Sort     string `query:"sort" doc:"name, partitions, bytes or groups; with a minus for the reverse"`
	Limit    int    `query:"limit" doc:"how many, at most 1000; 50 if not given"`
	After    string `query:"after" doc:"next of the page before"`
}

// TopicList is a page of topics.
type TopicList struct {
	At         *time.Time `json:"at" doc:"when the topics were looked at; null before the first look"`
	Topics     []TopicRow `json:"topics" csv:"rows" doc:"in the order that was asked for"`
	Next       string     `json:"next,omitempty" doc:"what to give as after for the next page; absent on the last"`
	Matched    int        `json:"matched" doc:"how many topics fit the filters"`
	Incomplete []Silent   `json:"incomplete" doc:"brokers whose sizes and groups are not in the numbers"`
}

// TopicRow is a topic in a list.
type TopicRow struct {
	Name       string `json:"name"`
	ID         string `json:"id"`
	Internal   bool   `json:"internal"`
	Partitions int    `json:"partitions"`
	Leaderless int    `json:"leaderless" doc:"partitions without a leader"`
	Bytes      int64  `json:"bytes" doc:"of the partitions that this broker leads"`
	Groups     int    `json:"groups" doc:"that read it or have committed offsets of it, of those that you may see"`
}

// TopicDetail is a topic.
type TopicDetail struct {
	At         *time.Time       `json:"at" doc:"when the partitions were looked at; null before the first look"`
	Name       string           `json:"name"`
	ID         string           `json:"id"`
	Internal   bool             `json:"internal"`
	Partitions []TopicPartition `json:"partitions"`
	Settings   []TopicSetting   `json:"settings" null:"yes" doc:"those that were set for this topic; null unless you may DESCRIBE_CONFIGS the topic"`
	Groups     []TopicGroup     `json:"groups" doc:"that read it or have committed offsets of it, of those that you may see, by name"`
	MoreGroups int              `json:"moreGroups" doc:"how many there are besides these; /groups?topic= lists all"`
	Streams    *string          `json:"streams" doc:"what the Redis keys of its streams begin with; the number of the partition follows. null if Redis clients cannot read its records"`
	Incomplete []Silent         `json:"incomplete" doc:"brokers whose partitions and groups are not in the answer"`
}

// TopicPartition is a partition of a topic.
type TopicPartition struct {
	Partition        int32   `json:"partition"`
	Leader           *int32  `json:"leader" doc:"the node id of its broker; null if there is none"`
	LogStartOffset   *Offset `json:"logStartOffset" doc:"null unless this broker leads it"`
	LogEndOffset     *Offset `json:"logEndOffset" doc:"the high watermark"`
	LastStableOffset *Offset `json:"lastStableOffset" doc:"what readers of committed records may read up to"`
	Records          *int64  `json:"records" doc:"about how many there are; null if offsets do not tell, as on Redis"`
	Bytes            *int64  `json:"bytes"`
}

// TopicSetting is a setting of a topic.
type TopicSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// TopicGroup is a group that reads a topic.
type TopicGroup struct {
	Name       string  `json:"name"`
	State      string  `json:"state"`
	Members    int     `json:"members"`
	Partitions int     `json:"partitions" doc:"of the topic, with a committed offset"`
	Lag        int64   `json:"lag" doc:"in this topic, in records"`
	LagUnknown bool    `json:"lagUnknown" doc:"a part of the lag is not known"`
	LagSeconds float64 `json:"lagSeconds" doc:"in this topic"`
}
