package store

import (
	"context"
	"errors"
	"time"
)

// Convertible is a Log that can get layout indexed.
type Convertible interface {
	Log
	// Preview says what there is to convert. It changes nothing.
	Preview(ctx context.Context) (Conversion, error)
	// Prepare does a part of what Convert does, for about that long, while appends go on. It returns how many records are
	// prepared, and whether they are all that there were.
	Prepare(ctx context.Context, span time.Duration) (records int64, done bool, err error)
	// Convert makes it so: with the offsets that the records have, or dense ones in their order. Appends go on until it
	// is done, and are refused then. The log must be opened again, under a larger leader epoch, and by one who
	// forgets where it ended. After an error it may be what it was. Then Convert can be called again, and goes on
	// where it was, whoever leads the log by then.
	Convert(ctx context.Context) error
}

// Conversion is what there is to convert in a log.
type Conversion struct {
	Records int64
	Bytes   int64
	Time    time.Duration // that it takes, about
	Copied  bool          // the records are copied, and offsets stay
}

// Laid is a Log of a store that has several layouts.
type Laid interface {
	Log
	Layout() Layout
}

// Converted is a Log that may have been converted. Its records of before are of no leader epoch then.
type Converted interface {
	Log
	// Until returns the last leader epoch of before: who knows it has offsets of before.
	Until() (epoch int32, converted bool)
}

// Converter is a Store with logs that were converted.
type Converter interface {
	Store
	// Places returns, of offsets in logs which may be from before those were converted, those
	// that are in their place: of the same record, or the next one that is there.
	Places(ctx context.Context, places []Place) ([]int64, error)
	// Layouts returns those that logs have, none of one that does not exist.
	Layouts(ctx context.Context, tps []TopicPartition) ([]LogLayout, error)
}

// LogLayout is the layout of a log.
type LogLayout struct {
	Layout     Layout
	Renumbered bool // its records have other offsets than before it was converted
}

// Place is an offset in a log.
type Place struct {
	TopicPartition
	Offset int64
}

// ErrNotConvertible says that a log cannot be converted, now or later.
var ErrNotConvertible = errors.New("cannot be converted")

// LeastOld is the least offset that can be of before a log was converted. No log has as many records.
const LeastOld = 1 << 40

// IsOld says whether an offset may be of before a log was converted.
func IsOld(offset int64) bool { return offset >= LeastOld }
