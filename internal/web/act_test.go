package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/watch/groupview"
	"muster/internal/web/problem"
)

const aRule = `{"principal":"User:bob","host":"*","operation":"READ","permission":"ALLOW","resourceType":"TOPIC","resourceName":"orders","patternType":"LITERAL"}`

// examples has a body for each act, and what is done by it.
var examples = map[string][2]string{
	"createTopic":   {`{"name":"new"}`, "create new false"},
	"deleteTopic":   {"", "delete orders"},
	"addPartitions": {`{"count":5}`, "grow orders 5 false"},
	"alterTopic":    {`{"set":{"a":"b"},"delete":["c"]}`, "alter orders map[a:b] [c] false"},
	"produce":       {`{"key":"k","value":"v"}`, `produce orders "k" "v"`},
	"deleteRecords": {`{"partitions":[{"partition":0,"offset":"7"}]}`, "trim orders map[0:7]"},
	"planReset":     {`{"topic":"orders","to":"beginning"}`, ""},
	"executeReset":  {`{"partitions":[{"topic":"orders","partition":0,"committed":"10","to":"7"}]}`, "commit billing map[{orders 0}:7]"},
	"deleteGroup":   {"", "delete group billing"},
	"deleteOffsets": {`{"topic":"orders"}`, "forget billing orders [0]"},
	"removeMember":  {`{"memberId":"m-1"}`, "remove billing m-1"},
	"setPassword":   {`{"password":"x"}`, "password ann x by 1; password ann x by 2"},
	"deleteUser":    {"", "delete user ann"},
	"addAcl":        {aRule, "allow ALLOW User:bob READ on topic orders from any host"},
	"removeAcl":     {aRule, "disallow ALLOW User:bob READ on topic orders from any host"},
	"alterQuota":    {`{"entity":[{"type":"user","name":"ann"}],"set":[{"name":"producer_byte_rate","value":5}]}`, `quota user "ann" producer_byte_rate 5 false`},
}

func committedTen() map[groupview.TopicPartition]int64 {
	return map[groupview.TopicPartition]int64{{Topic: "orders"}: 10}
}

// Each act does what it says, as the one who asks.
func TestEachActIsDoneAsTheOneWhoAsks(t *testing.T) {
	f := newFake(t)
	f.users = map[string]string{"jim": "jims"}
	doer := &fakeActs{}
	s := serve(t, f, acting(doer))
	for i := range acts {
		rt := &acts[i]
		x, ok := examples[rt.name]
		assert.MustTrue(t, ok, "%s has no example", rt.name)
		doer.did, doer.committed = nil, committedTen()
		change := []func(*http.Request){as("jim", "jims")}
		if x[0] != "" {
			change = append(change, bringing(problem.JSON, x[0]))
		}
		if resp, body := s.do(rt.method, Prefix+fill(rt.path), change[1:]...); resp.StatusCode != http.StatusUnauthorized || len(doer.did) > 0 {
			t.Errorf("%s without a login: %d %s", rt.name, resp.StatusCode, body)
		}
		resp, body := s.do(rt.method, Prefix+fill(rt.path), change...)
		assert.Equal(t, resp.StatusCode, http.StatusOK, "%s: %s", rt.name, body)
		var want []string
		for did := range strings.SplitSeq(x[1], "; ") {
			if did != "" {
				want = append(want, "User:jim@127.0.0.1 "+did)
			}
		}
		assert.EqualSlices(t, doer.did, want, "%s did", rt.name)
	}
}

