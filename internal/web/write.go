package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

const (
	jsonType = "application/json"
	csvType  = "text/csv; charset=utf-8"
)

// writeChunk is how much is written at a time, and writeTimeout how long that may take:
// who reads more slowly than that is not waited for.
const (
	writeChunk   = 32 << 10
	writeTimeout = 5 * time.Second
)

// pacedWriter gives each write a deadline of its own, so that an answer may be long and
// a stream endless, and still nobody holds a connection by not reading.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	conn    *held // nil if it does not count
}

func paced(w http.ResponseWriter, conn *held) *pacedWriter {
	p := &pacedWriter{w, http.NewResponseController(w), conn}
	p.extend(answerTimeout + writeTimeout) // The deadline of the answer before may be over.
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
			return w.ResponseWriter.Write(b[written:min(len(b), written+writeChunk)])
		})
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// encodeJSON writes an answer as people can read it. Names stand in it as they are: it
// is never part of a page.
func encodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}

// send writes an answer. Who asked may be gone.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Problem is why there is no answer.
type Problem struct {
	status int

	Code       string      `json:"error" doc:"what is wrong, as a word for programs"`
	Message    string      `json:"message" doc:"what is wrong, as a sentence for people"`
	MissingACL *MissingACL `json:"missingAcl,omitempty" doc:"the right that lacks, if one does"`
	Kafka      string      `json:"kafkaError,omitempty" doc:"what the Kafka protocol calls it, if that refused, as in TOPIC_ALREADY_EXISTS"`
	RetryAfter int         `json:"retryAfterSeconds,omitempty" doc:"when to try again, as in the Retry-After header, if a quota is exceeded"`
}

// MissingACL is a right that somebody lacks.
type MissingACL struct {
	Principal    string `json:"principal" doc:"who lacks it"`
	Operation    string `json:"operation" doc:"what they may not do, under Kafka's name"`
	ResourceType string `json:"resourceType" doc:"TOPIC, GROUP or CLUSTER"`
	ResourceName string `json:"resourceName" doc:"which one"`
	Command      string `json:"command,omitempty" doc:"the command that gives it"`
}

func (p *Problem) Error() string { return p.Message }

func writeProblem(w http.ResponseWriter, p *Problem) {
	body, err := encodeJSON(p)
	if err != nil {
		body = nil
	}
	send(w, p.status, jsonType, body)
}
