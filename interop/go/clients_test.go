package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// client is a Kafka client with its defaults, given only where the broker is
// and what must be said.
type client struct {
	name       string
	byKey      bool        // its default partitioner goes by key
	idempotent bool        // its producer is made idempotent
	unordered  bool        // its producer does not keep a partition's order
	prepare    func([]rec) // what it cannot write is taken out, if not nil
	produce    func(ctx context.Context, addr, topic, codec string, recs []rec) error
	// consume reads until the collector has enough.
	consume func(ctx context.Context, addr, topic string, c *collector) error
}

const (
	clientPartitions = 6
	// clientTimeout bounds one producer's or one consumer's work.
	clientTimeout = 60 * time.Second
)

func TestEveryClientReadsBackWhatItWroteWithEveryCodec(t *testing.T) {
	n := 100_000
	if !keepsBatches() {
		n = 20_000 // Each is an entry there.
	}
	b := serve(t, t.TempDir())
	for _, c := range []client{franz, librdkafka, saramaClient, kafkaGo, kcat} {
		for _, codec := range codecs {
			t.Run(c.name+"/"+codec, func(t *testing.T) {
				w := write(t, b.addr(), c, codec, n)
				w.readWith(t, c)
				w.inspect(t, keepsBatches())
			})
		}
	}
}

func TestEveryClientReadsWhatEveryOtherWrote(t *testing.T) {
	const n = 10_000
	addr := startInProcess(t, "", nil).Addr()
	readers := []client{franz, librdkafka, saramaClient, kafkaGo, kcat}
	for _, c := range []client{franz, librdkafka, saramaClient, kafkaGo, kafkaGoAcksAll, kcat} {
		for _, codec := range codecs {
			t.Run(c.name+"/"+codec, func(t *testing.T) {
				t.Parallel() // The clients mostly wait for their own timers.
				w := write(t, addr, c, codec, n)
				w.inspect(t, true)
				for _, reader := range readers {
					w.readWith(t, reader)
				}
			})
		}
	}
}

func TestEveryClientReadsWhatTheBrokerCompressed(t *testing.T) {
	const n = 5000
	addr := startInProcess(t, "", nil).Addr()
	for i, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			setting := codec
			if codec == "none" {
				setting = "uncompressed"
			}
			w := write(t, addr, franz, codecs[(i+1)%len(codecs)], n, "compression.type", setting)
			w.codec = codec
			w.inspect(t, true)
			for _, reader := range []client{franz, librdkafka, saramaClient, kafkaGo, kcat} {
				w.readWith(t, reader)
			}
		})
	}
}

// written is what a client wrote to a topic of its own.
type written struct {
	addr, topic string
	by          client
	codec       string
	recs        []rec
	began       time.Time
}

// write has a client write to a topic with settings.
func write(t *testing.T, addr string, c client, codec string, n int, settings ...string) *written {
	t.Helper()
	w := &written{addr: addr, by: c, codec: codec, began: time.Now()}
	w.topic = strings.NewReplacer(" ", "-", "=", "-").Replace(c.name) + "-" + codec + strings.Join(settings, "-")
	createTopic(t, addr, w.topic, clientPartitions, settings...)
	w.recs = generate(codec, n)
	if c.prepare != nil {
		c.prepare(w.recs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	assert.Must(t, c.produce(ctx, addr, w.topic, codec, w.recs), "%s produces", c.name)
	must(t, w.arrived(ctx, connect(t, addr)))
	return w
}

// arrived waits until the topic has as many records as were written: a producer
// with acks=0 is ahead of the broker.
func (w *written) arrived(ctx context.Context, cl *kgo.Client) error {
	for {
		ends, err := endOffsets(ctx, cl, w.topic)
		if err != nil {
			return err
		}
		sum := 0
		for _, end := range ends {
			sum += int(end)
		}
		switch {
		case sum == len(w.recs):
			return nil
		case sum > len(w.recs):
			return fmt.Errorf("%d records written, the topic has %d", len(w.recs), sum)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d records written, the topic has %d", len(w.recs), sum)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readWith reads the topic with a client and compares.
func (w *written) readWith(t *testing.T, reader client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	c := newCollector(clientPartitions, len(w.recs))
	assert.Must(t, reader.consume(ctx, w.addr, w.topic, c), "%s consumes", reader.name)
	assert.Must(t, compare(w.recs, c.parts, w.by, w.began), "%s reads", reader.name)
}

// inspect reads the topic with franz-go, which tells how batches were written, if those
// were kept: a client that quietly leaves out compression or idempotence proves nothing.
func (w *written) inspect(t *testing.T, kept bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	c := newCollector(clientPartitions, len(w.recs))
	compressed := 0
	err := franzRead(ctx, w.addr, w.topic, c, func(r *kgo.Record) error {
		if int(r.Attrs.CompressionType()) == slices.Index(codecs, w.codec) {
			compressed++
		}
		if idempotent := r.ProducerID >= 0; kept && idempotent != w.by.idempotent {
			return fmt.Errorf("a record has producer id %d", r.ProducerID)
		}
		return nil
	})
	must(t, err)
	must(t, compare(w.recs, c.parts, w.by, w.began))
	// Batches that would not shrink are left as they are by some clients.
	assert.False(t, kept && compressed < len(w.recs)*9/10, "only %d of %d records are in batches with codec %s", compressed, len(w.recs), w.codec)
}
