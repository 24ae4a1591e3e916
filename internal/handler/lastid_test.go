package handler_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/handler"
)

func TestTheClientIDOfTheLastRequestIsKept(t *testing.T) {
	w := newWorld(t)
	var last string
	long := strings.Repeat("x", 257)
	for _, c := range []struct{ id, kept string }{{"one", "one"}, {"two", "two"}, {long, "two"}, {"", ""}} {
		req := kmsg.NewPtrApiVersionsRequest()
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(c.id)).AppendRequest(nil, req, 1)[4:]
		if _, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L", LastID: &last}, frame); err != nil {
			t.Fatal(err)
		}
		if last != c.kept {
			t.Errorf("%q is kept after %q", last, c.id)
		}
	}
}
