package broker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
	"muster/internal/web"
	"muster/internal/web/problem"
)

// send has a broker do something over HTTP. The body is JSON as it stands, empty for none.
func send(t *testing.T, b *broker.Broker, method, path, body string, change ...func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	var from io.Reader = http.NoBody
	if body != "" {
		from = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTPAddr()+web.Prefix+path, from)
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(req)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}}).Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, resp.Header, string(text)
}

// does has a broker do something that it must do.
func does[A any](t *testing.T, b *broker.Broker, method, path, body string, change ...func(*http.Request)) A {
	t.Helper()
	code, _, text := send(t, b, method, path, body, change...)
	var out A
	if err := json.Unmarshal([]byte(text), &out); code != http.StatusOK || err != nil {
		t.Fatalf("%s %s %s: %d %s, %v", method, path, body, code, text, err)
	}
	return out
}

// refuses has a broker refuse something.
func refuses(t *testing.T, b *broker.Broker, want int, method, path, body string, change ...func(*http.Request)) problem.Problem {
	t.Helper()
	code, _, text := send(t, b, method, path, body, change...)
	var out problem.Problem
	if err := json.Unmarshal([]byte(text), &out); code != want || err != nil || out.Code == "" || out.Message == "" {
		t.Errorf("%s %s %s: %d %s, want %d (%v)", method, path, body, code, text, want, err)
	}
	return out
}

// inStores runs a test with each store that is on this machine.
func inStores(t *testing.T, f func(t *testing.T, b *broker.Broker)) {
	for _, st := range []string{"mem", "disk"} {
		t.Run(st, func(t *testing.T) { f(t, startHTTP(t, map[string]string{"muster.store": st, "log.dir": t.TempDir()})) })
	}
}

// topics returns the topics and their numbers of partitions, by the Kafka protocol.
func topics(t *testing.T, c *kgo.Client) map[string]int {
	t.Helper()
	all, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), c)
	must(t, err)
	out := map[string]int{}
	for i := range all.Topics {
		if name := *all.Topics[i].Topic; !strings.HasPrefix(name, "__") {
			out[name] = len(all.Topics[i].Partitions)
		}
	}
	return out
}

func setting(t *testing.T, c *kgo.Client, topic, name string) string {
	t.Helper()
	all, err := kadm.NewClient(c).DescribeTopicConfigs(t.Context(), topic)
	must(t, err)
	for _, s := range all[0].Configs {
		if s.Key == name {
			return *s.Value
		}
	}
	return ""
}

