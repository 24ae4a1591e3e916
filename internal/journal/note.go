package journal

// IsNote implements machine.Note.
func (*Entry) IsNote() {}

// IsNote implements machine.Note.
func (*Txn) IsNote() {}
