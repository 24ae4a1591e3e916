// Package broker puts a broker together: sockets, handlers, partitions,
// metadata and store. The command, the embeddable package and the tests all
// start this one.
//
//	listener → handler → partition → store
//	                   ↘ cluster   ↗
//
// Open takes everything the broker needs (ports, data folder) and loads its
// state; when it returns, requests are answered. Close gives everything back,
// in the opposite order.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"muster/internal/cluster"
	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/store"
	"muster/internal/store/disk"
	"muster/internal/store/mem"
)

// drainTimeout is how long Close waits for requests in flight.
const drainTimeout = 10 * time.Second

// Config of a broker.
type Config struct {
	// Properties are broker settings under Kafka's names.
	Properties map[string]string
	Logger     *slog.Logger
}

// Broker is a running broker.
type Broker struct {
	cfg        *config.Broker
	logger     *slog.Logger
	server     *listener.Server
	endpoints  []endpoint
	store      store.Store
	controller *cluster.Controller
	manager    *partition.Manager
	groups     *coordinator.Coordinator
	journal    *journal

	stop    context.CancelFunc // ends what runs in the background
	running sync.WaitGroup
	closing sync.Once
	err     error // of closing
}

// Open starts a broker.
func Open(ctx context.Context, c Config) (*Broker, error) {
	cfg, err := config.NewBroker(c.Properties)
	if err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Broker{cfg: cfg, logger: c.Logger, stop: func() {}}
	if inert := cfg.Inert(); len(inert) > 0 {
		b.logger.Info("settings without effect here", "names", inert)
	}
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Broker) open(ctx context.Context) error {
	began := time.Now()
	front := &front{}
	b.server = listener.NewServer(listener.Options{
		Handler: front, Logger: b.logger,
		MaxRequest:     int(b.cfg.Int("socket.request.max.bytes")),
		IdleTimeout:    b.cfg.Duration("connections.max.idle.ms"),
		MaxConnections: int(b.cfg.Int("max.connections")),
		MaxPerHost:     int(b.cfg.Int("max.connections.per.ip")),
	})
	if err := b.listen(); err != nil {
		return err
	}
	crashed, err := b.openStore()
	if err != nil {
		return err
	}
	if err := b.load(ctx, crashed); err != nil {
		return err
	}
	front.handler = handler.New(handler.Options{
		NodeID: b.nodeID(), Controller: b.controller, Partitions: b.manager, Groups: b.groups, Logger: b.logger,
		SessionSlots: int(b.cfg.Int("max.incremental.fetch.session.cache.slots")),
		LogDir:       b.dataFolder(), Space: b.space,
	})
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.running.Go(func() { b.manager.Run(background) })
	b.running.Go(func() { b.journal.run(background) })
	for _, e := range b.endpoints {
		e.serve()
		b.logger.Info("listening", "listener", e.Listener, "address", e.address.String(), "advertised", fmt.Sprintf("%s:%d", e.Host, e.Port))
	}
	b.logger.Info("broker is up", "node", b.nodeID(), "cluster", b.controller.Image().ClusterID, "store", b.cfg.Get("muster.store"), "data", b.dataFolder(), "topics", b.controller.Image().TopicCount(), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (b *Broker) nodeID() int32 { return int32(b.cfg.Int("node.id")) }

// dataFolder returns where records are kept; empty for the store in memory.
func (b *Broker) dataFolder() string {
	if b.cfg.Get("muster.store") == "mem" {
		return ""
	}
	if dirs := config.SplitList(b.cfg.Get("log.dirs")); len(dirs) > 0 {
		return dirs[0]
	}
	return b.cfg.Get("log.dir")
}

// openStore opens the store, and says whether the last stop was a crash.
func (b *Broker) openStore() (crashed bool, err error) {
	if b.cfg.Get("muster.store") == "mem" {
		b.store = mem.New()
		return false, nil
	}
	folder := b.dataFolder()
	s, err := disk.Open(folder, disk.Options{MaxOpenFiles: maxOpenFiles()})
	switch {
	case errors.Is(err, disk.ErrLocked):
		return false, fmt.Errorf("data folder %s is in use by another broker", folder)
	case err != nil:
		return false, fmt.Errorf("data folder %s cannot be used: %w", folder, err)
	}
	b.store = s
	return !s.WasClean(), nil
}

// load replays metadata and opens the partitions.
func (b *Broker) load(ctx context.Context, crashed bool) error {
	b.manager = partition.NewManager(partition.Options{Store: b.store, Self: b.nodeID(), Logger: b.logger})
	b.openGroups()
	self := metadata.Broker{ID: b.nodeID(), Rack: b.cfg.Get("broker.rack")}
	for _, e := range b.endpoints {
		self.Endpoints = append(self.Endpoints, e.Endpoint)
	}
	var err error
	b.controller, err = cluster.Open(ctx, cluster.Options{
		Store: b.store, Self: self, Defaults: b.cfg, Crashed: crashed, Logger: b.logger, OnChange: b.changed,
	})
	if err != nil {
		return err
	}
	return b.manager.RemoveOrphans(ctx, b.controller.Image())
}

// Addr returns the address of the first listener, as host:port.
func (b *Broker) Addr() string { return b.Addrs()[0] }

// Addrs returns the addresses of all listeners, in the order of the setting.
func (b *Broker) Addrs() []string {
	var out []string
	for _, e := range b.endpoints {
		out = append(out, e.address.String())
	}
	return out
}

// Close stops the broker: it answers what was asked, makes everything durable
// and gives back ports and folder.
func (b *Broker) Close() error {
	b.closing.Do(func() { b.err = b.close() })
	return b.err
}

func (b *Broker) close() error {
	if b.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		b.server.Shutdown(ctx)
	}
	if b.groups != nil {
		b.groups.Close()
	}
	b.stop()
	b.running.Wait()
	var errs []error
	if b.manager != nil {
		errs = append(errs, b.manager.Close(context.Background()))
	}
	if b.controller != nil {
		errs = append(errs, b.controller.Close())
	}
	if b.store != nil {
		errs = append(errs, b.store.Close())
	}
	return errors.Join(errs...)
}

// front passes requests from the listeners to the handler.
type front struct{ handler *handler.Handler }

// Handle implements listener.Handler.
func (f *front) Handle(ctx context.Context, c *listener.Client, frame []byte) (*protocol.Response, error) {
	return f.handler.Serve(ctx, handler.Origin{Listener: c.Listener, Host: c.Host}, frame)
}