func TestTopicsAreMadeChangedAndDeletedOverHTTP(t *testing.T) {
	inStores(t, func(t *testing.T, b *broker.Broker) {
		c := client(t, b, manual())
		const body = `{"name":"orders","partitions":3,"configs":{"retention.ms":"3600000"}}`
		for _, only := range []string{"?preview=true", ""} {
			text := body
			if only == "" {
				text = strings.Replace(body, "{", `{"validateOnly":true,`, 1)
			}
			if d := does[web.Done](t, b, http.MethodPost, "/topics"+only, text); d.Done || d.Sentences[0] != `Topic "orders" would be created with 3 partitions.` {
				t.Errorf("the preview is %+v", d)
			}
		}
		assert.MustEqual(t, len(topics(t, c)), 0, "the preview has created it")
		if d := does[web.Done](t, b, http.MethodPost, "/topics", body); !d.Done || d.Sentences[0] != `Topic "orders" was created with 3 partitions.` {
			t.Errorf("it did %+v", d)
		}
		if got := topics(t, c)["orders"]; got != 3 || setting(t, c, "orders", "retention.ms") != "3600000" {
			t.Errorf("it has %d partitions", got)
		}
		p := refuses(t, b, http.StatusConflict, http.MethodPost, "/topics", body)
		assert.True(t, p.Kafka == "TOPIC_ALREADY_EXISTS" && p.Code == "conflict", "again: %+v", p)
		does[web.Done](t, b, http.MethodPost, "/topics", `{"name":"plain"}`)
		if got := topics(t, c)["plain"]; got != 2 { // num.partitions
			t.Errorf("it has %d partitions by default", got)
		}

		d := does[web.Done](t, b, http.MethodPut, "/topics/orders/configs?preview=true", `{"set":{"retention.ms":"1000"},"delete":["segment.bytes"]}`)
		if got := strings.Join(d.Sentences, " "); d.Done || !strings.Contains(got, "retention.ms would become 1000; it is 3600000. Records that are older than 1s are deleted soon after. segment.bytes would be as by default") {
			t.Errorf("the preview is %+v", d)
		}
		assert.Equal(t, setting(t, c, "orders", "retention.ms"), "3600000", "the preview has set it")
		does[web.Done](t, b, http.MethodPut, "/topics/orders/configs", `{"set":{"retention.ms":"7200000"}}`)
		assert.Equal(t, setting(t, c, "orders", "retention.ms"), "7200000", "it is set")
		does[web.Done](t, b, http.MethodPut, "/topics/orders/configs", `{"delete":["retention.ms"]}`)
		assert.Equal(t, setting(t, c, "orders", "retention.ms"), "604800000", "by default")
		refuses(t, b, http.StatusBadRequest, http.MethodPut, "/topics/orders/configs", `{"set":{"retention.ms":"soon"}}`)
		refuses(t, b, http.StatusNotFound, http.MethodPut, "/topics/none/configs", `{"set":{"retention.ms":"1"}}`)

		if d := does[web.Done](t, b, http.MethodPost, "/topics/orders/partitions?preview=true", `{"count":5}`); d.Done || !strings.Contains(d.Sentences[0], "5 partitions in place of 3") || d.Effect.Partitions != 2 {
			t.Errorf("the preview is %+v", d)
		}
		does[web.Done](t, b, http.MethodPost, "/topics/orders/partitions", `{"count":4}`)
		if got := topics(t, c)["orders"]; got != 4 {
			t.Errorf("it has %d partitions", got)
		}
		refuses(t, b, http.StatusBadRequest, http.MethodPost, "/topics/orders/partitions", `{"count":2}`)
		refuses(t, b, http.StatusNotFound, http.MethodPost, "/topics/none/partitions", `{"count":2}`)

		for i := range int32(4) {
			fill(t, c, "orders", i, 10)
		}
		commit(t, c, "billing", "orders", 0, 5)
		b.Status().Pass(t.Context())
		d = does[web.Done](t, b, http.MethodDelete, "/topics/orders?preview=true", "")
		if e := d.Effect; d.Done || e.Partitions != 4 || *e.Records != 40 || *e.Bytes <= 0 || !slices.Equal(e.Groups, []string{"billing"}) || d.Refused != "" {
			t.Errorf("the preview is %+v, %+v", d, d.Effect)
		}
		assert.MustEqual(t, topics(t, c)["orders"], 4, "the preview has deleted it")
		does[web.Done](t, b, http.MethodDelete, "/topics/orders", "")
		if got := topics(t, c); got["orders"] != 0 || got["plain"] != 2 {
			t.Errorf("left are %v", got)
		}
		refuses(t, b, http.StatusNotFound, http.MethodDelete, "/topics/orders", "")
		refuses(t, b, http.StatusNotFound, http.MethodDelete, "/topics/orders?preview=true", "")
		if d := does[web.Done](t, b, http.MethodDelete, "/topics/__consumer_offsets?preview=true", ""); d.Refused == "" {
			t.Errorf("of an internal topic: %+v", d)
		}
		refuses(t, b, http.StatusBadRequest, http.MethodDelete, "/topics/__consumer_offsets", "")
	})
}

