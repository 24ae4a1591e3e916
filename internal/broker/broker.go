// Package broker puts a broker together: sockets, handlers, partitions, groups,
// metadata and store. The command, the embeddable package and the tests all
// start this one.
//
//	listener → handler → partition → store
//	                   ↘ coordinator → partition
//	                   ↘ cluster → store
//
// Open takes everything the broker needs (ports, data folder) and loads its
// state; when it returns, requests are answered. Close gives everything back,
// in the opposite order.
package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/arrivals"
	"muster/internal/audit/trail"
	"muster/internal/auth"
	"muster/internal/cluster"
	"muster/internal/coordinator"
	"muster/internal/gate"
	"muster/internal/group"
	"muster/internal/handler"
	"muster/internal/journal"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/meter"
	"muster/internal/partition"
	"muster/internal/peer"
	"muster/internal/protocol"
	"muster/internal/store"
	"muster/internal/store/disk"
	"muster/internal/store/mem"
	"muster/internal/txn"
	"muster/internal/txn/orphans"
	"muster/internal/watch"
	"muster/internal/watch/source"
	"muster/internal/watch/writer"
	"muster/internal/web"
	"muster/internal/web/facts"
	"muster/internal/web/fleet"
	"muster/internal/web/login"
	"muster/internal/web/metrics"
	"muster/internal/web/server"
)

// drainTimeout is how long Close waits for requests in flight.
const drainTimeout = 10 * time.Second

// otherFiles is how many descriptors are for neither connections nor the files of
// partitions: listeners, the journal, Redis, HTTP.
const otherFiles = 64

// Config of a broker.
type Config struct {
	// Properties are broker settings under Kafka's names.
	Properties map[string]string
	Logger     *slog.Logger
	// HTTP is where to answer HTTP if muster.http.listener is not set; empty for
	// nowhere. If something else listens there, the broker starts without.
	HTTP string

	// Tests keep records on a disk that crashes, and hold up what coordinators send.
	disk disk.Options
	via  func(send) send
	// They also have a clock of their own for what clients may take in a time.
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
	// ages is the clock of partitions and coordinators, which write times down. One of a
	// test must go on by itself, since they wait for real.
	ages func() time.Time
	// frames is how long a request may take to arrive; 0 for as long as usual.
	frames time.Duration
}

// send is how coordinators have brokers handle requests (peer.Client.Send).
type send = func(ctx context.Context, node int32, req kmsg.Request, done func(kmsg.Response, error))

// Broker is a running broker.
type Broker struct {
	cfg        *config.Broker
	logger     *slog.Logger
	server     *listener.Server
	front      front
	arrivals   *arrivals.Arrivals
	endpoints  []endpoint
	gates      *gate.Gates
	store      store.Store
	controller *cluster.Controller
	manager    *partition.Manager
	// coordinators are all of them, and groups is the one that the watch looks at.
	coordinators []*coordinated
	shares       *handler.Shares // for members of share groups
	groups       *coordinator.Coordinator
	peers        *peer.Client // the way to other brokers
	send         send
	via          func(send) send // nil but in tests
	peerLogins   *gate.PeerLogins
	now          func() time.Time // of what brokers compare with each other
	ages         func() time.Time
	disk         disk.Options
	// transactionConfig is the settings that transactions go by.
	transactionConfig atomic.Pointer[txn.Config]
	orphans           *orphans.Resolver
	// groupConfig is the settings that groups go by.
	groupConfig atomic.Pointer[group.Config]
	journal     *writer.Journal[journal.Entry]
	txnJournal  *writer.Journal[journal.Txn]
	marked      marked
	pruning     *pruning
	audit       *trail.Trail // nil if there is none
	node        int32
	redis       *redisSide    // nil unless the store is Redis
	lease       cluster.Lease // nil unless brokers share the store
	http        *web.Server   // nil if there is none
	login       *login.Gate   // nil if there is no HTTP
	fleet       *fleet.Fleet  // nil if there is no HTTP, or there are no other brokers
	incarnation string
	httpAt      *server.Listening // nil if there is no HTTP
	facts       *facts.Facts      // what HTTP says
	watch       *watch.Watch
	source      *source.Source  // what the watch asks
	counter     handler.Counter // nil if no one need count
	meters      *meter.Meters
	metrics     *metrics.Metrics
	stopping    atomic.Bool // the broker closes

	leads   atomic.Pointer[cluster.Controller] // knows whether this broker may lead
	up      atomic.Bool                        // requests are answered
	away    atomic.Pointer[redisAway]          // nil while Redis can be reached
	unsaid  atomic.Int64                       // how many lines were not logged since it cannot
	stop    context.CancelFunc                 // ends what runs in the background
	running sync.WaitGroup
	closing sync.Once
	err     error // of closing
}

