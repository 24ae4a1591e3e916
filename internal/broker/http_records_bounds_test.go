package broker_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/web"
	"muster/internal/web/problem"
)

// A batch of snappy may unpack to more than all searches may hold together. It is searched
// nevertheless, by several at once.
func TestLargeBatchesOfSnappyAreSearched(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1", "message.max.bytes": "4000000"})
	c := client(t, b, kgo.ProducerBatchMaxBytes(3_900_000), kgo.ProducerBatchCompression(kgo.SnappyCompression()))
	value := make([]byte, 1_500_000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 1_300_000 { // What does not become smaller is not packed.
		value[i] = byte(r.Uint32())
	}
	for range 3 {
		must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("big"), Value: value}).FirstErr())
	}
	for i := range 3 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			if got := searchAll(t, b, "orders", "order", "oldest"); len(got.records) != 3 || got.end.Why != "end" {
				t.Errorf("%d records, %+v", len(got.records), got.end)
			}
		})
	}
}

// Who follows a topic is looked at again and again: as soon as there are users, no one sees
// records without having logged in.
func TestFollowersEndWithTheirRight(t *testing.T) {
	b := startHTTP(t, nil)
	produce(t, client(t, b), "orders", 0, 1)
	in := follows(t, b, "from=beginning")
	for in.Scan() && !strings.HasPrefix(in.Text(), `{"record"`) {
		continue
	}
	must(t, b.SetPassword(t.Context(), "ann", "secret", sasl.SHA256))
	if rest := readLines(t, in); rest.end == nil || rest.end.Problem == nil || rest.end.Problem.Code != "login_required" {
		t.Errorf("it ended with %+v", rest.end)
	}
}

// A search reads as a consumer does, and takes from the same quota.
func TestASearchTakesFromTheQuotaOfConsumers(t *testing.T) {
	b := startHTTP(t, nil)
	c := client(t, b, kgo.DefaultProduceTopic("orders"))
	for range 20 {
		must(t, c.ProduceSync(t.Context(), &kgo.Record{Value: bytes.Repeat([]byte("x"), 100_000)}).FirstErr())
	}
	limit := kadm.AlterClientQuotaEntry{
		Entity: kadm.ClientQuotaEntity{{Type: "user", Name: kmsg.StringPtr("ANONYMOUS")}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: 1000}},
	}
	if _, err := kadm.NewClient(c).AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{limit}); err != nil {
		t.Fatal(err)
	}
	first := searchOnce(t, b, "orders", url.Values{"value": {"nothing"}})
	assert.MustTrue(t, first.end != nil && first.end.Why == "quota" && first.end.Next != "" && first.end.Bytes < 1_000_000, "it ended with %+v", first.end)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.HTTPURL()+web.Prefix+"/topics/orders/records?value=nothing", http.NoBody)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	var p problem.Problem
	must(t, json.NewDecoder(resp.Body).Decode(&p))
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != http.StatusTooManyRequests || err != nil || after < 1 || after != p.RetryAfter {
		t.Errorf("the next gets %d, %q: %+v", resp.StatusCode, resp.Header.Get("Retry-After"), p)
	}
	http.DefaultClient.CloseIdleConnections()
}
