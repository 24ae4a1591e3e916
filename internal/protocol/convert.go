package protocol

import (
	"encoding/json"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TagConvert is the number of a tagged field of muster's own in DescribeTopicPartitions. In a
// topic of the request it asks for a step of the conversion of that topic to another layout in Redis; in
// the first partition of the response it is what came of it. See TagBehind for how
// other brokers and clients take it.
const TagConvert = 28025

// The steps of a conversion. Those up to ConvertSwitch are about the first partition of the answer, and for
// its leader; those about groups are about the groups of the broker that is asked.
const (
	ConvertPreview   = "preview"   // what there is to do
	ConvertPrepare   = "prepare"   // a part of it, while clients go on
	ConvertSwitch    = "switch"    // the rest: the partition is of the new layout then
	ConvertGroups    = "groups"    // which groups have offsets of before, or members that read the topic
	ConvertLeave     = "leave"     // remove the members of these
	ConvertFinish    = "finish"    // write the setting, once all partitions are converted
	ConvertTranslate = "translate" // replace the committed offsets of before
)

// Convert asks for a step.
type Convert struct {
	Step string `json:"step"`
	// Run tells one conversion of a topic from another.
	Run string `json:"run"`
}

// Converting is what came of a step.
type Converting struct {
	// Unable says why nothing did; the rest is empty then.
	Unable string `json:"unable,omitempty"`
	// Busy says that this is because another conversion of the topic is under way.
	Busy bool `json:"busy,omitempty"`
	// Layout is that of the partition, and Setting the one that the topic is to have.
	Layout  string `json:"layout,omitempty"`
	Setting string `json:"setting,omitempty"`
	// Records and Bytes are what there is to convert, and Millis how long that takes about.
	Records int64 `json:"records,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	Millis  int64 `json:"millis,omitempty"`
	// Copied says that the records are copied, and keep their offsets.
	Copied bool `json:"copied,omitempty"`
	// Prepared is how many records are prepared.
	Prepared int64 `json:"prepared,omitempty"`
	// Done says that the step need not be asked for again.
	Done   bool              `json:"done,omitempty"`
	Groups []ConvertingGroup `json:"groups,omitempty"`
}

// ConvertingGroup is a group that a conversion concerns.
type ConvertingGroup struct {
	Name    string `json:"name"`
	Offsets int    `json:"offsets"` // committed offsets of before
	Members int    `json:"members"` // that read the topic, or may
	// Uncommitted is how many partitions the members have to begin at as their settings say.
	Uncommitted int `json:"uncommitted"`
}

// AskConvert asks for a step in a topic of a DescribeTopicPartitions request.
func AskConvert(topic *kmsg.Tags, c Convert) { setJSON(topic, TagConvert, c) }

// AsksConvert returns the step that a topic of a DescribeTopicPartitions request asks for, nil if it asks for none.
func AsksConvert(topic *kmsg.Tags) *Convert { return getJSON[Convert](topic, TagConvert) }

// SetConverting puts what came of a step into a partition of a DescribeTopicPartitions response.
func SetConverting(partition *kmsg.Tags, c *Converting) { setJSON(partition, TagConvert, c) }

// GetConverting returns what came of a step, nil if none was asked for.
func GetConverting(partition *kmsg.Tags) *Converting {
	return getJSON[Converting](partition, TagConvert)
}

func setJSON(tags *kmsg.Tags, number uint32, v any) {
	if value, err := json.Marshal(v); err == nil { // There is nothing in it that could not be written.
		tags.Set(number, value)
	}
}

func getJSON[T any](tags *kmsg.Tags, number uint32) (out *T) {
	tags.Each(func(tag uint32, value []byte) {
		v := new(T)
		if tag == number && json.Unmarshal(value, v) == nil {
			out = v
		}
	})
	return out
}
