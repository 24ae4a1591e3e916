package interop

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// rec is a record as a test writes and expects it. The fields are text so that
// records can be compared, and so that kcat can carry them.
type rec struct {
	key, value string
	headers    string // name=value,name=value
	timestamp  int64  // in milliseconds; anyTime for now or so
}

// anyTime stands for a timestamp that the client sets by itself.
const anyTime = -1

// codecs are the names of Kafka's compression codecs, by their number.
var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// generate makes n records of about 100 bytes. Each value begins with the
// record's number, which is how a consumer finds out what it ought to be.
func generate(tag string, n int) []rec {
	recs := make([]rec, n)
	first := time.Now().UnixMilli() - int64(n)
	for i := range recs {
		recs[i] = rec{
			key:       "key-" + strconv.Itoa(i*7919%997),
			value:     fmt.Sprintf("%08d %s %s", i, tag, filler[i%100:i%100+70]),
			timestamp: first + int64(i),
		}
		switch i % 3 {
		case 1:
			recs[i].headers = "number=" + strconv.Itoa(i)
		case 2:
			recs[i].headers = "a=" + strconv.Itoa(i%10) + ",b=" + tag
		}
	}
	return recs
}

var filler = strings.Repeat("the quick brown fox jumps over the lazy dog; pack my box with five dozen jugs. ", 4)[:200]

// header is one header of a record.
type header struct{ name, value string }

func (r *rec) headerList() []header {
	if r.headers == "" {
		return nil
	}
	var out []header
	for _, h := range strings.Split(r.headers, ",") {
		name, value, _ := strings.Cut(h, "=")
		out = append(out, header{name, value})
	}
	return out
}

func (r *rec) addHeader(name string, value []byte) {
	if r.headers != "" {
		r.headers += ","
	}
	r.headers += name + "=" + string(value)
}

// number is the record's place among those that were generated.
func (r *rec) number() (int, error) {
	digits, _, _ := strings.Cut(r.value, " ")
	return strconv.Atoi(digits)
}

func (r *rec) equal(want *rec, written, read time.Time) bool {
	if want.timestamp == anyTime {
		return r.key == want.key && r.value == want.value && r.headers == want.headers &&
			r.timestamp >= written.UnixMilli() && r.timestamp <= read.UnixMilli()
	}
	return *r == *want
}

// compare checks that the records read from each partition are those written:
// every one once, unchanged, in the order written if the producer keeps it, and
// with a key's records in one partition if it chooses the partition by key.
func compare(want []rec, got [][]rec, by client, written time.Time) error {
	read := time.Now()
	seen := make([]bool, len(want))
	home := map[string]int{}
	count := 0
	for p, recs := range got {
		if len(recs) == 0 {
			return fmt.Errorf("partition %d has no records", p)
		}
		previous := -1
		for i := range recs {
			r := &recs[i]
			n, err := r.number()
			switch {
			case err != nil || n < 0 || n >= len(want):
				return fmt.Errorf("partition %d has a record that nobody wrote: %+v", p, *r)
			case seen[n]:
				return fmt.Errorf("record %d was read twice, the second time from partition %d", n, p)
			case n <= previous && !by.unordered:
				return fmt.Errorf("partition %d: record %d comes after record %d", p, n, previous)
			case !r.equal(&want[n], written, read):
				return fmt.Errorf("record %d:\nwrote %+v\nread  %+v", n, want[n], *r)
			}
			seen[n], previous = true, n
			count++
			if at, known := home[r.key]; by.byKey && known && at != p {
				return fmt.Errorf("key %q is in partitions %d and %d", r.key, at, p)
			}
			home[r.key] = p
		}
	}
	if count != len(want) {
		return fmt.Errorf("wrote %d records, read %d", len(want), count)
	}
	return nil
}

// collector gathers records by partition until there are enough.
type collector struct {
	parts [][]rec
	left  int
}

func newCollector(partitions, n int) *collector {
	return &collector{parts: make([][]rec, partitions), left: n}
}

var errForeignPartition = errors.New("a record of a partition that the topic does not have")

func (c *collector) add(partition int, r rec) error {
	if partition < 0 || partition >= len(c.parts) {
		return errForeignPartition
	}
	c.parts[partition] = append(c.parts[partition], r)
	c.left--
	return nil
}
