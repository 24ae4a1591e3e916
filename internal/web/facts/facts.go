// Package facts is what the HTTP API says of this broker: groups with their offsets and lag,
// the group journal, and what holds readers back. It asks those who own the state, by the
// requests that the command sends too, so that the API and the command say the same. It
// changes nothing, and checks no rights: that is for who asks.
package facts

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/watch"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
)

// Options say where facts are. What a broker has only once it has started is asked for then.
type Options struct {
	// Started is nil once everything can be asked.
	Started func() error
	Image   func() *metadata.Image
	// Node is this broker's node id, and Endpoint where clients reach it.
	Node     func() int32
	Endpoint metadata.Endpoint
	// Watch looks at groups all the time.
	Watch func() *watch.Watch
	// Partition returns a partition that this broker leads, nil for others.
	Partition func(topic string, index int32) *partition.Partition
	// Own has this broker answer a request of its own, and Peer another broker.
	Own  func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	Peer func(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error)
}

// Facts are those of a broker. It implements web.Reads.
type Facts struct {
	Options
	changes groupChanges
}

// New returns the facts of a broker.
func New(opts Options) *Facts { return &Facts{Options: opts} }

// Ready implements web.Reads. What it is asked for besides is there once it says so.
func (r *Facts) Ready() error { return r.Started() }

// Image implements web.Reads.
func (r *Facts) Image() *metadata.Image { return r.Options.Image() }

// Node implements web.Reads.
func (r *Facts) Node() int32 { return r.Options.Node() }

// Snapshot implements web.Reads.
func (r *Facts) Snapshot() *watch.Snapshot { return r.Watch().Snapshot() }

// Lag implements web.Reads.
func (r *Facts) Lag(f func(*lag.Tracker)) { r.Watch().Read(f) }

// Source implements web.Reads.
func (r *Facts) Source() groupview.Source { return &groupSource{r} }
