package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"muster/cmd/muster/internal/records"
	"muster/internal/assert"
)

func TestProduceThenConsume(t *testing.T) {
	s := newShell(t)
	r := s.pipe("one\ntwo\n\nlast", "produce", "orders")
	same(t, "stdout", r.ok(), "")
	same(t, "stderr", r.err, "produced 4 records to orders\n")
	s.run("consume", "orders").prints("one\ntwo\n\nlast\n")
	same(t, "stderr for one record", s.pipe("x\n", "produce", "orders").err, "produced 1 record to orders\n")
	same(t, "stderr for none", s.run("produce", "orders").err, "produced 0 records to orders\n")
}

func TestProduceWithEveryCompressionAndAcks(t *testing.T) {
	s := newShell(t)
	var input strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&input, "record number %d\n", i)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, acks := range []string{"all", "1", "0"} {
			topic := codec + "-" + acks
			s.run("topics", "create", topic).ok()
			summary := decode[records.ProduceSummary](s.pipe(input.String(), "produce", topic, "--compression", codec, "--acks", acks, "--json"))
			same(t, topic, summary, records.ProduceSummary{Topic: topic, Records: 3000})
			if acks == "0" {
				continue // No one says when the records are there.
			}
			s.run("consume", topic).prints(input.String())
		}
	}
}

func TestProduceKeysAndTombstones(t *testing.T) {
	s := newShell(t)
	s.pipe("a:1\nb:2:x\n:3\nc:\nd:NULL\n", "produce", "users", "-K", ":", "--null-value", "NULL").ok()
	s.pipe("v\tw\n", "produce", "users", "-K", `\t`).ok()
	s.pipe("x\n\n", "produce", "users", "--key", "k", "--null-value", "").ok()
	s.pipe("y\n", "produce", "users").ok()
	s.run("consume", "users", "--format", `%k|%v|%K|%V\n`, "--null-value", "-").prints(
		"a|1|1|1\nb|2:x|1|3\n|3|0|1\nc||1|0\nd|-|1|-1\nv|w|1|1\nk|x|1|1\nk|-|1|-1\n-|y|-1|1\n")

	s.run("topics", "create", "strict").ok()
	s.pipe("a:1\nnope\nb:2\n", "produce", "strict", "-K", ":").fails(exitFailed, `muster: line 2: the key separator ":" is not in it`, "produced 1 record to strict\n")
	s.run("consume", "strict").prints("1\n")
}

func TestProduceHeadersAndPartition(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a", "-p", "3").ok()
	s.pipe("x\n", "produce", "a", "-H", "h=1", "-H", "i=", "-H", "h=2=3", "--partition", "2").ok()
	s.run("consume", "a", "--format", `%t-%p@%o %h\n`).prints("a-2@0 h=1,i=,h=2=3\n")
	s.pipe("x\n", "produce", "a", "--partition", "3").fails(exitFailed, "line 1: the topic has no partition 3")
}

func TestProduceSendsAKeyToOnePartition(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a", "-p", "7").ok()
	for range 3 {
		s.pipe("ann:1\nbob:2\n", "produce", "a", "-K", ":").ok()
	}
	partitions := map[string]bool{}
	for line := range strings.Lines(s.run("consume", "a", "--format", `%k %p\n`).ok()) {
		partitions[line] = true
	}
	// The partitions that the Java client's murmur2 gives.
	want := map[string]bool{}
	for _, key := range []string{"ann", "bob"} {
		want[fmt.Sprintf("%s %d\n", key, javaPartition(key, 7))] = true
	}
	assert.Equal(t, fmt.Sprint(partitions), fmt.Sprint(want), "the keys went to %v, want %v", partitions, want)
}

