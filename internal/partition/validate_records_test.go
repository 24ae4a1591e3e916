package partition

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store/mem"
)

// recordsOf makes a batch of records that are described as key and how far their
// timestamp is from now; no key is null.
func (r *rig) recordsOf(codec record.Codec, recs ...recordAt) record.Batch {
	tmpl := record.PlainTemplate()
	tmpl.Codec = codec
	var out []record.Record
	for i, rec := range recs {
		x := record.Record{OffsetDelta: int32(i), Timestamp: r.now.Add(rec.from).UnixMilli(), Value: []byte("v")}
		if rec.from == never {
			x.Timestamp = record.NoTimestamp
		}
		if rec.key != "" {
			x.Key = []byte(rec.key)
		}
		out = append(out, x)
	}
	b, err := record.Build(tmpl, out)
	must(r.t, err)
	return b
}

// never is the distance of a record without timestamp.
const never = time.Duration(math.MinInt64)

type recordAt struct {
	key  string
	from time.Duration
}

func TestARefusedBatchNamesTheRecordsAtFault(t *testing.T) {
	const hour = time.Hour
	compacted := map[string]string{"cleanup.policy": "compact"}
	bounded := map[string]string{"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"}
	both := map[string]string{"cleanup.policy": "compact", "message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"}
	for _, tt := range []struct {
		name string
		set  map[string]string
		recs []recordAt
		want *kerr.Error
		bad  []int32
	}{
		{"no keys", compacted, []recordAt{{"a", 0}, {"", 0}, {"b", 0}, {"", 0}}, kerr.InvalidRecord, []int32{1, 3}},
		{"keys", compacted, []recordAt{{"a", 0}, {"b", 0}}, nil, nil},
		{"timestamps on both sides", bounded, []recordAt{{"a", 0}, {"b", hour}, {"c", -hour}, {"d", 0}}, kerr.InvalidTimestamp, []int32{1, 2}},
		{"just within", bounded, []recordAt{{"a", time.Minute}, {"b", -time.Minute}}, nil, nil},
		{"older than the first", bounded, []recordAt{{"", 0}, {"", -hour}}, kerr.InvalidTimestamp, []int32{1}},
		{"no timestamp", bounded, []recordAt{{"", never}}, nil, nil},
		{"the broker's timestamp", map[string]string{"message.timestamp.type": "LogAppendTime"}, []recordAt{{"", 2 * hour}}, nil, nil},
		{"both kinds", both, []recordAt{{"", hour}, {"b", hour}, {"", 0}, {"d", 0}}, kerr.InvalidTimestamp, []int32{0, 1, 2}},
		{"far ahead by default", nil, []recordAt{{"", 0}, {"", 2 * hour}}, kerr.InvalidTimestamp, []int32{1}},
		{"as old as can be by default", nil, []recordAt{{"", -10_000 * hour}}, nil, nil},
	} {
		for _, codec := range []record.Codec{record.None, record.ZSTD} {
			r := newRig(t, mem.New(), tt.set)
			a := r.append(r.recordsOf(codec, tt.recs...), AcksAll)
			var bad []int32
			for _, e := range a.Records {
				bad = append(bad, e.Index)
				if !strings.Contains(e.Message, "key") && !strings.Contains(e.Message, "timestamp") {
					t.Errorf("%s: record %d: %q", tt.name, e.Index, e.Message)
				}
			}
			if a.Err != tt.want || !slices.Equal(bad, tt.bad) || (a.Message == "") != (tt.want == nil) {
				t.Errorf("%s, %s: %v, records %v, %q", tt.name, codec, a.Err, bad, a.Message)
			}
			if a.LogStartOffset != 0 {
				t.Errorf("%s: log start offset %d", tt.name, a.LogStartOffset)
			}
		}
	}
}

func TestABatchOfVeryManyBadRecordsNamesNone(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"cleanup.policy": "compact"})
	for n, named := range map[int]int{maxRecordErrors: maxRecordErrors, maxRecordErrors + 1: 0} {
		a := r.append(r.recordsOf(record.ZSTD, make([]recordAt, n)...), AcksAll)
		if a.Err != kerr.InvalidRecord || len(a.Records) != named {
			t.Errorf("%d bad records: %v, %d named", n, a.Err, len(a.Records))
		}
	}
}

func TestABatchWhoseHeaderClaimsANewerTimestampIsRefused(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	b := r.recordsOf(record.None, recordAt{})
	binary.BigEndian.PutUint64(b[35:], uint64(r.now.Add(2*time.Hour).UnixMilli()))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	r.wantRefused(b, kerr.InvalidTimestamp)
}