// fetched returns all records of a topic by the Kafka protocol.
func fetched(t *testing.T, b *broker.Broker, topic string, n int) (out []*kgo.Record) {
	t.Helper()
	c := client(t, b, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for len(out) < n {
		fs := c.PollFetches(t.Context())
		must(t, fs.Err())
		out = append(out, fs.Records()...)
	}
	return out
}

func TestRecordsAreProducedAndDeletedOverHTTP(t *testing.T) {
	inStores(t, func(t *testing.T, b *broker.Broker) {
		c := client(t, b)
		makeTopic(t, c, "orders", 8, nil)
		const n = 20
		for i := range n { // Where Kafka's own clients put them.
			key := fmt.Sprint("key", i)
			p := does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", fmt.Sprintf(`{"key":%q,"value":"v","headers":[{"key":"h","value":"x"},{"key":"none"}]}`, key))
			at := c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte(key)})
			if r, err := at.First(); err != nil || r.Partition != p.Partition || r.Offset != int64(p.Offset)+1 {
				t.Errorf("key %s is in %d, by a client in %d (%v)", key, p.Partition, r.Partition, err)
			}
		}
		five := does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", `{"partition":5,"key":"AAE=","value":"/w==","encoding":"base64"}`)
		empty := does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", `{"partition":6,"key":"","value":"","encoding":"base64"}`)
		nothing := does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", `{"partition":7}`)
		does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", `{"value":"anywhere"}`)
		at := func(p web.Produced) string { return fmt.Sprint(p.Partition, " ", int64(p.Offset)) }
		found := 0
		for _, r := range fetched(t, b, "orders", 2*n+4) {
			switch fmt.Sprint(r.Partition, " ", r.Offset) {
			case at(five):
				assert.True(t, string(r.Key) == "\x00\x01" && string(r.Value) == "\xff", "in base64: %q %q", r.Key, r.Value)
			case at(empty):
				assert.True(t, r.Key != nil && r.Value != nil && len(r.Key)+len(r.Value) == 0, "empty: %v %v", r.Key, r.Value)
			case at(nothing):
				assert.True(t, r.Key == nil && r.Value == nil, "nothing: %v %v", r.Key, r.Value)
			}
			if string(r.Value) == "v" && len(r.Headers) == 2 && r.Headers[0].Key == "h" && string(r.Headers[0].Value) == "x" && r.Headers[1].Value == nil {
				found++
			}
		}
		assert.True(t, found == n, "%d of %d have their headers", found, n)
		for _, x := range []struct {
			want       int
			path, body string
		}{
			{404, "/topics/none/records", `{"value":"x"}`},
			{404, "/topics/orders/records", `{"partition":8,"value":"x"}`},
			{400, "/topics/orders/records", `{"partition":-1,"value":"x"}`},
			{400, "/topics/orders/records", `{"value":"*","encoding":"base64"}`},
			{400, "/topics/orders/records", `{"value":"*","encoding":"hex"}`},
			{400, "/topics/__consumer_offsets/records", `{"partition":0,"value":"x"}`},
			{400, "/topics/orders/records?preview=true", `{"value":"x"}`},
			{413, "/topics/orders/records", `{"value":"` + strings.Repeat("x", 3<<19) + `"}`}, // max.message.bytes
			{413, "/topics/orders/records", `{"value":"` + strings.Repeat("x", 3<<20) + `"}`}, // The body.
		} {
			// Who sends much asks first, as curl does: the rest of a body that is refused may meet a
			// connection that is closed.
			refuses(t, b, x.want, http.MethodPost, x.path, x.body, func(r *http.Request) { r.Header.Set("Expect", "100-continue") })
		}

		m := client(t, b, manual())
		makeTopic(t, c, "old", 2, nil)
		fill(t, m, "old", 0, 10)
		fill(t, m, "old", 1, 10)
		starts := func() map[int32]int64 {
			all, err := kadm.NewClient(c).ListStartOffsets(t.Context(), "old")
			must(t, err)
			out := map[int32]int64{}
			all.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
			return out
		}
		const some = `{"partitions":[{"partition":0,"offset":"4"},{"partition":1,"offset":"-1"}]}`
		if d := does[web.Done](t, b, http.MethodDelete, "/topics/old/records?preview=true", some); d.Done || *d.Effect.Records != 14 || d.Effect.Partitions != 2 || !strings.HasPrefix(d.Sentences[0], "About 14 records of 2 partitions") {
			t.Errorf("the preview is %+v, %+v", d, d.Effect)
		}
		assert.MustEqualMaps(t, starts(), map[int32]int64{0: 0, 1: 0}, "the preview has deleted")
		does[web.Done](t, b, http.MethodDelete, "/topics/old/records", some)
		assert.EqualMaps(t, starts(), map[int32]int64{0: 4, 1: 10})
		refuses(t, b, http.StatusBadRequest, http.MethodDelete, "/topics/old/records", `{"partitions":[{"partition":0,"offset":"11"}]}`)
		refuses(t, b, http.StatusNotFound, http.MethodDelete, "/topics/old/records", `{"partitions":[{"partition":2,"offset":"1"}]}`)
		refuses(t, b, http.StatusBadRequest, http.MethodDelete, "/topics/__consumer_offsets/records", `{"partitions":[{"partition":0,"offset":"-1"}]}`)
	})
}