// A preview does nothing, and wants the rights that the table names. The handler does the
// validation of those that have a request for it.
func TestPreviewsDoNothingAndWantTheSameRights(t *testing.T) {
	f := newFake(t)
	doer := &fakeActs{}
	s := serve(t, f, acting(doer))
	validated := map[string]bool{"createTopic": true, "addPartitions": true, "alterTopic": true, "alterQuota": true}
	for i := range acts {
		rt := &acts[i]
		if len(parameters(rt.query)) == 0 {
			continue
		}
		doer.did, doer.committed, f.denies, f.denied = nil, committedTen(), nil, nil
		change := []func(*http.Request){}
		if x := examples[rt.name]; x[0] != "" {
			change = append(change, bringing(problem.JSON, x[0]))
		}
		path := Prefix + fill(rt.path) + "?preview=true"
		resp, body := s.do(rt.method, path, change...)
		var d Done
		absent := rt.name == "deleteUser" || rt.name == "removeAcl" // The fake has none.
		if err := json.Unmarshal([]byte(body), &d); absent != (resp.StatusCode == http.StatusNotFound) || !absent && (err != nil || d.Done || len(d.Sentences) == 0) {
			t.Errorf("%s: %d %s", rt.name, resp.StatusCode, body)
		}
		if validated[rt.name] {
			assert.True(t, len(doer.did) == 1 && strings.HasSuffix(doer.did[0], " true"), "%s did %q", rt.name, doer.did)
			continue
		}
		assert.Equal(t, len(doer.did), 0, "%s did %q", rt.name, doer.did)
		for _, n := range rt.needs {
			if n.listed || n.some {
				continue
			}
			name := auth.ClusterName
			if n.kind != auth.Cluster {
				name = fill("{" + n.param + "}")
			}
			lacks := right(auth.Request{Operation: n.operation, Type: n.kind, Name: name})
			f.denies = map[string]bool{lacks: true}
			if resp, body := s.do(rt.method, path, change...); resp.StatusCode != http.StatusForbidden || !strings.Contains(body, `"missingAcl"`) {
				t.Errorf("%s without %s: %d %s", rt.name, lacks, resp.StatusCode, body)
			}
		}
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	doer := &fakeActs{}
	s := serve(t, newFake(t), acting(doer))
	post := func(path string, change ...func(*http.Request)) (int, string) {
		resp, body := s.do(http.MethodPost, Prefix+path, change...)
		return resp.StatusCode, body
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/json/x", "application/jsonx"} {
		if code, body := post("/topics", bringing(kind, `{"name":"x"}`)); code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d %s", kind, code, body)
		}
	}
	for body, says := range map[string]string{
		``:                               "there is no body",
		` `:                              "there is no body",
		`{`:                              "cannot be read",
		`{"name":"x"} x`:                 "something after",
		`{"name":"x"}{}`:                 "something after",
		`[]`:                             "must be a JSON object",
		`"x"`:                            "must be a JSON object",
		`{"name":"x","title":"y"}`:       `unknown field`,
		`{"name":5}`:                     "name cannot be number; it is a string",
		`{"name":"x","partitions":1.5}`:  "partitions cannot be number 1.5; it is a whole number",
		`{"name":"x","partitions":1e99}`: "partitions cannot be number 1e99",
		`{"name":"x","configs":{"a":1}}`: "cannot be number",
		strings.Repeat(`[`, 20_000):      "",
	} {
		code, text := post("/topics", bringing(problem.JSON, body))
		assert.True(t, code == http.StatusBadRequest && strings.Contains(text, says), "%.40s: %d %s", body, code, text)
	}
	if code, text := post("/groups/billing/resets/execute", bringing(problem.JSON, `{"partitions":[{"topic":"orders","partition":0,"committed":10,"to":"7"}]}`)); code != http.StatusBadRequest || !strings.Contains(text, "as all offsets are") {
		t.Errorf("an offset as a number: %d %s", code, text)
	}
	if resp, text := s.do(http.MethodDelete, Prefix+"/topics/orders", bringing(problem.JSON, `{}`)); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body where there is none: %d %s", resp.StatusCode, text)
	}
	long := `{"name":"` + strings.Repeat("x", maxBody) + `"}`
	unsaid := func(r *http.Request) { r.ContentLength = -1 }
	for _, change := range [][]func(*http.Request){{bringing(problem.JSON, long)}, {bringing(problem.JSON, long), unsaid}} {
		if code, text := post("/topics", change...); code != http.StatusRequestEntityTooLarge {
			t.Errorf("too long: %d %s", code, text)
		}
	}
	if code, text := post("/topics/orders/records", bringing(problem.JSON, `{"value":"`+strings.Repeat("x", maxBody)+`"}`), unsaid); code != http.StatusOK {
		t.Errorf("a record: %d %s", code, text)
	}
	if code, text := post("/topics?format=csv", bringing(problem.JSON, `{"name":"x"}`)); code != http.StatusBadRequest {
		t.Errorf("as CSV: %d %s", code, text)
	}
	assert.Equal(t, len(doer.did), 1, "it did %q", doer.did)
	if code, text := post("/topics", bringing("application/json; charset=utf-8", `{"name":"x"}`)); code != http.StatusOK {
		t.Errorf("with a charset: %d %s", code, text)
	}
	assert.Equal(t, s.api.bodies.Used(), 0, "bytes of bodies are counted for ever")
	s.api.bodies.Give("127.0.0.1", -maxOwnBodies)
	if code, text := post("/topics", bringing(problem.JSON, `{"name":"x"}`)); code != http.StatusServiceUnavailable {
		t.Errorf("without room: %d %s", code, text)
	}
	// One whose length is not said may become as long as any.
	s.api.bodies.Give("127.0.0.1", maxBody-1)
	if code, text := post("/topics", bringing(problem.JSON, `{"name":"x"}`), unsaid); code != http.StatusServiceUnavailable {
		t.Errorf("of unknown length, with little room: %d %s", code, text)
	}
	if code, text := post("/topics", bringing(problem.JSON, `{"name":"x"}`)); code != http.StatusOK {
		t.Errorf("with little room: %d %s", code, text)
	}
	s.api.bodies.Give("127.0.0.1", maxOwnBodies-maxBody+1)
}

