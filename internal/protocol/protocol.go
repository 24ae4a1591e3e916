// Package protocol turns frames into requests and answers into frames.
//
// It reads request headers, checks a request's layout before anything is
// decoded, and writes response headers; kmsg has the schemas. Two messages have
// codecs of their own, because they carry the records: Produce requests are
// read in place (produce.go) and Fetch answers are written around records that
// stay where they are (fetch.go).
//
// Nothing here decides about a request's meaning, and nothing reads or writes a
// socket.
package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// API keys that are special on the wire.
const (
	KeyProduce     = 0
	KeyFetch       = 1
	KeyApiVersions = 18
)

// ErrHeader says that a frame does not start with a request header.
var ErrHeader = errors.New("malformed request header")

// Request is a request as it came in. Body points into the frame, which is
// used again when the request has been handled.
type Request struct {
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      string
	Body          []byte
	// Size is the size of the frame.
	Size int
	// Memory counts what the decoded request takes, unless it is nil.
	Memory Memory
}

// minHeader is key, version and correlation id.
const minHeader = 8

// ParseHeader reads the fields of a frame that all requests have in common:
// key, version and correlation id. What follows depends on the key and version
// and is read by Request.Open.
func ParseHeader(frame []byte) (Request, error) {
	if len(frame) < minHeader {
		return Request{}, ErrHeader
	}
	return Request{
		Key:           int16(binary.BigEndian.Uint16(frame)),
		Version:       int16(binary.BigEndian.Uint16(frame[2:])),
		CorrelationID: int32(binary.BigEndian.Uint32(frame[4:])),
		Body:          frame[minHeader:],
		Size:          len(frame),
	}, nil
}

// Open reads the rest of the header, so that Body is the request's body. The
// caller has made sure that the version is one that kmsg knows. A ClientID that is
// there already, of an earlier request, is used again if it is the same.
func (r *Request) Open() error {
	b := r.Body
	if len(b) < 2 {
		return ErrHeader
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	if n > len(b) {
		return ErrHeader
	}
	n = max(n, 0) // There may be none.
	if string(b[:n]) != r.ClientID {
		r.ClientID = string(b[:n])
	}
	b = b[n:]
	if isFlexible(r.Key, r.Version) {
		var err error
		var memory int // Tags are not kept.
		if b, err = walkTags(b, &memory); err != nil {
			return ErrHeader
		}
	}
	r.Body = b
	return nil
}

// Memory is where the memory of requests is counted.
type Memory interface {
	// Hold counts memory until the request has been handled; false says that
	// there is no room for it.
	Hold(bytes int) bool
}

// ErrMemory says that there is no room for what a request names.
var ErrMemory = errors.New("too many large requests at the same time")

// andAnswer is how many times the memory of a decoded request is counted: mostly
// its answer names the same things again, first as structures, then as bytes.
const andAnswer = 3

// Decode decodes the body, if there is room for it in memory. Byte slices in the
// result point into the frame. As in Kafka, bytes after the request are ignored:
// librdkafka 2.16 sends some when it asks for all topics.
func (r *Request) Decode() (kmsg.Request, error) {
	var memory int
	rest, err := shapeOf(r.Key, r.Version).walk(r.Body, &memory)
	if err == nil && r.Memory != nil && !r.Memory.Hold(andAnswer*memory) {
		err = ErrMemory
	}
	if err != nil {
		return nil, fmt.Errorf("%s v%d: %w", kmsg.NameForKey(r.Key), r.Version, err)
	}
	r.Body = r.Body[:len(r.Body)-len(rest)]
	req := NewRequest(r.Key)
	req.SetVersion(r.Version)
	if err := req.ReadFrom(r.Body); err != nil {
		return nil, fmt.Errorf("%s v%d: %w", kmsg.NameForKey(r.Key), r.Version, err)
	}
	return req, nil
}

// isFlexible says whether a version uses compact types and tags.
func isFlexible(key, version int16) bool {
	if key == KeyProduce {
		return version >= produceFlexible
	}
	return shapeOf(key, version).flexible
}
