package fleet

import (
	"bytes"
	"net/http"
)

// Writer keeps the answer to another broker until it is whole, and signs it then.
type Writer struct {
	http.ResponseWriter
	note   *Note
	status int
	body   bytes.Buffer
}

// Writer returns one for the answer to a note. Close sends it.
func (f *Fleet) Writer(w http.ResponseWriter, n *Note) *Writer {
	return &Writer{ResponseWriter: w, note: n, status: http.StatusOK}
}

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) { w.status = status }

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) { return w.body.Write(b) }

// Close signs the answer, with the key of the note, and sends it.
func (w *Writer) Close() {
	h := w.Header()
	h.Set(ProofHeader, prove(w.note.key, w.note.Nonce, w.status, h.Get("Content-Type"), hashOf(w.body.Bytes())))
	w.ResponseWriter.WriteHeader(w.status)
	_, _ = w.ResponseWriter.Write(w.body.Bytes()) // Who asked may be gone.
}
