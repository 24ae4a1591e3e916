package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// passing are the beginnings of error replies that say that a server cannot
// serve for now: it loads its data, waits for a failover, or has just been
// replaced as primary.
var passing = []string{"LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "NOREPLICAS", "BUSY ", "UNBLOCKED", "MOVED", "ASK"}

// Attempt wraps an error with what was attempted, as one of the store's
// errors: ErrUnavailable if the same may succeed later, else ErrStorage.
func Attempt(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", what, err)
	case IsPassing(err):
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	default:
		return fmt.Errorf("%s: %w: %w%s", what, store.ErrStorage, err, WayOut(err.Error()))
	}
}

// waysOut are what to do about refusals that last until someone does it.
var waysOut = map[string]string{
	"OOM ":      "Redis is full: raise its maxmemory, or have retention or DeleteRecords make room",
	"WRONGTYPE": "the key is not what muster made: RENAME it, and muster makes another",
	"NOPERM":    "ACL SETUSER gives the right; what muster needs is in docs/redis.md",
	"can't run": "ACL SETUSER gives the right; what muster needs is in docs/redis.md",
	"MISCONF":   "Redis cannot save: look at its log and its disk",
}

// WayOut says what to do about a refusal of Redis, in parentheses, if that is known.
func WayOut(refusal string) string {
	for _, text := range slices.Sorted(maps.Keys(waysOut)) {
		if strings.Contains(refusal, text) {
			return " (" + waysOut[text] + ")"
		}
	}
	return ""
}

// IsPassing says whether an error is about reaching a server that serves, and
// not about the command.
func IsPassing(err error) bool {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(reply.Error(), code) })
	}
	var certificate *tls.CertificateVerificationError
	return !rueidis.IsParseErr(err) && !errors.As(err, &certificate)
}
