package broker

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/peer"
	"muster/internal/txn"
)

// openPeers makes the way to other brokers. Nothing is sent yet.
func (b *Broker) openPeers() error {
	name := b.cfg.Get("inter.broker.listener.name")
	if name == "" {
		name = b.endpoints[0].Listener
	}
	i := slices.IndexFunc(b.endpoints, func(e endpoint) bool { return e.Listener == name })
	if i < 0 {
		return fmt.Errorf("inter.broker.listener.name: there is no listener named %q", name)
	}
	opts := peer.Options{Self: b.nodeID(), Image: b.image, Own: b.front.own, Listener: name, Logger: b.logger}
	if b.endpoints[i].secure {
		roots, err := b.trusted()
		if err != nil {
			return err
		}
		opts.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	b.peers = peer.New(opts)
	b.askBroker = b.peers.Do
	return nil
}

// trusted returns the certificates by which this broker knows others: those of the
// system, those of a trust store, and its own, since brokers often have one from the
// same hand.
func (b *Broker) trusted() (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, setting := range []string{"ssl.keystore.location", "ssl.truststore.location"} {
		name := b.cfg.Get(setting)
		if name == "" {
			continue
		}
		pem, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in %s", setting, name)
		}
	}
	return roots, nil
}

// openTransactions makes the coordinator of transactions.
func (b *Broker) openTransactions() {
	b.transactionConfig.Store(b.transactionSettings(b.cfg))
	b.txnJournal = newJournal(b, transactionJournal)
	b.marked.tell = b.txnJournal.add
	b.transactions = b.coordinate(metadata.TransactionsTopic, txn.Kind(func() txn.Config { return *b.transactionConfig.Load() }), journals{transactions: b.txnJournal.add})
}

func (b *Broker) transactionSettings(c *config.Broker) *txn.Config {
	return &txn.Config{
		MaxTimeout:     c.Duration("transaction.max.timeout.ms"),
		SweepInterval:  c.Duration("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
		IDExpiration:   c.Duration("transactional.id.expiration.ms"),
		ExpireInterval: c.Duration("transaction.remove.expired.transaction.cleanup.interval.ms"),
		Redis:          b.redis != nil,
	}
}
