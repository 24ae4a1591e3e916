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
	opts := peer.Options{Self: b.nodeID(), Image: b.image, Own: b.front.own, CreateTopic: b.createInternal, Listener: name, Login: b.peerLogins.Login, Logger: b.logger}
	if b.endpoints[i].secure {
		var err error
		if opts.TLS, err = b.certs().Peer(name); err != nil {
			return err
		}
	}
	b.peers = peer.New(opts)
	b.send = b.peers.Send
	if b.via != nil {
		b.send = b.via(b.send)
	}
	return nil
}
