package broker

import (
	"net"
	"net/http"
	"sort"
	"strconv"

	"muster/internal/metadata/config"
	"muster/internal/meter"
	"muster/internal/watch"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web/metrics"
)

// openMetrics makes what answers /metrics. It works from the first moment, and tells
// more as the broker starts.
func (b *Broker) openMetrics() error {
	settings, err := metrics.ParseSettings(config.SplitList(b.cfg.Get("muster.metrics.sets")), b.cfg.Int("muster.metrics.max.series"), b.cfg.Get)
	if err != nil {
		return err
	}
	b.knowThrottled()
	b.metrics = metrics.New(measured{b}, settings)
	return nil
}

// metricsHandler answers /metrics.
func (b *Broker) metricsHandler() http.Handler { return b.metrics.Handler() }

// measured is the broker as /metrics sees it.
type measured struct{ b *Broker }

var nothingSeen = &watch.Snapshot{Groups: list.Build(nil)}

// started says whether the watch can be asked: it is made before there is a controller.
func (m measured) started() bool { return m.b.leads.Load() != nil }

// Snapshot implements metrics.Source.
func (m measured) Snapshot() *watch.Snapshot {
	if !m.started() {
		return nothingSeen
	}
	return m.b.watch.Snapshot()
}

// Read implements metrics.Source.
func (m measured) Read(f func(*lag.Tracker)) {
	if m.started() {
		m.b.watch.Read(f)
	}
}

// Meters implements metrics.Source.
func (m measured) Meters() *meter.Meters { return m.b.meters }

// Cluster implements metrics.Source.
func (m measured) Cluster() metrics.Cluster {
	b := m.b
	c := metrics.Cluster{State: metrics.Starting, StoreUp: true, OneCopy: b.storeKind() != "redis", Flushes: b.storeKind() == "disk"}
	c.Connections = b.server.ConnectionsByListener()
	c.DiskSize, c.DiskFree = b.space()
	image := b.image()
	if image == nil {
		c.StoreUp = b.away.Load() == nil
		return c
	}
	c.Node, c.ID, c.Controller = b.nodeID(), image.ClusterID, image.Controller == b.nodeID()
	for i := range image.Brokers {
		broker := metrics.Broker{ID: image.Brokers[i].ID}
		if e := image.Brokers[i].Endpoints; len(e) > 0 {
			broker.Address = net.JoinHostPort(e[0].Host, strconv.Itoa(int(e[0].Port)))
		}
		c.Brokers = append(c.Brokers, broker)
	}
	sort.Slice(c.Brokers, func(i, j int) bool { return c.Brokers[i].ID < c.Brokers[j].ID })
	switch {
	case b.up.Load():
		c.State = metrics.Running
	case b.stopping.Load():
		c.State = metrics.Stopping
	}
	failed, _ := b.manager.Failed()
	c.StoreUp = b.away.Load() == nil && failed == 0
	return c
}
