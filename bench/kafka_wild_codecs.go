package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
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
	if err := x.warm("wild-warm", shape{partitions, recordSize, batchRecords}); err != nil {
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
	x.say("%s makes batches %s times smaller", c.name, number(expands))
	m.expands, f.expands = expands, expands
	conns, err := x.connect(x.p, connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	// Java compiles what decompresses only when it is used.
	if err := x.newTopic(conns[0], m.topic+"-warm", m.partitions); err != nil {
		return err
	}
	warm := *m
	warm.topic += "-warm"
	before, _, err := c.load(&warm)
	if err == nil {
		_, err = before.pumpFor(conns, x.o.warm/2)
	}
	if err != nil {
		return err
	}
	return x.produceThenFetch(m, f, l)
}

// load encodes a request with the same batch for each partition, and tells how many
// times larger that is when it is decompressed.
func (c codec) load(m *moving) (*load, float64, error) {
	body := recordsBody(textRecords(m.records, m.record))
	small, err := c.compress(body)
	if err != nil {
		return nil, 0, err
	}
	batch, plain := batchOf(m.records, c.attributes, small), batchOf(m.records, 0, body)
	var indexes []int32
	for i := range m.partitions {
		indexes = append(indexes, int32(i))
	}
	frame := requestFrame(produceRequest(m.topic, m.acks, indexes, func(int) []byte { return batch }), 0)
	return &load{shape: m.shape, frame: frame, batchSize: len(batch)}, float64(len(plain)) / float64(len(batch)), nil
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
