package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
)

// maxTogether is how many rules, users or entities one request may change, or name.
const maxTogether = 20_000

// checkTogether refuses a request that is about too much at once.
func checkTogether(n int) error {
	if n > maxTogether {
		return metadata.Refuse(kerr.InvalidRequest, "one request may be about %d, not %d", maxTogether, n)
	}
	return nil
}

// checkRules refuses a request about rules where there are none, or about too many.
func checkRules(image *metadata.Image, n int) error {
	if !image.Authorizes() {
		return metadata.Refuse(kerr.SecurityDisabled, "No Authorizer is configured.")
	}
	return checkTogether(n)
}

// refuseEach gives an error to all entries of an answer. Its text goes to the first
// alone: there may be millions.
func refuseEach(n int, code int16, msg *string, set func(i int, code int16, msg *string)) {
	for i := range n {
		set(i, code, msg)
		msg = nil
	}
}
