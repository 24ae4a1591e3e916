package web

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"net/http"
	"reflect"
	"time"
	"unicode/utf8"

	"muster/internal/auth"
	"muster/internal/search"
	"muster/internal/web/problem"
	"muster/internal/web/records"
)

// Records is what the broker lets be read of topics.
type Records interface {
	// Partitions returns those that this broker leads of some, and who leads the others.
	Partitions(topic string, wanted []int32, committed bool) (map[int32]search.Log, []records.Elsewhere)
	// Count counts the records from the beginning of spans on, -1 if it cannot. It need
	// not where offsets are dense.
	Count(ctx context.Context, topic string, spans []search.Span) (total int64, dense bool)
	// Await tells once that a partition may have more.
	Await(ctx context.Context, topic string, wanted []int32, committed bool) (ready <-chan struct{}, done func())
	// Quota is how much someone may read.
	Quota(who auth.Principal) records.Quota
}

// readsRecords is the need of Fetch.
var readsRecords = need{operation: auth.Read, kind: auth.Topic, param: "topic"}

// recordsRoute is the route that searches (application/x-ndjson).
var recordsRoute = route{
	method: http.MethodGet, path: "/topics/{topic}/records", name: "records", lines: true, shows: true,
	doc:   "Records of a topic, as they are found, a JSON document a line: record, progress, and at last end, with what goes on where this part of the search stopped.",
	query: reflect.TypeFor[RecordsQuery](), answer: reflect.TypeFor[RecordsLine](), needs: []need{readsRecords},
}

// The bounds of searches.
const (
	maxSearches   = 4 // At a time.
	searchBytes   = 64 << 20
	searchTime    = 3 * time.Second
	searchPage    = 8 << 20
	shownBytes    = 16 << 10 // By default.
	maxShown      = 1 << 20
	foundRecords  = 50 // By default.
	maxFound      = 1000
	longestFollow = 10 * time.Minute
	followLooks   = time.Second // How often it is looked whether someone may still follow.
	// longestPart bounds a part of a search whatever happens: one record is looked at
	// however long it takes.
	longestPart = 30 * time.Second
)

// recordsSearch is a search that was asked for.
type recordsSearch struct {
	api        *api
	call       *call
	topic      string
	query      *RecordsQuery
	search     search.Search
	from       *search.Cursor
	partitions []int32
	elsewhere  []records.Elsewhere
	committed  bool
	quota      records.Quota
	out        *lines
}

// newSearch reads what is asked for. The one who asks has the right to it.
func (a *api) newSearch(ctx context.Context, c *call, q *RecordsQuery) (*recordsSearch, error) {
	t := a.reads.Image().Topic(c.param("topic"))
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", c.param("topic"))
	}
	s := &recordsSearch{api: a, call: c, topic: t.Name, query: q, committed: q.Isolation == "read_committed"}
	if q.Isolation != "" && q.Isolation != "read_uncommitted" && !s.committed {
		return nil, problem.BadRequest("isolation is read_uncommitted or read_committed, not %q", q.Isolation)
	}
	limits, err := searchLimits(q)
	if err != nil {
		return nil, err
	}
	filter, err := search.NewFilter(&search.Spec{
		Key: q.Key, KeyIs: q.KeyIs, Value: q.Value, ValueIs: q.ValueIs, Header: q.Header, HeaderValue: q.HeaderVal, HeaderIs: q.HeaderIs,
		Path: q.Path, PathValue: q.PathValue, PathIs: q.PathIs, JQ: q.JQ, CommittedRecords: s.committed,
	}, time.Now)
	if err != nil {
		return nil, problem.BadRequest("%s", err)
	}
	if s.partitions, err = s.wanted(len(t.Partitions)); err != nil {
		return nil, problem.BadRequest("%s", err)
	}
	s.search = search.Search{Filter: filter, Limits: limits, Now: time.Now}
	s.search.Logs, s.elsewhere = a.records.Partitions(t.Name, s.partitions, s.committed)
	s.quota = a.records.Quota(c.who)
	s.search.Logs = metered(s.search.Logs, s.quota)
	if wait := s.withinQuota(); wait > 0 {
		return nil, overQuota(c.who, wait)
	}
	if len(s.search.Logs) == 0 && len(s.elsewhere) > 0 {
		return nil, &problem.Elsewhere{What: "the records that you want of " + t.Name, Broker: s.elsewhere[0].Broker}
	}
	if err := s.begin(ctx, questionOf(t.ID, q)); err != nil {
		return nil, err
	}
	return s, nil
}

func searchLimits(q *RecordsQuery) (search.Limits, error) {
	if q.Limit > maxFound || q.Bytes > maxShown {
		return search.Limits{}, problem.BadRequest("limit is at most %d, and bytes at most %d", maxFound, maxShown)
	}
	return search.Limits{Records: cmp.Or(q.Limit, foundRecords), Shown: cmp.Or(q.Bytes, shownBytes), Bytes: searchBytes, Page: searchPage, Time: searchTime}, nil
}

