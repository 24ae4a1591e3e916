package broker

import (
	"fmt"
	"slices"

	"muster/internal/peer"
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
	b.peerLogins = &peerLogins{secrets: b.secrets, now: b.now}
	opts := peer.Options{Self: b.nodeID(), Image: b.image, Own: b.front.own, Listener: name, Login: b.peerLogins.login, Logger: b.logger}
	if b.endpoints[i].secure {
		trust, err := b.newTrust(name)
		if err != nil {
			return err
		}
		if trust.own, err = b.newKeyFile(name); err != nil {
			return err
		}
		if trust.speaks, err = b.protocolOf(name); err != nil {
			return err
		}
		opts.TLS = trust.config
	}
	b.peers = peer.New(opts)
	b.askBroker, b.send = b.peers.Do, b.peers.Send
	if b.via != nil {
		b.send = b.via(b.send)
	}
	return nil
}
