package protocol

import (
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"

	"muster/internal/assert"
)

// openWith opens a heartbeat of a client, as a connection does whose last request had
// another client id.
func openWith(t *testing.T, last string, id *string) Request {
	t.Helper()
	frame := []byte{0, 12, 0, 0, 0, 0, 0, 1}
	if id == nil {
		frame = append(frame, 0xff, 0xff)
	} else {
		frame = append(binary.BigEndian.AppendUint16(frame, uint16(len(*id))), *id...)
	}
	r, err := ParseHeader(append(frame, "body"...))
	assert.Must(t, err)
	r.ClientID = last
	assert.Must(t, r.Open())
	assert.Equal(t, string(r.Body), "body", "the body")
	return r
}

func TestAClientIDIsUsedAgain(t *testing.T) {
	last, same, other := strings.Repeat("a", 9), strings.Repeat("a", 9), "b"
	if r := openWith(t, last, &same); r.ClientID != last || unsafe.StringData(r.ClientID) != unsafe.StringData(last) {
		t.Errorf("client id %q, which is not the one that was there", r.ClientID)
	}
	if r := openWith(t, last, &other); r.ClientID != other {
		t.Errorf("client id %q of %q", r.ClientID, other)
	}
	empty := ""
	for _, id := range []*string{nil, &empty} {
		if r := openWith(t, last, id); r.ClientID != "" {
			t.Errorf("client id %q of none", r.ClientID)
		}
	}
}