// javaPartition is the partition that Kafka's Java client chooses for a key, by
// its murmur2 hash.
func javaPartition(key string, partitions int32) int32 {
	const m, seed = 0x5bd1e995, 0x9747b28c
	data := []byte(key)
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	for i := len(data) - 1; i >= 0; i-- {
		h ^= uint32(data[i]) << (8 * i)
		if i == 0 {
			h *= m
		}
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return int32(h&0x7fffffff) % partitions
}

func TestProduceJSONLines(t *testing.T) {
	s := newShell(t)
	s.pipe(`{"key":"k","value":"v","headers":{"b":"2","a":null},"timestamp":1000}
{"value":{"n":[1, 2]},"key":7,"timestamp":"1970-01-01T00:00:02Z"}
{"value":null,"key":null,"headers":[{"key":"h","value":"1"},{"key":"h","value":"2"}],"timestamp":3000}
{"value":"AP8=","key":"aw==","encoding":"base64","timestamp":4000,"topic":"other","offset":9}
`, "produce", "a", "--json-lines", "-H", "all=yes").ok()
	lines := strings.Split(s.run("consume", "a", "--json").ok(), "\n")
	for i, want := range []string{
		`{"topic":"a","partition":0,"offset":0,"timestamp":1000,"key":"k","value":"v","headers":[{"key":"all","value":"yes"},{"key":"a","value":null},{"key":"b","value":"2"}]}`,
		`{"topic":"a","partition":0,"offset":1,"timestamp":2000,"key":"7","value":"{\"n\":[1, 2]}","headers":[{"key":"all","value":"yes"}]}`,
		`{"topic":"a","partition":0,"offset":2,"timestamp":3000,"key":null,"value":null,"headers":[{"key":"all","value":"yes"},{"key":"h","value":"1"},{"key":"h","value":"2"}]}`,
		`{"topic":"a","partition":0,"offset":3,"timestamp":4000,"key":"aw==","value":"AP8=","headers":[{"key":"all","value":"eWVz"}],"encoding":"base64"}`,
		``,
	} {
		same(t, "a line", lines[i], want)
	}
}

func TestConsumeJSONIsWhatProduceJSONLinesReads(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a", "b", "-p", "3").ok()
	s.pipe("k1:v1\nk2:\xff\x00\nk3:\nk4:NULL\n", "produce", "a", "-K", ":", "--null-value", "NULL", "-H", "h=<&>").ok()
	out := s.run("consume", "a", "--json").ok()
	s.pipe(out, "produce", "b", "--json-lines").ok()
	copied := strings.ReplaceAll(s.run("consume", "b", "--json").ok(), `"topic":"b"`, `"topic":"a"`)
	same(t, "the copy", sortLines(copied), sortLines(out))
	assert.Contains(t, out, "<&>", "JSON is escaped as if for HTML")
}

func TestProduceRefusesWrongJSONLines(t *testing.T) {
	s := newShell(t)
	for line, want := range map[string]string{
		"{":                                 "not a record in JSON",
		`{"vlaue":"x"}`:                     `not a record in JSON: unknown field "vlaue"`,
		`{"key":"x"}`:                       `the field "value" is missing`,
		`{"value":"x"} {}`:                  "more than one JSON value",
		`{"value":"x","encoding":"hex"}`:    `encoding is "base64" or absent`,
		`{"value":"!","encoding":"base64"}`: "value is not base64",
		`{"value":1,"encoding":"base64"}`:   "value must be a string",
		`{"value":"x","headers":1}`:         "headers must be an object",
		`{"value":"x","timestamp":"noon"}`:  "timestamp is milliseconds since 1970 or RFC 3339",
	} {
		s.pipe(`{"value":"ok"}`+"\n"+line, "produce", "a", "--json-lines").fails(exitFailed, "muster: line 2: "+want, "produced 1 record to a\n")
	}
}

func TestProduceLongLines(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "small").ok()
	s.run("topics", "create", "large", "-c", "max.message.bytes=4000000").ok()
	line := strings.Repeat("x", 3_000_000)
	s.pipe(line, "produce", "large").ok()
	s.run("consume", "large").prints(line + "\n")
	s.pipe("a\n"+line+"\n", "produce", "small").fails(exitFailed, "muster: line 2: a record of 3000000 bytes is too large for the topic: its max.message.bytes is 1048588")
	s.pipe(line[:1_000_000]+"\n"+line[:1_000_000], "produce", "small").ok()
}

func TestProduceReportsWhatTheBrokerRefuses(t *testing.T) {
	s := newShell(t, "auto.create.topics.enable", "false")
	r := s.pipe("x\n", "produce", "nope").fails(exitFailed, `muster: line 1: there is no topic "nope", and the broker did not create it`)
	same(t, "stdout", r.stdout, "")
	s.pipe("x\n", "produce", "bad name").fails(exitFailed, `the broker does not allow "bad name" as the name of a topic`)
	s.run("topics", "create", "compacted", "-c", "cleanup.policy=compact").ok()
	r = s.pipe("no key\n", "produce", "compacted", "--json").fails(exitFailed, "muster: line 1: ", "INVALID_RECORD", "without a key")
	same(t, "the summary", decode[records.ProduceSummary](r), records.ProduceSummary{Topic: "compacted", Failed: 1})
}

func TestProduceReportsInputThatCannotBeRead(t *testing.T) {
	s := newShell(t)
	var stderr bytes.Buffer
	in := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errors.New("the disk is gone")))
	code := run(t.Context(), s.args([]string{"produce", "a"}), in, io.Discard, &stderr)
	same(t, "the exit code", code, exitFailed)
	same(t, "stderr", stderr.String(), "produced 1 record to a\nmuster: line 2: the disk is gone\n")
}

func TestProduceInterruptedKeepsWhatItRead(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a").ok()
	ctx, interrupt := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	defer typing.Close()
	var stderr bytes.Buffer
	done := make(chan int)
	go func() { done <- run(ctx, s.args([]string{"produce", "a"}), in, io.Discard, &stderr) }()
	if _, err := io.WriteString(typing, "one\n"); err != nil {
		t.Fatal(err)
	}
	s.follow(1, "consume", "a", "--from", "beginning") // It is there while the input is open.
	interrupt()
	same(t, "the exit code", <-done, exitInterrupted)
	same(t, "stderr", stderr.String(), "produced 1 record to a\nmuster: interrupted: the input was not read to its end\n")
}
