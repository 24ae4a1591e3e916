package broker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// searched is what a search answered.
type searched struct {
	records  []web.TopicRecord
	progress int
	end      *web.SearchEnd
}

// searchOnce makes a part of a search.
func searchOnce(t *testing.T, b *broker.Broker, topic string, q url.Values) searched {
	t.Helper()
	code, body := ask(t, b, "/topics/"+topic+"/records?"+q.Encode())
	assert.MustEqual(t, code, http.StatusOK, "%v: %s", q, body)
	in := bufio.NewScanner(strings.NewReader(body))
	in.Buffer(nil, 16<<20)
	return readLines(t, in)
}

func readLines(t *testing.T, in *bufio.Scanner) (out searched) {
	t.Helper()
	for in.Scan() {
		var l web.RecordsLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatalf("%q: %v", in.Text(), err)
		}
		switch {
		case l.Record != nil:
			out.records = append(out.records, *l.Record)
		case l.Progress != nil:
			out.progress++
		case l.End != nil:
			out.end = l.End
		}
	}
	return out
}

// searchAll makes a search, part by part.
func searchAll(t *testing.T, b *broker.Broker, topic string, pairs ...string) searched {
	t.Helper()
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	var out searched
	for {
		part := searchOnce(t, b, topic, q)
		assert.MustTrue(t, part.end != nil && part.end.Problem == nil, "%v ended with %+v", q, part.end)
		out.records, out.end = append(out.records, part.records...), part.end
		if part.end.Next == "" {
			return out
		}
		q.Set("after", part.end.Next)
	}
}

func placesOf(s searched) (out []string) {
	for _, r := range s.records {
		out = append(out, fmt.Sprintf("%d@%d", r.Partition, r.Offset))
	}
	return out
}

// Every option finds what a count of our own says, whatever the codec.
func TestRecordsAreFoundByEveryOption(t *testing.T) {
	b := startHTTP(t, nil)
	const n = 200
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	var at []string
	for i, c := range codecs {
		part := fillOrdersFrom(t, b, i*n/len(codecs), (i+1)*n/len(codecs), kgo.ProducerBatchCompression(c))
		at = append(at, part...)
	}
	base := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		pairs []string
		want  func(i int) bool
	}{
		{nil, func(int) bool { return true }},
		{[]string{"order", "oldest", "limit", "7"}, func(int) bool { return true }},
		{[]string{"limit", "7"}, func(int) bool { return true }},
		{[]string{"key", "k3"}, func(i int) bool { return i%10 == 3 }},
		{[]string{"key", "k3", "hashed", "true"}, func(i int) bool { return i%10 == 3 }},
		{[]string{"key", "^k[12]$", "keyIs", "regexp"}, func(i int) bool { return i%10 == 1 || i%10 == 2 }},
		{[]string{"keyIs", "null"}, func(int) bool { return false }},
		{[]string{"valueIs", "null"}, func(i int) bool { return i%50 == 49 }},
		{[]string{"value", `"n":17,`}, func(i int) bool { return i == 17 }},
		{[]string{"header", "n", "headerValue", "2"}, func(i int) bool { return i%4 == 2 }},
		{[]string{"header", "m"}, func(int) bool { return false }},
		{[]string{"path", "$.n", "pathValue", "20.0"}, func(i int) bool { return i == 20 }},
		{[]string{"path", "tags[*]", "pathValue", "a4"}, func(i int) bool { return i%5 == 4 && i%50 != 49 }},
		{[]string{"path", "$.big", "pathValue", "9007199254740992"}, func(int) bool { return false }},
		{[]string{"jq", ".value.n >= 190"}, func(i int) bool { return i >= 190 && i%50 != 49 }},
		{[]string{"jq", `.value.tags | any(. == "a1")`}, func(i int) bool { return i%5 == 1 }},
		{[]string{"from", "time:" + base.Add(150*time.Millisecond).Format(time.RFC3339Nano)}, func(i int) bool { return i >= 150 }},
		{[]string{"to", "time:" + base.Add(20*time.Millisecond).Format(time.RFC3339Nano)}, func(i int) bool { return i < 20 }},
		{[]string{"partition", "1"}, func(i int) bool { return strings.HasPrefix(at[i], "1@") }},
		{[]string{"from", "offset:10"}, func(i int) bool { return len(at[i]) > len("0@9") }},
		{[]string{"isolation", "read_committed", "from", "beginning"}, func(int) bool { return true }},
	} {
		var want []string
		for i := range n {
			if c.want(i) {
				want = append(want, at[i])
			}
		}
		got := searchAll(t, b, "orders", c.pairs...)
		if !slices.Contains(c.pairs, "oldest") {
			slices.Reverse(want)
		}
		assert.EqualSlices(t, placesOf(got), want, "%q: found", c.pairs)
		if e := got.end; e.Why != "end" || *e.Total != e.Searched || e.Found != int64(len(want)) || e.About || e.Unreadable+e.Cut != 0 {
			t.Errorf("%q ended with %+v", c.pairs, e)
		}
		if e := got.end; len(c.pairs) == 0 && e.Searched != n {
			t.Errorf("searched %d records, there are %d", e.Searched, n)
		}
	}
	if code, body := ask(t, b, "/topics/nothing/records"); code != http.StatusNotFound {
		t.Errorf("of no topic: %d %s", code, body)
	}
	for _, q := range []string{"jq=input", "jq=" + url.QueryEscape("def f: f; f"), "value=(&valueIs=regexp", "from=nowhere", "path=%5B", "after=x", "order=up", "partition=9", "limit=1001", "isolation=x", "hashed=true", "nothing=1", "follow=true&order=newest"} {
		if code, body := ask(t, b, "/topics/orders/records?"+q); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", q, code, body)
		}
	}
}

func fillOrdersFrom(t *testing.T, b *broker.Broker, from, to int, opts ...kgo.Opt) (at []string) {
	t.Helper()
	c := client(t, b, append(opts, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))...)
	base := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := from; i < to; i++ {
		r := &kgo.Record{
			Topic: "orders", Key: fmt.Appendf(nil, "k%d", i%10), Value: fmt.Appendf(nil, `{"n":%d,"big":9007199254740993,"tags":["a%d","b"]}`, i, i%5),
			Timestamp: base.Add(time.Duration(i) * time.Millisecond), Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i%4)}},
		}
		if i%50 == 49 {
			r.Value = nil
		}
		got, err := c.ProduceSync(t.Context(), r).First()
		must(t, err)
		at = append(at, fmt.Sprintf("%d@%d", got.Partition, got.Offset))
	}
	return at
}

// follows follows a topic until the test ends, and returns what is told.
func follows(t *testing.T, b *broker.Broker, query string) *bufio.Scanner {
	t.Helper()
	return streamed(t, b, "/topics/orders/records?follow=true&"+query)
}

// Who follows is told of records as they come.
func TestRecordsAreFollowed(t *testing.T) {
	b := startHTTP(t, nil)
	produce(t, client(t, b), "orders", 0, 5)
	in := follows(t, b, "from=beginning&limit=8")
	for n := 0; n < 5 && in.Scan(); {
		if strings.HasPrefix(in.Text(), `{"record"`) {
			n++
		}
	}
	produce(t, client(t, b), "orders", 5, 3)
	rest := readLines(t, in)
	assert.True(t, len(rest.records) == 3 && rest.end != nil && rest.end.Found == 8 && rest.end.Next != "", "then came %+v, %+v", rest.records, rest.end)
}
