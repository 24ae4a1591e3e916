package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"muster/internal/auth"
	"muster/internal/search"
	"muster/internal/web/problem"
	"muster/internal/web/records"
	"muster/internal/words"
)

// atQuota is that a part of a search ended because its reader's quota of bytes is used up.
const atQuota = "quota"

// meteredLog counts what is read of a log.
type meteredLog struct {
	search.Log
	quota records.Quota
}

// Read implements search.Log.
func (l *meteredLog) Read(ctx context.Context, from int64, most int, f func(*search.Record) bool) (search.Chunk, error) {
	c, err := l.Log.Read(ctx, from, most, f)
	l.quota.Take(c.Bytes)
	return c, err
}

func metered(logs map[int32]search.Log, q records.Quota) map[int32]search.Log {
	out := make(map[int32]search.Log, len(logs))
	for i, l := range logs {
		out[i] = &meteredLog{l, q}
	}
	return out
}

// withinQuota bounds the next part of the search by what its reader may read now, or
// returns how long they have to wait.
func (s *recordsSearch) withinQuota() (wait time.Duration) {
	room, wait := s.quota.Room(searchBytes)
	s.search.Limits.Bytes = min(searchBytes, max(int64(room), 1)) // At least a batch.
	return wait
}

// because says why a part ended: whether all that a part may read was read, or all that its
// reader may.
func (s *recordsSearch) because(why string) string {
	if why == search.AtBytes && s.search.Limits.Bytes < searchBytes {
		return atQuota
	}
	return why
}

// overQuota is the problem of somebody who has read more than they may.
func overQuota(who auth.Principal, wait time.Duration) *problem.Problem {
	wait = max(wait, time.Second)
	return &problem.Problem{
		Status: http.StatusTooManyRequests, Code: "quota_exceeded", RetryAfter: int(math.Ceil(wait.Seconds())),
		Message: fmt.Sprintf("%s has used up the quota consumer_byte_rate; try again in %s", who, words.Duration(wait)),
	}
}

// awaitQuota waits until who follows may read on.
func (s *recordsSearch) awaitQuota(ctx context.Context) error {
	for {
		wait := s.withinQuota()
		if wait <= 0 {
			return nil
		}
		over := make(chan struct{})
		t := time.AfterFunc(wait, func() { close(over) })
		err := s.await(ctx, over, nil)
		t.Stop()
		if err != nil {
			return err
		}
	}
}