// A body may be exactly as long as is said, and where none is wanted there is none of unknown
// length either. No address takes all the room that there is for bodies.
func TestBodiesAtTheirBounds(t *testing.T) {
	s := serve(t, newFake(t), acting(&fakeActs{}))
	unsaid := func(r *http.Request) { r.ContentLength = -1 }
	const around = `{"name":""}`
	most := `{"name":"` + strings.Repeat("x", maxBody-len(around)) + `"}`
	for _, change := range [][]func(*http.Request){{bringing(problem.JSON, most)}, {bringing(problem.JSON, most), unsaid}} {
		if resp, text := s.do(http.MethodPost, Prefix+"/topics", change...); resp.StatusCode != http.StatusOK {
			t.Errorf("as long as it may be: %d %s", resp.StatusCode, text)
		}
	}
	if resp, text := s.do(http.MethodDelete, Prefix+"/topics/orders", bringing(problem.JSON, `{}`), unsaid); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("of unknown length where there is none: %d %s", resp.StatusCode, text)
	}
	assert.MustTrue(t, s.api.bodies.Take("10.0.0.1", maxOwnBodies), "an address does not get its share")
	assert.False(t, s.api.bodies.Take("10.0.0.1", 1), "an address gets more than its share")
	assert.True(t, s.api.bodies.Take("10.0.0.2", maxLargeBody), "another address finds no room")
}

func TestPathsSayWhichMethodsTheyAnswer(t *testing.T) {
	s := serve(t, newFake(t))
	for path, want := range map[string]string{
		"/topics": "GET, HEAD, POST", "/topics/orders": "DELETE, GET, HEAD", "/topics/orders/configs": "GET, HEAD, PUT", "/acls": "DELETE, GET, HEAD, POST", "/groups/billing/resets/execute": "POST",
		"/quotas": "GET, HEAD, PUT", "/none": "", "/topics/a%2fb": "DELETE, GET, HEAD",
	} {
		resp, body := s.do(http.MethodPatch, Prefix+path)
		if resp.Header.Get("Allow") != want || (want == "") != (resp.StatusCode == http.StatusNotFound) || want != "" && resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s %s", path, resp.StatusCode, resp.Header.Get("Allow"), body)
		}
	}
	if resp, _ := s.do(http.MethodPost, Prefix+"/topics", bringing(problem.JSON, `{"name":"x"}`)); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("where nothing can be done: %d", resp.StatusCode)
	}
}

