package group

// Committed is a note: the offsets that the end of a transaction has committed. The
// producer that ended it is not told of them in a reply.
type Committed []CommittedOffset

// CommittedOffset is an offset that a group has committed.
type CommittedOffset struct {
	Group     string
	Topic     string
	Partition int32
	Offset    int64
}

// IsNote implements machine.Note.
func (Committed) IsNote() {}
