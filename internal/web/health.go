package web

import (
	"net/http"

	"muster/internal/web/problem"
)

// Health says how the broker is.
type Health struct {
	Status   string   `json:"status" doc:"ok, or unavailable if there are problems"`
	Node     int32    `json:"node" doc:"the broker's node id"`
	Cluster  string   `json:"cluster,omitempty" doc:"the cluster id"`
	Store    string   `json:"store" doc:"where records are kept"`
	Problems []string `json:"problems,omitempty" doc:"what is wrong, in sentences"`
}

// wellStatus is the status of a broker without problems.
const wellStatus = "ok"

// judged fills in the status.
func (h Health) judged() Health {
	h.Status = wellStatus
	if len(h.Problems) > 0 {
		h.Status = "unavailable"
	}
	return h
}

// writeHealth answers 200 if all is well and 503 if not, so that a client that asks
// need not read the rest.
func writeHealth(w http.ResponseWriter, h Health) {
	code := http.StatusOK
	if len(h.Problems) > 0 {
		code = http.StatusServiceUnavailable
	}
	body, err := problem.Encode(h.judged())
	if err != nil {
		code, body = http.StatusInternalServerError, nil
	}
	problem.Send(w, code, problem.JSON, body)
}