func TestWhatKafkaRefusesHasAStatus(t *testing.T) {
	doer := &fakeActs{}
	s := serve(t, newFake(t), acting(doer))
	lacks := &auth.Request{Principal: "User:ann", Operation: auth.Create, Type: auth.Topic, Name: "x"}
	for code, want := range map[int16]int{
		29: 403, 30: 403, 31: 403, 53: 403, 3: 404, 69: 404, 91: 404, 100: 404, 25: 404, 36: 409, 68: 409, 86: 409, 89: 429, 10: 413, -1: 500,
		17: 400, 37: 400, 40: 400, 42: 400, 44: 400, 6: 503, 7: 503, 14: 503, 15: 503, 16: 503, 56: 503,
	} {
		doer.fails = &problem.Refused{Code: code, Name: "NAME", Message: "a sentence", Lacks: lacks, Command: "muster acls add …", Wait: 1500 * time.Millisecond}
		resp, body := s.do(http.MethodPost, Prefix+"/topics", bringing(problem.JSON, `{"name":"x"}`))
		var p problem.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != want || p.Message != "a sentence" || p.Kafka != "NAME" || (p.MissingACL != nil) != (want == 403) {
			t.Errorf("%d: %d %s", code, resp.StatusCode, body)
		}
		if got := resp.Header.Get("Retry-After"); want == 429 && got != "2" || want == 503 && got != "1" || want == 400 && got != "" {
			t.Errorf("%d: try again after %q", code, got)
		}
	}
	doer.fails = &problem.Elsewhere{What: "x", Broker: 2}
	if resp, _ := s.do(http.MethodPost, Prefix+"/topics", bringing(problem.JSON, `{"name":"x"}`)); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("elsewhere: %d", resp.StatusCode)
	}
	doer.fails = errors.New("something broke")
	if resp, _ := s.do(http.MethodPost, Prefix+"/topics", bringing(problem.JSON, `{"name":"x"}`)); resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("broken: %d", resp.StatusCode)
	}
}

// No one acts from another machine where no one logs in, unless that is allowed.
func TestStrangersDoNotAct(t *testing.T) {
	for _, full := range []bool{false, true} {
		l, err := net.Listen("tcp", "0.0.0.0:0")
		must(t, err)
		doer := &fakeActs{committed: committedTen()}
		s := serveOn(t, l, newFake(t), acting(doer), func(o *Options) { o.AnonymousFull = full })
		for i := range acts {
			rt := &acts[i]
			req, err := http.NewRequestWithContext(t.Context(), rt.method, Prefix+fill(rt.path), strings.NewReader(examples[rt.name][0]))
			must(t, err)
			req.Header.Set("Content-Type", problem.JSON)
			_, _, err = s.api.answer(rt, req)
			var p *problem.Problem
			if refused := errors.As(err, &p) && p.Status == http.StatusForbidden && strings.Contains(p.Message, "muster.http.anonymous"); refused == full {
				t.Errorf("%s, allowed %t: %v", rt.name, full, err)
			}
		}
		assert.True(t, (len(doer.did) > 0) == full, "allowed %t: it did %q", full, doer.did)
	}
}

// While a plan of a group is executed, another one is told to try again, and holds no place
// meanwhile; other groups are not kept waiting. The same plan is not executed again.
func TestAPlanIsExecutedOnce(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	doer := &fakeActs{committed: committedTen()}
	doer.holds = func() { entered <- struct{}{}; <-leave }
	s := serve(t, newFake(t), acting(doer))
	execute := func(group string) int {
		resp, _ := s.do(http.MethodPost, Prefix+"/groups/"+group+"/resets/execute", bringing(problem.JSON, examples["executeReset"][0]))
		return resp.StatusCode
	}
	codes := make(chan int, 2)
	for _, group := range []string{"billing", "shipping"} {
		go func() { codes <- execute(group) }()
		<-entered
	}
	for _, group := range []string{"billing", "shipping"} {
		if code := execute(group); code != http.StatusServiceUnavailable || len(s.api.slots) != 2 {
			t.Errorf("another of %s: %d, and %d are being answered", group, code, len(s.api.slots))
		}
	}
	for range 2 {
		leave <- struct{}{}
		assert.Equal(t, <-codes, http.StatusOK, "the first ends")
	}
	go func() { codes <- execute("billing") }()
	<-entered
	leave <- struct{}{}
	if code := <-codes; code != http.StatusConflict || len(doer.did) != 2 {
		t.Errorf("afterwards: %d, and it did %q", code, doer.did)
	}
}

