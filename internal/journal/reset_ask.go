package journal

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ResetAsk says of an OffsetCommit that no member sends that it moves the offsets of a group also
// while the group has members. It is answered when the offsets are moved, or will not be.
type ResetAsk struct {
	Plan  string // its name, by which the journal tells of it
	Now   bool   // members that have the partitions are removed, and not waited for
	Force bool   // also if positions are not all that the members keep
}

// resetTag is the number of the tagged field of the request, reasonTag that of the answer.
const (
	resetTag  = 10_014
	reasonTag = 10_015
)

const (
	resetNow = 1 << iota
	resetForce
)

var resetName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Set writes it into the tagged fields of a request.
func (r ResetAsk) Set(tags *kmsg.Tags) {
	flags := byte(0)
	if r.Now {
		flags |= resetNow
	}
	if r.Force {
		flags |= resetForce
	}
	tags.Set(resetTag, append([]byte{flags}, r.Plan...))
}

// ResetAskOf reads what Set wrote; false if there is nothing, or nothing that it wrote.
func ResetAskOf(tags *kmsg.Tags) (r ResetAsk, ok bool) {
	tags.Each(func(tag uint32, b []byte) {
		if tag == resetTag && len(b) > 0 && resetName.Match(b[1:]) {
			r, ok = ResetAsk{Plan: string(b[1:]), Now: b[0]&resetNow != 0, Force: b[0]&resetForce != 0}, true
		}
	})
	return r, ok
}

// ResetReason is why a reset was not applied, for people. It stands in the answer, whose errors
// have no place for it.
type ResetReason string

// Set writes it into the tagged fields of an answer.
func (r ResetReason) Set(tags *kmsg.Tags) { tags.Set(reasonTag, []byte(r)) }

// ResetReasonOf reads what Set wrote, "" if there is nothing.
func ResetReasonOf(tags *kmsg.Tags) (r ResetReason) {
	tags.Each(func(tag uint32, b []byte) {
		if tag == reasonTag {
			r = ResetReason(b)
		}
	})
	return r
}
