package store

import "muster/internal/record"

// PeekBytes is how much of a file is read at a time to look for headers.
const PeekBytes = 4 << 10

// Headers calls fn with the header of each batch of the run in order, and where the batch
// begins in it. There may be no more of the batch than that. Records in a file stay there. It
// stops at fn's first error.
func (r *Records) Headers(fn func(at int, b record.Batch) error) error {
	var window []byte
	var from int // where the window begins in the run
	for at := 0; at < r.Len; {
		head := r.Bytes
		if head != nil {
			head = head[at:]
		} else {
			if at < from || at+record.HeaderSize > from+len(window) {
				if window == nil {
					window = make([]byte, 0, PeekBytes)
				}
				from, window = at, window[:min(PeekBytes, r.Len-at)]
				if _, err := r.File.ReadAt(window, r.Pos+int64(at)); err != nil {
					return err
				}
			}
			head = window[at-from:]
		}
		if len(head) < record.HeaderSize {
			return ErrCorrupt
		}
		b := record.Batch(head)
		if err := fn(at, b); err != nil {
			return err
		}
		at += max(b.Size(), record.HeaderSize)
	}
	return nil
}
