package broker

import (
	"muster/internal/metadata"
	"muster/internal/watch"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
)

// httpReads is this broker as the HTTP API sees it. It implements web.Reads.
type httpReads struct{ b *Broker }

// Ready implements web.Reads. What it is asked for besides is there once it says so.
func (r *httpReads) Ready() error {
	if !r.b.up.Load() {
		return errStarting
	}
	return nil
}

// Image implements web.Reads.
func (r *httpReads) Image() *metadata.Image { return r.b.image() }

// Node implements web.Reads.
func (r *httpReads) Node() int32 { return r.b.nodeID() }

// Snapshot implements web.Reads.
func (r *httpReads) Snapshot() *watch.Snapshot { return r.b.watch.Snapshot() }

// Lag implements web.Reads.
func (r *httpReads) Lag(f func(*lag.Tracker)) { r.b.watch.Read(f) }

// Source implements web.Reads.
func (r *httpReads) Source() groupview.Source { return &groupSource{r.b} }
