package web

import (
	"time"

	"muster/internal/web/problem"
	"muster/internal/web/records"
)

// RecordsQuery asks for records of a topic.
type RecordsQuery struct {
	From      string   `query:"from" doc:"where the search begins: beginning, end, offset:4711, time:2026-11-17T01:30:00Z, or time:-1h for an hour ago; beginning if not given, end if it follows"`
	To        string   `query:"to" doc:"where it ends, likewise; the end as it is now if not given"`
	Order     string   `query:"order" doc:"newest or oldest first, by timestamp; newest if not given, oldest if it follows"`
	Partition []string `query:"partition" doc:"only these partitions: 0,3,7-9; at most 128"`
	Key       string   `query:"key" doc:"a text for the key"`
	KeyIs     string   `query:"keyIs" doc:"how the key is compared with it: equals, contains, regexp (RE2); or null, exists; equals if not given"`
	Hashed    bool     `query:"hashed" doc:"producers choose partitions by murmur2 of the key, as Kafka's own do: only the partition that the key belongs to is searched"`
	Value     string   `query:"value" doc:"a text for the value"`
	ValueIs   string   `query:"valueIs" doc:"how it is compared, as with keys; contains if not given; null finds tombstones"`
	Header    string   `query:"header" doc:"the name of a header"`
	HeaderVal string   `query:"headerValue" doc:"a text for its value; it need only be there if not given"`
	HeaderIs  string   `query:"headerIs" doc:"how it is compared; equals if not given"`
	Path      string   `query:"path" doc:"a JSON path in the value: $.order.lines[0].sku, with [*] for all"`
	PathValue string   `query:"pathValue" doc:"a text for what is there; it need only be there if not given"`
	PathIs    string   `query:"pathIs" doc:"how it is compared; equals if not given"`
	JQ        string   `query:"jq" doc:"an expression of jq over {partition, offset, timestamp, key, value, headers} that is neither false nor null; what it makes of a record is in result"`
	Isolation string   `query:"isolation" doc:"read_uncommitted or read_committed; all records, with what has become of their transactions, if not given"`
	Limit     int      `query:"limit" doc:"how many, at most 1000; 50 if not given"`
	Bytes     int      `query:"bytes" doc:"how many bytes of a key, a value or a header are shown, at most 1048576; 16384 if not given"`
	Follow    bool     `query:"follow" doc:"go on with records as they come, for ten minutes at most"`
	After     string   `query:"after" doc:"next of the part before, with the same question"`
}

// RecordsLine is a line of the answer: one of these.
type RecordsLine struct {
	Record   *TopicRecord    `json:"record,omitempty" doc:"a record that was found"`
	Progress *SearchProgress `json:"progress,omitempty" doc:"how far the search has got"`
	End      *SearchEnd      `json:"end,omitempty" doc:"the last line"`
}

// TopicRecord is a record.
type TopicRecord struct {
	Partition     int32          `json:"partition"`
	Offset        Offset         `json:"offset"`
	Timestamp     *time.Time     `json:"timestamp" doc:"null if it has none"`
	TimestampType string         `json:"timestampType" doc:"CreateTime: the producer's; LogAppendTime: the broker's"`
	Key           *RecordBytes   `json:"key" doc:"null if it has none, which is not the same as an empty one"`
	Value         *RecordBytes   `json:"value" doc:"null for a tombstone"`
	Headers       []RecordHeader `json:"headers"`
	Transaction   string         `json:"transaction" doc:"committed, aborted, open, or waiting behind one that is open; empty if it is of none"`
	ProducerID    *Offset        `json:"producerId" doc:"of a producer with transactions or idempotence"`
	Cut           bool           `json:"cut" doc:"it was too large to be looked at whole"`
	Result        string         `json:"result,omitempty" doc:"what jq made of it, as JSON, unless that is just true"`
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string       `json:"name"`
	Value *RecordBytes `json:"value"`
}

// RecordBytes are bytes of a record.
type RecordBytes struct {
	Size     int    `json:"size" doc:"how many there are"`
	Text     string `json:"text" doc:"if they are text in UTF-8"`
	Base64   string `json:"base64,omitempty" doc:"if they are not"`
	Shown    int    `json:"shown" doc:"how many are here"`
	JSON     bool   `json:"json" doc:"the text is a JSON document"`
	SchemaID *int64 `json:"schemaId" doc:"if they begin as those do that a schema registry knows: a zero byte and four for the id"`
}

// SearchProgress is how far a search has got, all its parts together.
type SearchProgress struct {
	Searched int64  `json:"searched" doc:"how many records were looked at"`
	Total    *int64 `json:"total" doc:"how many there are to be looked at; null if unknown"`
	About    bool   `json:"about" doc:"there may be fewer: not every offset has a record"`
	Found    int64  `json:"found"`
	Bytes    int64  `json:"bytes" doc:"that this part of the search has read"`
}

// SearchEnd is how a part of a search ended.
type SearchEnd struct {
	SearchProgress
	Why        string              `json:"why" doc:"end: everything was searched; limit, bytes, page, time: it has found or read as much as it may, or taken as long; quota: the quota consumer_byte_rate of who reads is used up; failure"`
	Next       string              `json:"next,omitempty" doc:"what to give as after to go on; absent if everything was searched"`
	Elsewhere  []records.Elsewhere `json:"elsewhere" doc:"partitions that were not searched, because another broker leads them"`
	Failures   []Unread            `json:"failures" doc:"partitions that could not be read to their end"`
	Cut        int                 `json:"cut" doc:"how many records were too large to be looked at whole"`
	Unreadable int                 `json:"unreadable" doc:"how many record batches could not be read"`
	JQFailed   int64               `json:"jqFailed" doc:"on how many records the jq expression failed"`
	JQFailure  string              `json:"jqFailure,omitempty" doc:"why, for the first"`
	Problem    *problem.Problem    `json:"problem,omitempty" doc:"why the search could not go on"`
}

// Unread is a partition that could not be read.
type Unread struct {
	Partition int32  `json:"partition"`
	Message   string `json:"message"`
}