// Everything that is done over HTTP stands in the audit log, with the way that it came.
func TestTheAuditLogSaysWhatWasDoneOverHTTP(t *testing.T) {
	b := startHTTP(t, nil)
	c := client(t, b, manual())
	does[web.Done](t, b, http.MethodPost, "/topics", `{"name":"orders"}`)
	does[web.Produced](t, b, http.MethodPost, "/topics/orders/records", `{"partition":0,"value":"x"}`)
	does[web.Done](t, b, http.MethodPut, "/topics/orders/configs", `{"set":{"retention.ms":"7200000"}}`)
	does[web.Done](t, b, http.MethodPost, "/topics/orders/partitions", `{"count":3}`)
	for range 2 { // Twice the same is told twice.
		does[web.Done](t, b, http.MethodDelete, "/topics/orders/records", `{"partitions":[{"partition":0,"offset":"1"}]}`)
	}
	commit(t, c, "billing", "orders", 1, 0)
	fill(t, c, "orders", 1, 3)
	does[web.Done](t, b, http.MethodPost, "/groups/billing/resets/execute", `{"partitions":[{"topic":"orders","partition":1,"committed":"0","to":"3"}]}`)
	does[web.Done](t, b, http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders"}`)
	readAll(t, b, "readers", 3)
	member := answer[web.GroupDetail](t, b, "/groups/readers").Members[0].ID
	does[web.Done](t, b, http.MethodPost, "/groups/readers/members/remove", `{"memberId":"`+member+`"}`)
	commit(t, c, "late", "orders", 1, 0)
	does[web.Done](t, b, http.MethodDelete, "/groups/late", "")
	does[web.Done](t, b, http.MethodPut, "/quotas", `{"entity":[{"type":"user","name":"ann"}],"set":[{"name":"producer_byte_rate","value":1000}]}`)
	does[web.Done](t, b, http.MethodDelete, "/topics/orders", "")
	var got []string
	for _, e := range awaitAudit(t, b, func(e audit.Entry) bool { return e.Kind == audit.TopicDeleted }) {
		if e.Via == audit.ViaHTTP {
			got = append(got, string(e.Kind))
			assert.True(t, e.ClientID == "muster-http" && e.Principal == "User:ANONYMOUS" && e.Host == "127.0.0.1" && e.Request != "", "the entry is %+v", e)
		}
	}
	const want = "topic-created record-produced settings-changed partitions-added records-deleted records-deleted offsets-set offsets-deleted member-removed group-deleted quota-changed topic-deleted"
	assert.Equal(t, strings.Join(got, " "), want, "the audit log")
}
