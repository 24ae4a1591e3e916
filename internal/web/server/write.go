package server

import (
	"net/http"
	"time"
)

// WriteChunk is how much is written at a time, and writeTimeout how long that may take:
// who reads more slowly than that is not waited for.
const (
	WriteChunk   = 32 << 10
	writeTimeout = 5 * time.Second
)

// pacedWriter gives each write a deadline of its own, so that an answer may be long and
// a stream endless, and still no one holds a connection by not reading.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	conn    *held // nil if it does not count
}

func paced(w http.ResponseWriter, conn *held) *pacedWriter {
	p := &pacedWriter{w, http.NewResponseController(w), conn}
	p.extend(AnswerTimeout + writeTimeout) // The deadline of the answer before may be over.
	return p
}

func (w *pacedWriter) extend(by time.Duration) {
	_ = w.control.SetWriteDeadline(time.Now().Add(by)) // A writer of tests has none.
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *pacedWriter) Write(b []byte) (int, error) {
	written := 0
	for {
		w.extend(writeTimeout)
		n, err := w.conn.await(func() (int, error) {
			return w.ResponseWriter.Write(b[written:min(len(b), written+WriteChunk)])
		})
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}
