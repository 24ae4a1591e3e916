package contest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

// codec is how a producer has compressed its batches.
type codec struct {
	name       string
	attributes int16
	compress   func([]byte) ([]byte, error)
}

var wildCodecs = []codec{{"lz4", 3, compressLz4}, {"zstd", 4, compressZstd}}

func (c codec) produceName() string { return "wild " + c.name + " produce" }
func (c codec) fetchName() string   { return "wild " + c.name + " fetch" }

func codecNames() []string {
	var names []string
	for _, c := range wildCodecs {
		names = append(names, c.produceName(), c.fetchName())
	}
	return names
}

func compressLz4(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

func compressZstd(b []byte) ([]byte, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	out := e.EncodeAll(b, nil)
	return out, e.Close()
}

// codecs produces and fetches batches that were compressed beforehand.
func (x *session) codecs() error {
	if err := x.warm("wild-warm", rig.Shape{Partitions: rig.Partitions, Record: rig.RecordSize, Records: rig.BatchRecords}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for _, c := range wildCodecs {
		if !x.anyWanted(c.produceName(), c.fetchName()) {
			continue
		}
		if err := x.compressed(c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (x *session) compressed(c codec) error {
	m, f := wildMoving(c.produceName(), fromCache), wildMoving(c.fetchName(), "")
	m.topic, m.acks = "wild-"+c.name, -1
	l, expands, err := c.load(m)
	if err != nil {
		return err
	}
	x.Say("%s makes batches %s times smaller", c.name, rig.Number(expands))
	m.expands, f.expands = expands, expands
	conns, err := x.Connect(x.p, rig.Connections)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	// Java compiles what decompresses only when it is used.
	if err := x.NewTopic(conns[0], m.topic+"-warm", m.Partitions); err != nil {
		return err
	}
	warm := *m
	warm.topic += "-warm"
	before, _, err := c.load(&warm)
	if err == nil {
		_, err = before.PumpFor(conns, x.o.warm/2)
	}
	if err != nil {
		return err
	}
	return x.produceThenFetch(m, f, l)
}

// load encodes a request with the same batch for each partition, and tells how many
// times larger that is when it is decompressed.
func (c codec) load(m *moving) (*rig.Load, float64, error) {
	body := rig.RecordsBody(textRecords(m.Records, m.Record))
	small, err := c.compress(body)
	if err != nil {
		return nil, 0, err
	}
	batch, plain := rig.BatchOf(m.Records, c.attributes, small), rig.BatchOf(m.Records, 0, body)
	var indexes []int32
	for i := range m.Partitions {
		indexes = append(indexes, int32(i))
	}
	frame := rig.RequestFrame(rig.ProduceRequest(m.topic, m.acks, indexes, func(int) []byte { return batch }), 0)
	return &rig.Load{Shape: m.Shape, Frame: frame, BatchSize: len(batch)}, float64(len(plain)) / float64(len(batch)), nil
}

// textRecords makes records that compress about as well as events in JSON do.
func textRecords(n, size int) []kmsg.Record {
	random := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("user order item price amount status created shipped paid country city street name total currency session device browser event page")
	records := make([]kmsg.Record, n)
	for i := range records {
		var b bytes.Buffer
		for b.Len() < size {
			fmt.Fprintf(&b, `{"%s":"%s-%d","%s":%d},`, words[random.IntN(len(words))], words[random.IntN(len(words))], random.IntN(1000), words[random.IntN(len(words))], random.IntN(1_000_000))
		}
		records[i].Value = b.Bytes()[:size]
	}
	return records
}
