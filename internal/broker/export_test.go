package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth/sasl"
	"muster/internal/gate"
	"muster/internal/group"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/peer"
	"muster/internal/store/vfs"
)

// Send is how coordinators have brokers handle requests.
type Send = send

// On has the broker keep its records on a file system.
func (c *Config) On(fs vfs.FS) { c.disk.FS = fs }

// Via has everything that coordinators send go another way.
func (c *Config) Via(way func(Send) Send) { c.via = way }

// Clock has the broker take the time for what clients may take from elsewhere, and wait
// elsewhere until they may go on.
func (c *Config) Clock(now func() time.Time, after func(time.Duration) <-chan time.Time) {
	c.now, c.after = now, after
}

// Everywhere has the broker take all times that it writes down or compares from a clock
// that goes on by itself, and may jump ahead besides.
func (c *Config) Everywhere(now func() time.Time) { c.now, c.ages = now, now }

// PatientWithFrames has a request that was half sent never end for that alone.
func (c *Config) PatientWithFrames() { c.frames = time.Hour }

// AlterQuotas changes quotas.
func (b *Broker) AlterQuotas(ctx context.Context, changes ...metadata.QuotaChange) error {
	return errors.Join(b.controller.AlterQuotas(ctx, changes, false)...)
}

// Ask has a broker handle a request that comes from this one.
func (b *Broker) Ask(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	return b.peers.Do(ctx, node, req)
}

// ShareState has share coordinators answer a request of this broker.
func (b *Broker) ShareState(ctx context.Context, req kmsg.Request) kmsg.Response {
	return b.peers.ShareState(ctx, req)
}

// ResolveOnce aborts orphans as if it were a certain time.
func (b *Broker) ResolveOnce(ctx context.Context, now time.Time) error {
	return b.orphans.Once(ctx, now)
}

// Partition returns a partition that the broker leads.
func (b *Broker) Partition(topic string, index int32) *partition.Partition {
	return b.manager.Get(topic, index)
}

// Image returns the metadata that the broker knows.
func (b *Broker) Image() *metadata.Image { return b.image() }

// LeadsShard says whether the broker coordinates a partition under a leader epoch.
func (b *Broker) LeadsShard(topic string, partition, epoch int32) bool {
	return b.leadsShard(topic, partition, epoch)
}

// GroupConfig returns the settings of groups.
func (b *Broker) GroupConfig() group.Config { return *b.groupConfig.Load() }

// NodeID returns the broker's node id.
func (b *Broker) NodeID() int32 { return b.nodeID() }

// BetweenAsks has something happen before the resolver asks a broker; an error is the
// outcome.
func (b *Broker) BetweenAsks(before func(node int32) error) (undo func()) {
	ask := b.orphans.Ask
	b.orphans.Ask = func(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
		if err := before(node); err != nil {
			return nil, err
		}
		return ask(ctx, node, req)
	}
	return func() { b.orphans.Ask = ask }
}

// Overdue looks for what is open, and returns how to abort that later, when it may have
// ended.
func (b *Broker) Overdue(now time.Time) (abort func(ctx context.Context) error) {
	return b.orphans.Overdue(now)
}

// Deaf has the broker not answer requests of its own until undo is called.
func (b *Broker) Deaf() (undo func()) {
	h := b.front.handler.Swap(nil)
	return func() { b.front.handler.Store(h) }
}

// SetPassword gives a user a password for SCRAM with a hash.
func (b *Broker) SetPassword(ctx context.Context, name, password string, h sasl.Hash) error {
	return b.SetPasswordIterated(ctx, name, password, h, sasl.MinIterations)
}

// SetPasswordIterated is SetPassword with a number of iterations.
func (b *Broker) SetPasswordIterated(ctx context.Context, name, password string, h sasl.Hash, iterations int) error {
	salt, err := sasl.NewSalt(rand.Reader)
	if err != nil {
		return err
	}
	c, err := sasl.FromPassword(h, password, salt, iterations)
	if err != nil {
		return err
	}
	set := &metadata.Credential{Hash: int8(h), Salt: c.Salt, Iterations: c.Iterations, StoredKey: c.StoredKey, ServerKey: c.ServerKey}
	return errors.Join(b.controller.AlterUsers(ctx, []metadata.UserChange{{Name: name, Hash: int8(h), Set: set}})...)
}

// Attempts returns the logins that end from now on. It is called before anybody connects.
func (b *Broker) Attempts() <-chan gate.Attempt {
	attempts := make(chan gate.Attempt, 1000)
	for _, g := range b.gates.All() {
		g.OnLogin(func(a gate.Attempt) { attempts <- a })
	}
	return attempts
}

// LoginSecrets are what someone could log in with as a broker, or sign with.
func (b *Broker) LoginSecrets() map[string][]byte {
	secret := b.image().Secrets.Current
	c := b.peerLogins.Credentials(secret)
	return map[string][]byte{
		"the secret": []byte(secret.Text), "the password": []byte(c.Login.Password), "the hash of the password": gate.Derived(secret.Text, "logins of brokers"),
		"the stored key": c.Credential.StoredKey, "the server key": c.Credential.ServerKey, "the key of HTTP": gate.HTTPKey(secret),
	}
}

// FailedLogins returns how many logins of brokers have failed.
func (b *Broker) FailedLogins() (n float64) {
	for labels, count := range b.meters.Logins.Read() {
		if labels[1] == gate.PeerMechanism {
			n += count
		}
	}
	return n
}

// PeerLogin is how brokers of a cluster with a secret log in.
func PeerLogin(secret metadata.Secret) peer.Login { return gate.PeerLogin(secret) }

// MetricsHandler answers /metrics.
func (b *Broker) MetricsHandler() http.Handler { return b.metricsHandler() }
