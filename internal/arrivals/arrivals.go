// Package arrivals limits how often connections begin (KIP-612), and reads how many an address
// may have. It is what a listener asks before it accepts; the limits are those of the newest
// metadata.
package arrivals

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/quota"
)

const (
	// addressesAtMost is how many addresses are remembered for how often they
	// connect, and addressBytes what they take at most.
	addressesAtMost = 10_000
	addressBytes    = 8 << 20
)

// Arrivals limits how often connections begin (KIP-612): in all by
// max.connection.creation.rate, from one address by its quota.
type Arrivals struct {
	image func() *metadata.Image
	now   func() time.Time
	// Spared is the listener of brokers among themselves, if clients have others:
	// they come however many clients do. It is set before the listeners serve.
	Spared string
	// waits is told for how long connections have to wait. It must not block.
	waits func(quota.Kind, time.Duration)

	mu   sync.Mutex
	from *quota.Book
	all  *quota.Bucket // nil until it is needed
}

// New returns limits by the newest metadata. Waits is told for how long connections have to
// wait, and must not block.
func New(image func() *metadata.Image, now func() time.Time, waits func(quota.Kind, time.Duration)) *Arrivals {
	return &Arrivals{image: image, now: now, waits: waits, from: quota.NewBook(addressesAtMost, addressBytes)}
}

// From implements listener.Arrivals.
func (a *Arrivals) From(host string) time.Duration {
	image := a.image()
	if image == nil || image.Quotas == nil {
		return 0
	}
	name := host
	if addr, err := netip.ParseAddr(host); err == nil {
		name = auth.Host(addr)
	}
	rate, ok := image.Quotas.EffectiveIP(name)
	if !ok {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	return a.told(a.from.Bucket(quota.Key{Kind: quota.Connections, HasName: true, Name: host}, arrivalLimit(image, rate), now).TakeIfThere(1, now))
}

// On implements listener.Arrivals.
func (a *Arrivals) On(listener string) time.Duration {
	image := a.image()
	if image == nil || listener == a.Spared {
		return 0
	}
	rate := image.Config.Int("max.connection.creation.rate")
	if rate == math.MaxInt32 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now, limit := a.now(), arrivalLimit(image, float64(rate))
	if a.all == nil {
		a.all = quota.NewBucket(limit, now)
	}
	a.all.Alter(limit, now)
	return a.told(a.all.Take(1, now))
}

// told tells of a wait whoever wants to know, and returns it.
func (a *Arrivals) told(wait time.Duration) time.Duration {
	if wait > 0 {
		a.waits(quota.Connections, wait)
	}
	return wait
}

// arrivalLimit is a limit of connections in a second. Clients come all at once after a
// start, so a bucket is full at first.
func arrivalLimit(image *metadata.Image, rate float64) quota.Limit {
	return quota.Limit{
		PerSecond: rate, Windows: int(image.Config.Int("quota.window.num")),
		Window: time.Duration(image.Config.Int("quota.window.size.seconds")) * time.Second, Full: true,
	}
}

// PerAddress reads max.connections.per.ip.overrides.
func PerAddress(value string) (map[string]int, error) {
	out := map[string]int{}
	for _, entry := range config.SplitList(value) {
		at := strings.LastIndexByte(entry, ':')
		if at < 0 {
			return nil, fmt.Errorf("max.connections.per.ip.overrides: %q is not address:count", entry)
		}
		addr, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(entry[:at]), "[]"))
		if err != nil {
			return nil, fmt.Errorf("max.connections.per.ip.overrides: %q is not an address", entry[:at])
		}
		count, err := strconv.ParseUint(strings.TrimSpace(entry[at+1:]), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("max.connections.per.ip.overrides: %q is not a number of connections", entry[at+1:])
		}
		out[addr.Unmap().String()] = int(count)
	}
	return out, nil
}
