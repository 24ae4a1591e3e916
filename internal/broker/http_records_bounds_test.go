package broker_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/auth/sasl"
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
		if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("big"), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
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

// Who follows a topic is looked at again and again: as soon as there are users, nobody sees
// records without having logged in.
func TestFollowersEndWithTheirRight(t *testing.T) {
	b := startHTTP(t, nil)
	produce(t, client(t, b), "orders", 0, 1)
	in := follows(t, b, "from=beginning")
	for in.Scan() && !strings.HasPrefix(in.Text(), `{"record"`) {
		continue
	}
	if err := b.SetPassword(t.Context(), "ann", "secret", sasl.SHA256); err != nil {
		t.Fatal(err)
	}
	if rest := readLines(t, in); rest.end == nil || rest.end.Problem == nil || rest.end.Problem.Code != "login_required" {
		t.Errorf("it ended with %+v", rest.end)
	}
}
