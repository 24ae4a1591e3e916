package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"muster/internal/fair"
	"muster/internal/web/problem"
	"muster/internal/words"
)

const (
	// maxBody is how large a body may be, and maxLargeBody where it has a record or any
	// number of partitions in it.
	maxBody      = 64 << 10
	maxLargeBody = 2 << 20
	// maxBodies is how many bytes of bodies there may be at a time, of all requests, and
	// maxOwnBodies how many of one address.
	maxBodies    = 64 << 20
	maxOwnBodies = maxBodies / 2
)

// Nothing is the body of a request that has none.
type Nothing struct{}

// actRoute makes a route that changes something. Whether the caller may is decided by what
// does it, which is the broker's handler of Kafka's requests; the needs are for people, and
// for previews.
func actRoute[Q, B, A any](method, name, path, doc string, serve func(*api, *call, *Q, *B) (*A, error), needs ...need) route {
	return route{
		method: method, path: path, name: name, doc: doc, needs: needs, acts: true, maxBody: maxBody,
		query: reflect.TypeFor[Q](), body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		serve: func(a *api, c *call) (any, error) {
			q, body := new(Q), new(B)
			if err := parseQuery(c.request.URL.RawQuery, q); err != nil {
				return nil, err
			}
			if err := parseBody(c.body, body); err != nil {
				return nil, err
			}
			if a.acts == nil {
				return nil, problem.Unavailable("this broker only reads")
			}
			return serve(a, c, q, body)
		},
	}
}

// large lets the body of a route have a record, or any number of partitions.
func (r route) large() route {
	r.maxBody = maxLargeBody
	return r
}

func (r *route) takesBody() bool { return r.body != nil && r.body != reflect.TypeFor[Nothing]() }

// readBody reads what a request brings, which is JSON: forms of other pages cannot send
// that. What it takes is counted until release is called.
func (a *api) readBody(rt *route, r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	if !rt.takesBody() {
		if rt.body != nil && r.ContentLength != 0 {
			return nil, release, problem.BadRequest("%s takes no body here", r.Method)
		}
		return nil, release, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != problem.JSON {
		return nil, release, &problem.Problem{Status: http.StatusUnsupportedMediaType, Code: "not_json", Message: "the body must be JSON, and the Content-Type header say " + problem.JSON}
	}
	tooLarge := &problem.Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the body may have at most " + words.Size(rt.maxBody)}
	size := r.ContentLength
	switch {
	case size > rt.maxBody:
		return nil, release, tooLarge // Before it is sent, if the client asks first (Expect: 100-continue).
	case size < 0:
		size = rt.maxBody
	}
	from := fair.Neighbourhood(r.RemoteAddr)
	if !a.bodies.Take(from, size) {
		return nil, release, problem.Busy()
	}
	release = func() { a.bodies.Give(from, size) }
	body, err = io.ReadAll(io.LimitReader(r.Body, rt.maxBody+1))
	switch {
	case err != nil:
		return nil, release, problem.BadRequest("the body could not be read: %v", err)
	case int64(len(body)) > rt.maxBody:
		return nil, release, tooLarge
	}
	return body, release, nil
}

// parseBody reads JSON into a struct. A field that no one knows is refused: what someone
// asked for must not be left out.
func parseBody(body []byte, into any) error {
	if _, none := into.(*Nothing); none {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return problem.BadRequest("there is no body; it must be a JSON object")
	case errors.As(err, &kind) && kind.Field == "":
		return problem.BadRequest("the body must be a JSON object, not %s", kind.Value)
	case errors.As(err, &kind):
		return problem.BadRequest("%s cannot be %s; it is %s", kind.Field, kind.Value, wordFor(kind.Type))
	case err != nil:
		return problem.BadRequest("the body cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem.BadRequest("there is something after the JSON object of the body")
	}
	return nil
}

// wordFor says what a field takes.
func wordFor(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Offset]() {
		return "a string, as all offsets are"
	}
	switch t.Kind() {
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "a whole number that fits into " + t.Kind().String()
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// methodsOf returns the methods that a path answers.
func methodsOf(path string) []string {
	var out []string
	for _, r := range allRoutes() {
		if fits(Prefix+r.path, path) && !slices.Contains(out, r.method) {
			if out = append(out, r.method); r.method == http.MethodGet {
				out = append(out, http.MethodHead)
			}
		}
	}
	slices.Sort(out)
	return out
}

// fits says whether a path is one of a route.
func fits(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, "{") && h != "" })
}

// noRoute answers what no route does.
func noRoute(w http.ResponseWriter, r *http.Request) {
	methods := methodsOf(r.URL.EscapedPath())
	if len(methods) == 0 {
		problem.Write(w, problem.NotFound("there is no such path; %s/openapi.json lists all", Prefix))
		return
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	problem.Write(w, &problem.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this path answers only " + strings.Join(methods, ", ")})
}

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

// ResetOrder is a reset that someone has seen the plan of.
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
