package partition

import (
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata/config"
	"muster/internal/record"
)

// RecordError says what is wrong with one record of a batch that was refused for
// its sake (KIP-467), so that a producer can tell it from the others.
type RecordError struct {
	Index   int32 // of the record in its batch
	Message string
}

// maxRecordErrors is how many records of a batch are named at most, which is more
// than producers put into one: a batch that unpacks to millions of bad records is
// refused as a whole.
const maxRecordErrors = 10_000

// validateRecords checks what must be looked up in the records: their timestamps,
// if the batch's header does not vouch for them, and that they have keys, if the
// topic is compacted.
func validateRecords(b record.Batch, cfg *config.Topic, now time.Time) Appended {
	v := recordValidator{compact: cfg.Compact, now: now.UnixMilli()}
	v.oldest, v.newest = v.now-cfg.TimestampBefore.Milliseconds(), v.now+cfg.TimestampAfter.Milliseconds()
	vouched := cfg.LogAppendTime || v.vouched(b, cfg)
	v.timestamps = !vouched
	if vouched && !cfg.Compact {
		return Appended{}
	}
	if err := b.Scan(v.check); err != nil {
		return refused(kerr.CorruptMessage, err.Error())
	}
	if v.timestamps && v.bad == 0 && b.MaxTimestamp() > v.newest {
		// No record has it, but retention would go by it.
		return refused(kerr.InvalidTimestamp, fmt.Sprintf("the batch says that its newest timestamp is %d, which none of its records has", b.MaxTimestamp()))
	}
	return v.outcome()
}

type recordValidator struct {
	compact, timestamps bool
	now, oldest, newest int64 // milliseconds

	seen, bad int32
	late      bool // a timestamp is out of bounds
	errors    []RecordError
}

// vouched says whether the header rules out that a timestamp is out of bounds. It
// has the newest, and the first, which need not be the oldest.
func (v *recordValidator) vouched(b record.Batch, cfg *config.Topic) bool {
	return b.MaxTimestamp() <= v.newest && cfg.TimestampBefore == math.MaxInt64
}

// check looks at one record.
func (v *recordValidator) check(m record.Meta) error {
	switch {
	case v.compact && !m.HasKey:
		v.refuse("a compacted topic takes no record without key")
	case v.timestamps && m.Timestamp != record.NoTimestamp && (m.Timestamp < v.oldest || m.Timestamp > v.newest):
		v.late = true
		v.refuse(fmt.Sprintf("timestamp %d is not between %d and %d (message.timestamp.before.max.ms, message.timestamp.after.max.ms)", m.Timestamp, v.oldest, v.newest))
	}
	v.seen++
	return nil
}

func (v *recordValidator) refuse(message string) {
	if v.bad++; v.bad <= maxRecordErrors {
		v.errors = append(v.errors, RecordError{v.seen, message})
	}
}

// outcome refuses the batch if a record is bad. Kafka's rule: one timestamp makes
// it INVALID_TIMESTAMP.
func (v *recordValidator) outcome() Appended {
	if v.bad == 0 {
		return Appended{}
	}
	code := kerr.InvalidRecord
	if v.late {
		code = kerr.InvalidTimestamp
	}
	out := refused(code, fmt.Sprintf("%d of %d records are refused; record %d: %s", v.bad, v.seen, v.errors[0].Index, v.errors[0].Message))
	if v.bad <= maxRecordErrors {
		out.Records = v.errors
	}
	return out
}
