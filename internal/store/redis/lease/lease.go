// Package lease registers brokers in Redis under their node ids, for as long as
// they say that they are alive, and sees who else is registered. It does not
// decide what happens when a broker is gone.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store/redis/conn"
)

// A broker's registration is a key that expires unless the broker renews it:
//
//	{<prefix>:__cluster_metadata:0}:broker:<node id>  =  <token> <value>
//
// The token is random and stands for one incarnation of one broker, the value
// is whatever the broker wants others to know. All registrations have the hash
// tag of the cluster's metadata, so that one command reads many.

// ErrHeld says that another broker holds a node id.
var ErrHeld = errors.New("node id is held by another broker")

// HeldError is an ErrHeld that says who holds the id.
type HeldError struct {
	ID    int32
	Value []byte        // what the holder registered
	For   time.Duration // unless the holder renews it
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("node id %d is held by another broker (%.200q), for %v unless it renews", e.ID, e.Value, e.For)
}

func (*HeldError) Unwrap() error { return ErrHeld }

// errNoLease says that Renew or Release was called without Acquire.
var errNoLease = errors.New("no node id was acquired")

// freeRange is how many node ids AcquireFree looks at in one round trip, and
// maxRanges after how many of them it gives up.
const (
	freeRange = 64
	maxRanges = 64
)

// Leases registers one broker, and sees who else is registered. Acquire, Renew
// and Release are for one goroutine at a time.
type Leases struct {
	client rueidis.Client
	prefix string
	ttl    time.Duration
	token  string
	id     int32 // -1 if none is held
	until  atomic.Pointer[time.Time]
}

// New makes the registration of one incarnation of a broker.
func New(client rueidis.Client, prefix string, ttl time.Duration) *Leases {
	return &Leases{client: client, prefix: prefix, ttl: ttl, token: rand.Text(), id: -1}
}

func (l *Leases) key(id int32) string {
	return "{" + l.prefix + ":__cluster_metadata:0}:broker:" + strconv.Itoa(int(id))
}

// acquireScript takes a free key, or one that bears our token, and returns
// nothing; else it returns what the key holds, and for how long. It does so even
// when Redis has as much as its maxmemory allows: without brokers no one would
// free any.
var acquireScript = rueidis.NewLuaScript(`#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then
  return {held, redis.call('PTTL', KEYS[1])}
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return {}`)

// renewScript prolongs a key that bears our token.
var renewScript = rueidis.NewLuaScript(`
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`)

// releaseScript removes a key that bears our token.
var releaseScript = rueidis.NewLuaScript(`
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`)

// Acquire registers a node id with a value that others see. If another broker
// has it, the error is a *HeldError. This incarnation's own registration is
// replaced.
func (l *Leases) Acquire(ctx context.Context, id int32, value []byte) error {
	what := "registering node id " + strconv.Itoa(int(id))
	sent := time.Now()
	reply, err := acquireScript.Exec(ctx, l.client, []string{l.key(id)},
		[]string{l.token, rueidis.BinaryString(value), l.millis()}).ToArray()
	if err != nil {
		return conn.Attempt(what, err)
	}
	if len(reply) == 2 {
		held, err := reply[0].ToString()
		if err != nil {
			return conn.Attempt(what, err)
		}
		left, err := reply[1].ToInt64()
		if err != nil {
			return conn.Attempt(what, err)
		}
		return &HeldError{ID: id, Value: registered(held), For: time.Duration(left) * time.Millisecond}
	}
	l.id = id
	l.believe(sent)
	return nil
}

// AcquireFree registers the lowest node id from a first one on that no one
// has.
func (l *Leases) AcquireFree(ctx context.Context, from int32, value []byte) (int32, error) {
	for range maxRanges {
		ids := make([]int32, freeRange)
		for i := range ids {
			ids[i] = from + int32(i)
		}
		taken, err := l.Live(ctx, ids)
		if err != nil {
			return -1, err
		}
		for _, id := range ids {
			if _, ok := taken[id]; ok {
				continue
			}
			// Another broker may have been faster: then it goes on to the next.
			if err := l.Acquire(ctx, id, value); !errors.Is(err, ErrHeld) {
				return id, err
			}
		}
		from += freeRange
	}
	return -1, fmt.Errorf("registering a node id: %d of them are taken", freeRange*maxRanges)
}

// Renew prolongs the registration. Without an error, not ok means that it is
// lost: it expired and may be another broker's, or Redis lost it.
func (l *Leases) Renew(ctx context.Context) (ok bool, err error) {
	if l.id < 0 {
		return false, errNoLease
	}
	sent := time.Now()
	n, err := renewScript.Exec(ctx, l.client, []string{l.key(l.id)}, []string{l.token, l.millis()}).ToInt64()
	if err != nil {
		return false, conn.Attempt("renewing node id "+strconv.Itoa(int(l.id)), err)
	}
	if n == 0 {
		l.until.Store(nil)
		return false, nil
	}
	l.believe(sent)
	return true, nil
}

// Release gives the registration up, if it is still ours.
func (l *Leases) Release(ctx context.Context) error {
	if l.id < 0 {
		return nil
	}
	l.until.Store(nil)
	if err := releaseScript.Exec(ctx, l.client, []string{l.key(l.id)}, []string{l.token}).Error(); err != nil {
		return conn.Attempt("releasing node id "+strconv.Itoa(int(l.id)), err)
	}
	l.id = -1
	return nil
}

// Until returns how long the broker may believe that it is registered, by its
// own clock; the zero time if it is not. It may be called at any time.
//
// Redis counts from when it handled the request, which was after the request
// was sent: counted from then, the belief ends first.
func (l *Leases) Until() time.Time {
	if until := l.until.Load(); until != nil {
		return *until
	}
	return time.Time{}
}

func (l *Leases) believe(sent time.Time) {
	until := sent.Add(l.ttl)
	l.until.Store(&until)
}

// Live returns what the brokers among some node ids registered; those that are
// not registered are left out.
func (l *Leases) Live(ctx context.Context, ids []int32) (map[int32][]byte, error) {
	live := make(map[int32][]byte, len(ids))
	if len(ids) == 0 {
		return live, nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = l.key(id)
	}
	values, err := l.client.Do(ctx, l.client.B().Mget().Key(keys...).Build()).ToArray()
	if err != nil {
		return nil, conn.Attempt("looking for live brokers", err)
	}
	for i, value := range values {
		if value.IsNil() {
			continue
		}
		held, err := value.ToString()
		if err != nil {
			return nil, conn.Attempt("looking for live brokers", err)
		}
		live[ids[i]] = registered(held)
	}
	return live, nil
}

// registered cuts the token off what a key holds.
func registered(held string) []byte {
	_, value, _ := strings.Cut(held, " ")
	return []byte(value)
}

func (l *Leases) millis() string { return strconv.FormatInt(l.ttl.Milliseconds(), 10) }
