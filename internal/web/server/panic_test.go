package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/internal/assert"
)

func TestAPanicOverHTTPIsToldAndEndsItsRequestAlone(t *testing.T) {
	var log bytes.Buffer
	panics := 0
	opts := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Panicked: func() { panics++ }}
	s := httptest.NewServer(surviving(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/boom":
			panic("a defect")
		case "/abort":
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNoContent)
	}), opts))
	get := func(path string) error {
		resp, err := http.Get(s.URL + path)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	assert.True(t, get("/boom") != nil && get("/abort") != nil, "a request that panicked is answered")
	assert.NoError(t, get("/"))
	s.Close() // All is over.
	if got := log.String(); panics != 1 || strings.Count(got, "\n") != 1 || !strings.Contains(got, "a defect") || !strings.Contains(got, "path=/boom") {
		t.Errorf("%d panics are told:\n%s", panics, got)
	}
}