// wanted returns the partitions to be searched.
func (s *recordsSearch) wanted(count int) ([]int32, error) {
	q := s.query
	if !q.Hashed {
		return search.ParsePartitions(q.Partition, count)
	}
	if q.Key == "" || q.KeyIs != "" && q.KeyIs != search.Equals || len(q.Partition) > 0 {
		return nil, errors.New("hashed is for a key that is compared by equals, and names the partition itself")
	}
	return []int32{search.PartitionOf([]byte(q.Key), int32(count))}, nil
}

// begin finds out where the search begins, or goes on.
func (s *recordsSearch) begin(ctx context.Context, question uint64) error {
	q := s.query
	newest := q.Order == "newest" || q.Order == "" && !q.Follow
	byDefault := search.Beginning
	if q.Follow {
		byDefault = search.End
	}
	now := s.api.now()
	from, err := search.ParsePlace(q.From, byDefault, now)
	to, err2 := search.ParsePlace(q.To, search.End, now)
	switch err = errors.Join(err, err2); {
	case err != nil:
		return problem.BadRequest("%s", err)
	case q.Order != "" && q.Order != "newest" && q.Order != "oldest":
		return problem.BadRequest("order is newest or oldest, not %q", q.Order)
	case q.Follow && (newest || to.Kind != search.End):
		return problem.BadRequest("who follows reads the oldest first, and to no end")
	}
	if q.After != "" {
		s.from, err = search.ParseCursor(q.After)
		if err != nil || s.from.Question != question || s.from.Newest != newest {
			return problem.BadRequest("%s", search.ErrCursor)
		}
		if s.from.Total < 0 && len(s.from.Spans) > 0 {
			_, s.search.Dense = s.api.records.Count(ctx, s.topic, s.from.Spans[:1])
		}
		return nil
	}
	if s.from, err = search.Begin(ctx, s.search.Logs, s.partitions, from, to); err != nil {
		return problem.Unavailable(err.Error())
	}
	s.from.Question, s.from.Newest = question, newest
	s.from.Total, s.search.Dense = s.api.records.Count(ctx, s.topic, s.from.Spans)
	if to.Kind != search.End {
		s.from.Total = -1 // It counts to the end.
	}
	return nil
}

// questionOf stands for a question: all but how much of the answer is wanted.
func questionOf(id [16]byte, q *RecordsQuery) uint64 {
	same := *q
	same.Limit, same.Bytes, same.After, same.Follow = 0, 0, "", false
	h := fnv.New64a()
	_, _ = h.Write(id[:])
	b, err := json.Marshal(same)
	if err == nil {
		_, _ = h.Write(b)
	}
	return h.Sum64()
}

// lastTime is the last millisecond of the year 9999: later ones cannot be written. Records
// have such times if their producers took milliseconds for something smaller.
const lastTime = 253402300799999

// recordOf is a record as it is sent.
func recordOf(f *search.Found) *TopicRecord {
	out := &TopicRecord{
		Partition: f.Partition, Offset: Offset(f.Offset), TimestampType: "CreateTime", Transaction: string(f.Transaction),
		Key: bytesOf(f.Key, f.KeySize), Value: bytesOf(f.Value, f.ValueSize), Headers: []RecordHeader{}, Cut: f.Cut, Result: f.Result,
	}
	if f.Timestamp >= 0 && f.Timestamp <= lastTime {
		t := time.UnixMilli(f.Timestamp).UTC()
		out.Timestamp = &t
	}
	if f.AppendTime {
		out.TimestampType = "LogAppendTime"
	}
	if f.ProducerID >= 0 {
		out.ProducerID = offset(&f.ProducerID)
	}
	for _, h := range f.Headers {
		out.Headers = append(out.Headers, RecordHeader{h.Name, bytesOf(h.Value, len(h.Value))})
	}
	return out
}

// bytesOf writes bytes as text if they are, also if they were cut within a letter.
func bytesOf(b []byte, size int) *RecordBytes {
	if b == nil {
		return nil
	}
	out := &RecordBytes{Size: max(size, len(b)), Shown: len(b)}
	if len(b) >= 5 && b[0] == 0 {
		id := int64(binary.BigEndian.Uint32(b[1:]))
		out.SchemaID = &id
	}
	whole := out.Size == len(b)
	text := b
	for cut := 0; !whole && cut < utf8.UTFMax && !utf8.Valid(text) && len(text) > 0; cut++ {
		text = text[:len(text)-1]
	}
	if !utf8.Valid(text) || out.SchemaID != nil {
		return out.binary(b)
	}
	out.Text, out.Shown = string(text), len(text)
	out.JSON = whole && len(b) > 0 && (b[0] == '{' || b[0] == '[') && json.Valid(b)
	return out
}

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
