package web

// ActQuery says how something is to be done.
type ActQuery struct {
	Preview bool `query:"preview" doc:"do nothing, and say what would be done"`
}

// Done is what was done, or would be.
type Done struct {
	Done      bool     `json:"done" doc:"false for a preview"`
	Sentences []string `json:"sentences" doc:"what was done, or would be, for people"`
	Refused   string   `json:"refused,omitempty" doc:"in a preview: why it would be refused now"`
	Effect    *Effect  `json:"effect,omitempty" doc:"what is lost or disturbed by it, in numbers"`
}

// Effect is what something destructive costs.
type Effect struct {
	Partitions int      `json:"partitions" doc:"how many it concerns"`
	Records    *int64   `json:"records" doc:"about how many are lost; null if unknown, and if none can be"`
	Bytes      *int64   `json:"bytes" doc:"that are lost; null if unknown, and if none can be"`
	Groups     []string `json:"groups" doc:"that it concerns, of those that you may see, at most 20"`
	Incomplete []Silent `json:"incomplete,omitempty" doc:"brokers whose groups are not among these"`
	MoreGroups int      `json:"moreGroups" doc:"how many there are besides these"`
	Members    int      `json:"members" doc:"of groups, that are disturbed"`
}

// MorePartitions is how many partitions a topic is to have.
type MorePartitions struct {
	Count int32 `json:"count" doc:"how many there are afterwards"`
}

// NewRecord is a record to produce.
type NewRecord struct {
	Partition *int32      `json:"partition,omitempty" doc:"absent for the one of the key, as Kafka's own clients choose it, or any without a key"`
	Key       *string     `json:"key,omitempty" doc:"absent for none"`
	Value     *string     `json:"value,omitempty" doc:"absent for none, which is a tombstone where a topic is compacted"`
	Headers   []NewHeader `json:"headers,omitempty"`
	Encoding  string      `json:"encoding,omitempty" doc:"of key, value and the values of headers: text, which is meant if absent, or base64"`
}

// NewHeader is a header of a record to produce.
type NewHeader struct {
	Key   string  `json:"key"`
	Value *string `json:"value,omitempty" doc:"absent for none"`
}

// Produced is where a record is.
type Produced struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    Offset `json:"offset"`
}

// RecordsBefore is which records of a topic are to be deleted.
type RecordsBefore struct {
	Partitions []PartitionOffset `json:"partitions" doc:"each once"`
}

// PartitionOffset is an offset in a partition.
type PartitionOffset struct {
	Partition int32  `json:"partition"`
	Offset    Offset `json:"offset" doc:"of the first record that stays; -1 for none"`
}

// ResetAsk is where the committed offsets of a group are to go.
type ResetAsk struct {
	Topic      string  `json:"topic,omitempty" doc:"absent for all topics that the group has committed offsets of"`
	Partitions []int32 `json:"partitions,omitempty" doc:"of the topic; absent for all"`
	To         string  `json:"to" doc:"beginning, end, offset, timestamp or shift"`
	Value      string  `json:"value,omitempty" doc:"the offset; the time as 2026-11-16T21:50:00Z, in milliseconds since 1970, or as -1h for an hour ago; how many offsets to shift by, back with a minus"`
}

// ResetPlan is what a reset would do.
type ResetPlan struct {
	Group      string           `json:"group"`
	State      string           `json:"state" doc:"of the group, in Kafka's words; Dead if there is none, and the reset creates it"`
	Members    int              `json:"members"`
	Partitions []ResetPartition `json:"partitions" doc:"by topic and number"`
	Sentences  []string         `json:"sentences" doc:"what would be done, for people"`
	Refused    string           `json:"refused,omitempty" doc:"why it would be refused now"`
}

// ResetPartition is what a reset would do to a partition.
type ResetPartition struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Committed *Offset `json:"committed" doc:"the offset that is committed now; null if none is"`
	To        *Offset `json:"to" doc:"what it becomes; null if it is left alone"`
	LogStart  *Offset `json:"logStartOffset" doc:"null if the partition has no leader"`
	LogEnd    *Offset `json:"logEndOffset" doc:"the high watermark"`
	Again     *int64  `json:"again" doc:"how many records are read again; null if unknown"`
	Skipped   *int64  `json:"skipped" doc:"how many unread records are skipped; null if unknown"`
	Clamped   bool    `json:"clamped" doc:"what was asked for lies outside of the log, so that it is moved to its nearest end"`
	Note      string  `json:"note,omitempty" doc:"what is special"`
}

// ResetOrder is a reset that somebody has seen the plan of.
type ResetOrder struct {
	Partitions []ResetMove `json:"partitions" doc:"each once, as the plan has them; those that it leaves alone are left out"`
}

// ResetMove is a partition of a reset.
type ResetMove struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Committed *Offset `json:"committed" doc:"that of the plan: if it is another by now, nothing is done"`
	To        Offset  `json:"to"`
}

// OffsetsToForget is which committed offsets of a group are to be deleted.
type OffsetsToForget struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions,omitempty" doc:"absent for all of the topic"`
}
