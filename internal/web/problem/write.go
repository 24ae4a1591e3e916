package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// JSON is the content type of answers.
const JSON = "application/json"

// Encode writes an answer as people can read it. Names stand in it as they are: it
// is never part of a page.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}

// Send writes an answer. Who asked may be gone.
func Send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Problem is why there is no answer.
type Problem struct {
	Status int `json:"-"` // of HTTP

	Code       string      `json:"error" doc:"what is wrong, as a word for programs"`
	Message    string      `json:"message" doc:"what is wrong, as a sentence for people"`
	MissingACL *MissingACL `json:"missingAcl,omitempty" doc:"the right that lacks, if one does"`
	Kafka      string      `json:"kafkaError,omitempty" doc:"what the Kafka protocol calls it, if that refused, as in TOPIC_ALREADY_EXISTS"`
	RetryAfter int         `json:"retryAfterSeconds,omitempty" doc:"when to try again, as in the Retry-After header, if a quota is exceeded"`
}

// MissingACL is a right that someone lacks.
type MissingACL struct {
	Principal    string `json:"principal" doc:"who lacks it"`
	Operation    string `json:"operation" doc:"what they may not do, under Kafka's name"`
	ResourceType string `json:"resourceType" doc:"TOPIC, GROUP or CLUSTER"`
	ResourceName string `json:"resourceName" doc:"which one"`
	Command      string `json:"command,omitempty" doc:"the command that gives it"`
}

func (p *Problem) Error() string { return p.Message }

// Write answers with a problem.
func Write(w http.ResponseWriter, p *Problem) {
	body, err := Encode(p)
	if err != nil {
		body = nil
	}
	Send(w, p.Status, JSON, body)
}