// Open starts a broker.
func Open(ctx context.Context, c Config) (*Broker, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	set, err := resolve(c.Properties, c.Logger)
	if err != nil {
		return nil, err
	}
	cfg, err := config.NewBroker(set)
	if err != nil {
		return nil, err
	}
	if c.now == nil {
		c.now = time.Now
	}
	b := &Broker{cfg: cfg, logger: c.Logger, stop: func() {}, disk: c.disk, via: c.via, ages: c.ages, now: c.now, meters: meter.New(), incarnation: rand.Text()}
	if b.storeKind() == "redis" {
		b.logger = slog.New(quietly{c.Logger.Handler(), &b.away, &b.unsaid})
	}
	b.peerLogins = &gate.PeerLogins{Image: b.image, Now: c.now}
	b.gates = gate.New(gate.Options{Certs: b.certs(), Image: b.image, Shared: b.storeKind() == "redis"})
	b.arrivals = arrivals.New(b.image, c.now, b.throttled)
	if inert := cfg.Inert(); len(inert) > 0 {
		b.logger.Warn("settings of Kafka's that have no effect here", "names", inert)
	}
	b.warnOfKeystores()
	if err := b.open(ctx, c); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Broker) open(ctx context.Context, c Config) error {
	began := time.Now()
	front := &b.front
	b.server = listener.NewServer(listener.Options{
		Handler: front, Logger: b.logger,
		MaxRequest:     int(b.cfg.Int("socket.request.max.bytes")),
		IdleTimeout:    b.cfg.Duration("connections.max.idle.ms"),
		MaxConnections: int(b.cfg.Int("max.connections")),
		MaxPerHost:     int(b.cfg.Int("max.connections.per.ip")),
		KeepFree:       maxOpenFiles() + otherFiles,
		Arrivals:       b.arrivals, After: c.after, Meter: &b.meters.Requests, FrameTimeout: c.frames, Panicked: b.meters.Panicked,
	})
	if err := b.listen(); err != nil {
		return err
	}
	if err := b.limitArrivals(); err != nil {
		return err
	}
	b.openFacts()
	if err := b.openMetrics(); err != nil {
		return err
	}
	if err := b.listenHTTP(c.HTTP); err != nil {
		return err
	}
	crashed, err := b.openStore(ctx)
	if err != nil {
		return err
	}
	if err := b.load(ctx, crashed); err != nil {
		return err
	}
	b.counter = b.redis.counter()
	b.openAudit()
	b.gates.Count(&b.meters.Logins)
	h := handler.New(handler.Options{
		NodeID: b.nodeID(), Controller: b.controller, Partitions: b.manager, Tail: b.source.Tail, Groups: b.groups, Transactions: b.coordinatorOf(metadata.TransactionsTopic), ShareStates: b.coordinatorOf(metadata.ShareStateTopic), Shares: b.shares, Native: b.redis.shown(), Counter: b.counter, Checker: b.checker(), Converter: b.converter(), Lengths: b.lengths(), Logger: b.logger,
		SessionSlots: int(b.cfg.Int("max.incremental.fetch.session.cache.slots")),
		LogDir:       b.logDir(), Space: b.space, RemoteStore: b.lease != nil, Marked: b.marked.add,
		Now:   c.now,
		Audit: b.audit.Changed(), Denied: b.denied,
		Topics: &b.meters.Topics, Throttled: b.throttled, Panicked: b.meters.Panicked,
	})
	front.handler.Store(h)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	if err := b.gates.MakeFirstUser(ctx, b.controller.AlterUsers); err != nil {
		return err
	}
	if err := b.openLogins(background); err != nil {
		return err
	}
	b.running.Go(func() { b.manager.Run(background) })
	b.running.Go(func() { b.journal.Run(background) })
	b.running.Go(func() { b.txnJournal.Run(background) })
	b.running.Go(func() { b.audit.Run(background) })
	b.running.Go(func() { b.orphans.Run(background) })
	b.running.Go(func() { b.pruneShareStates(background) })
	b.running.Go(func() { b.watch.Run(background) })
	for _, e := range b.endpoints {
		e.serve()
		b.logger.Info("listening", "listener", e.Listener, "address", e.address.String(), "advertised", fmt.Sprintf("%s:%d", e.Host, e.Port))
	}
	b.up.Store(true)
	b.logger.Info("broker is up", "node", b.nodeID(), "cluster", b.controller.Image().ClusterID, "store", b.storeName(), "topics", b.controller.Image().TopicCount(), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// openLogins lets clients log in, by Kafka listeners and over HTTP.
func (b *Broker) openLogins(ctx context.Context) error {
	if err := b.gates.Open(ctx, b.peerLogins); err != nil || b.login == nil {
		return err
	}
	return b.login.Open(ctx)
}

func (b *Broker) nodeID() int32 { return b.node }

// storeKind returns disk, mem or redis. A Redis URL alone says which.
func (b *Broker) storeKind() string {
	return b.cfg.Store()
}

// storeName says where records are kept, for people.
func (b *Broker) storeName() string {
	switch b.storeKind() {
	case "redis":
		return "redis, keys " + b.cfg.Get("muster.redis.prefix") + ":*"
	case "mem":
		return "memory"
	}
	return "disk, " + b.dataFolder()
}

// dataFolder returns where records are kept; empty for a store that is not on
// disk.
func (b *Broker) dataFolder() string {
	if b.storeKind() != "disk" {
		return ""
	}
	if dirs := config.SplitList(b.cfg.Get("log.dirs")); len(dirs) > 0 {
		return dirs[0]
	}
	return b.cfg.Get("log.dir")
}

// logDir names the place of records to clients that ask for log directories.
func (b *Broker) logDir() string {
	if folder := b.dataFolder(); folder != "" {
		return folder
	}
	return b.storeName()
}

// openStore opens the store, and says whether the last stop was a crash.
func (b *Broker) openStore(ctx context.Context) (crashed bool, err error) {
	b.node = int32(b.cfg.Int("node.id"))
	switch b.storeKind() {
	case "mem":
		b.store = mem.New()
		return false, nil
	case "redis":
		return false, b.openRedis(ctx)
	}
	folder := b.dataFolder()
	b.disk.MaxOpenFiles, b.disk.Flushed = maxOpenFiles(), b.meters.Flushes.Observe
	s, err := disk.Open(folder, b.disk)
	switch {
	case errors.Is(err, disk.ErrLocked):
		return false, fmt.Errorf("data folder %s is in use by another broker", folder)
	case err != nil:
		return false, fmt.Errorf("data folder %s cannot be used: %w", folder, err)
	}
	b.store = s
	switch tightened, err := s.Private(); {
	case err != nil:
		b.logger.Warn("others on this machine may be able to read the data folder", "folder", folder, "error", err)
	case tightened > 0:
		b.logger.Warn("others on this machine could read the data folder; now only its owner can", "folder", folder, "changed", tightened)
	}
	return !s.WasClean(), nil
}

// load replays metadata and opens the partitions.
func (b *Broker) load(ctx context.Context, crashed bool) error {
	if err := b.openPeers(); err != nil {
		return err
	}
	b.manager = partition.NewManager(partition.Options{
		Store: b.store, Self: b.nodeID(), Now: b.ages, Logger: b.logger, Alive: b.alive, Raise: b.raiseEpoch, Coordinator: b.peers,
	})
	b.openCoordinators()
	b.openWatch()
	self := metadata.Broker{ID: b.nodeID(), Rack: b.cfg.Get("broker.rack"), Incarnation: b.incarnation, HTTP: b.httpURL()}
	for _, e := range b.endpoints {
		self.Endpoints = append(self.Endpoints, e.Endpoint)
	}
	c, err := cluster.Open(ctx, cluster.Options{
		Store: b.store, Self: self, Defaults: b.cfg, Crashed: crashed, Lease: b.lease, Logger: b.logger, OnChange: b.changed,
		Opened: func(c *cluster.Controller) { b.leads.Store(c) },
	})
	if err != nil {
		return err
	}
	b.controller = c
	return b.manager.RemoveOrphans(ctx, b.controller.Image())
}

// raiseEpoch gives a partition a higher leader epoch.
func (b *Broker) raiseEpoch(ctx context.Context, topic string, partition, from, above int32) error {
	c := b.leads.Load()
	if c == nil {
		return errStarting
	}
	return c.RaiseEpoch(ctx, topic, partition, from, above)
}

var errStarting = errors.New("the broker is starting")

// alive says whether this broker may act as the leader of what the metadata says
// that it leads.
func (b *Broker) alive() bool {
	c := b.leads.Load()
	return c != nil && c.Alive()
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

// Advertised returns where clients are told to connect, for each listener of Addrs.
func (b *Broker) Advertised() []metadata.Endpoint {
	var out []metadata.Endpoint
	for i := range b.endpoints {
		out = append(out, b.endpoints[i].Endpoint)
	}
	return out
}

// Close stops the broker, and gives back ports and folder. Until the end it answers
// requests, if only that another broker is to be asked, or this one again: clients that
// cannot connect give up more easily.
func (b *Broker) Close() error {
	b.closing.Do(func() { b.err = b.close() })
	return b.err
}

func (b *Broker) close() error {
	b.up.Store(false)
	b.stopping.Store(true)
	if b.http != nil {
		b.http.Drain()
	}
	b.leave()
	for _, c := range b.coordinators {
		c.Close()
	}
	if b.shares != nil {
		b.shares.Close()
	}
	if b.peers != nil {
		b.peers.Close()
	}
	b.stop()
	if b.redis != nil {
		b.redis.quiet()
	}
	b.running.Wait()
	if b.lease == nil {
		b.front.hold.close()
	}
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
	if b.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		b.server.Shutdown(ctx)
	}
	if b.redis != nil {
		b.redis.client.Close()
	}
	if b.http != nil {
		b.http.Close()
	}
	if b.fleet != nil {
		b.fleet.Close()
	}
	return errors.Join(errs...)
}

// leave hands partitions and groups to the other brokers while this one still
// answers, so that clients are sent on to them.
func (b *Broker) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var err error
	switch {
	case b.controller != nil:
		err = b.controller.Leave(ctx)
	case b.lease != nil: // The start failed.
		err = b.lease.Release(ctx)
	}
	if err != nil {
		b.logger.Warn("could not hand over; the others will notice by themselves", "error", err)
	}
}

// front passes requests from the listeners, and from this broker itself, to the
// handler.
type front struct {
	handler atomic.Pointer[handler.Handler]
	hold    hold
}

// Handle implements listener.Handler.
func (f *front) Handle(ctx context.Context, c *listener.Client, frame []byte) (*protocol.Response, error) {
	kind := kindOf(frame)
	if !f.hold.begin(kind) {
		<-ctx.Done()
		return nil, errStopping
	}
	defer f.hold.end(kind)
	if c.Session != nil {
		return c.Session.(*gate.Session).Handle(ctx, f.handler.Load(), c, frame)
	}
	return f.handler.Load().Serve(ctx, handler.Origin{Listener: c.Listener, Host: c.Host, Principal: auth.Anonymous, Conn: c, Number: c.Number, LastID: &c.LastID}, frame)
}

// own answers a request of this broker's own.
func (f *front) own(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	if h := f.handler.Load(); h != nil {
		return h.Do(ctx, req)
	}
	return nil, errStarting
}