// Nothing is said to be deleted that was not there.
func TestOnlyOffsetsThatAreThereAreDeleted(t *testing.T) {
	doer := &fakeActs{committed: map[groupview.TopicPartition]int64{{Topic: "orders", Partition: 1}: 1}}
	s := serve(t, newFake(t), acting(doer))
	resp, body := s.do(http.MethodDelete, Prefix+"/groups/billing/offsets", bringing(problem.JSON, `{"partitions":[1,99],"topic":"orders"}`))
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "in 1 partition of topic") || len(doer.did) != 1 || !strings.HasSuffix(doer.did[0], "forget billing orders [1]") {
		t.Errorf("%d %s; it did %q", resp.StatusCode, body, doer.did)
	}
	doer.committed = nil
	if resp, body := s.do(http.MethodDelete, Prefix+"/groups/billing/offsets", bringing(problem.JSON, `{"partitions":[99],"topic":"orders"}`)); resp.StatusCode != http.StatusNotFound || len(doer.did) != 1 {
		t.Errorf("where nothing is: %d %s; it did %q", resp.StatusCode, body, doer.did)
	}
}

// What has no room in the request of the Kafka protocol is refused before.
func TestOffsetsOfATopicWithANameThatIsTooLongAreNotDeleted(t *testing.T) {
	for size, want := range map[int]int{math.MaxInt16: http.StatusOK, math.MaxInt16 + 1: http.StatusBadRequest} {
		name := strings.Repeat("a", size)
		doer := &fakeActs{committed: map[groupview.TopicPartition]int64{{Topic: name}: 1}}
		s := serve(t, newFake(t), acting(doer))
		resp, body := s.do(http.MethodDelete, Prefix+"/groups/billing/offsets", bringing(problem.JSON, `{"partitions":[0],"topic":"`+name+`"}`))
		assert.True(t, resp.StatusCode == want && (len(doer.did) > 0) == (want == http.StatusOK), "%d bytes: %d %.200s", size, resp.StatusCode, body)
	}
}

// An empty list of partitions is a mistake, and not all of them.
func TestAnEmptyListOfPartitionsIsNotAll(t *testing.T) {
	for _, x := range []struct{ method, path, body string }{
		{http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders","partitions":%s}`},
		{http.MethodDelete, "/groups/billing/offsets?preview=true", `{"topic":"orders","partitions":%s}`},
		{http.MethodPost, "/groups/billing/resets", `{"topic":"orders","to":"beginning","partitions":%s}`},
		{http.MethodPost, "/groups/billing/resets", `{"to":"beginning","partitions":%s}`},
	} {
		for given, want := range map[string]int{"[]": http.StatusBadRequest, "null": http.StatusOK} {
			doer := &fakeActs{committed: committedTen()}
			s := serve(t, newFake(t), acting(doer))
			resp, body := s.do(x.method, Prefix+x.path, bringing(problem.JSON, fmt.Sprintf(x.body, given)))
			if resp.StatusCode != want || want == http.StatusBadRequest && (len(doer.did) > 0 || !strings.Contains(body, "leave it out")) {
				t.Errorf("%s with %s: %d %s, and it did %q", x.path, given, resp.StatusCode, body, doer.did)
			}
		}
	}
}

// A preview does not promise what is refused: offsets that lie beyond the end.
func TestAPreviewOfDeletedRecordsSaysWhatIsRefused(t *testing.T) {
	s := serve(t, newFake(t), acting(&fakeActs{}))
	for offset, want := range map[string]string{"-1": "", "100": "", "101": "offset 101 lies beyond the end of partition 1"} {
		resp, body := s.do(http.MethodDelete, Prefix+"/topics/orders/records?preview=true", bringing(problem.JSON, `{"partitions":[{"partition":0,"offset":"7"},{"partition":1,"offset":"`+offset+`"}]}`))
		var d Done
		if err := json.Unmarshal([]byte(body), &d); err != nil || resp.StatusCode != http.StatusOK || (d.Refused == "") != (want == "") || !strings.Contains(d.Refused, want) {
			t.Errorf("before %s: %d %s, want %q (%v)", offset, resp.StatusCode, body, want, err)
		}
	}
}
