package store

import "context"

// Convertible is a Log that can get dense offsets.
type Convertible interface {
	Log
	// Convert gives the records dense offsets, in place and in their order. Appends go on until it is
	// done, and are refused then. The log must be opened again, under a larger leader epoch, and by one who
	// forgets where it ended. After an error it may be what it was. Then Convert can be called again, and goes on
	// where it was, whoever leads the log by then.
	Convert(ctx context.Context) error
}

// Converter is a Store with logs that were converted.
type Converter interface {
	Store
	// Converted returns, of offsets of a log which may be from before it was converted, those
	// that are in their place: of the same record, or the next one that is there.
	Converted(ctx context.Context, tp TopicPartition, offsets []int64) ([]int64, error)
}
