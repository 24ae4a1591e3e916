// Package conn is the way to Redis: it reads URLs, opens the client that all
// others use, looks at what the servers are and how they are configured, notices
// when they go away and come back, and says which errors are temporary. It knows nothing
// of what is kept there.
package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// Options are what Connect can be told beyond the URL.
type Options struct {
	// DialTimeout is for one connection with its TLS and AUTH, 3 s if zero.
	DialTimeout time.Duration
	// CommandTimeout is how long a command may stay without an answer before
	// its connection is given up, 5 s if zero. Blocking commands are not bound
	// by it.
	CommandTimeout time.Duration
	// ClientName is what CLIENT LIST shows.
	ClientName string
	// Runs is told which runs of servers are connected to. Nil if no one wants to know.
	Runs *Runs
}

// How often the client looks for a connection that died without a word, and at
// the topology, in case it missed the news of a failover.
const (
	keepAlive       = time.Second
	topologyRefresh = 2 * time.Second
)

// Connect opens a client to the deployment that a URL names:
//
//	redis://[user:password@]host:port[,host:port…][/db]   one server, or a cluster
//	redis+cluster://[user:password@]host:port[,host:port…]
//	redis+sentinel://[user:password@]host:port[,host:port…]/<master-name>[/db]
//
// and the same with rediss for TLS. It fails if no one answers. Once it has
// succeeded the client connects again by itself whenever it must.
//
// The client never repeats a command by itself. A write that got no answer may
// have been done, and only its caller knows how to find out.
func Connect(ctx context.Context, url string, opts Options) (rueidis.Client, error) {
	t, err := parseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	option, err := t.clientOption(opts)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	client, err := newClient(ctx, option)
	if err != nil {
		return nil, t.explain(err)
	}
	if err := t.checkMode(client.Mode()); err != nil {
		client.Close()
		return nil, fmt.Errorf("redis at %s: %w", t.at(), err)
	}
	return client, nil
}

// newClient makes a client, but not for longer than ctx allows.
func newClient(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	made := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		if client != nil && err != nil {
			client.Close()
		}
		made <- result{client, err}
	}()
	select {
	case r := <-made:
		return r.client, r.err
	case <-ctx.Done():
		go func() {
			if r := <-made; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// clientOption says how to reach the target.
func (t target) clientOption(opts Options) (rueidis.ClientOption, error) {
	dialer := net.Dialer{Timeout: orDefault(opts.DialTimeout, 3*time.Second), KeepAlive: keepAlive}
	option := rueidis.ClientOption{
		InitAddress:      t.addresses,
		Dialer:           dialer,
		Username:         t.user,
		Password:         t.password,
		SelectDB:         t.db,
		ClientName:       opts.ClientName,
		ConnWriteTimeout: orDefault(opts.CommandTimeout, 5*time.Second),
		DisableCache:     true,
		DisableRetry:     true,
		// One connection per server: commands that are sent one after the other
		// arrive in that order, which they would not over several.
		PipelineMultiplex: -1,
	}
	if opts.Runs != nil {
		option.DialCtxFn = opts.Runs.dial(t)
	}
	if t.deployment != sentinelDeployment {
		option.ClusterOption.ShardsRefreshInterval = topologyRefresh
	}
	var config *tls.Config
	if t.tls {
		var err error
		if config, err = t.tlsConfig(); err != nil {
			return option, err
		}
		option.TLSConfig = config
	}
	if t.deployment == sentinelDeployment {
		option.Sentinel = rueidis.SentinelOption{
			Dialer:                  dialer,
			TLSConfig:               config,
			MasterSet:               t.masterName,
			Username:                t.sentinelUser,
			Password:                t.sentinelPassword,
			ClientName:              opts.ClientName,
			TopologyRefreshInterval: topologyRefresh,
		}
	}
	return option, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// tlsConfig loads what the URL names. The server's name is left out: it is
// that of each server which is dialled.
func (t target) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.insecure,
	}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", paramCA, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("parameter %q: %s holds no certificate in PEM", paramCA, t.ca)
		}
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, fmt.Errorf("parameters %q and %q: %w", paramCert, paramKey, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// checkMode demands the deployment that the URL promised.
func (t target) checkMode(mode rueidis.ClientMode) error {
	if t.deployment == clusterDeployment && mode != rueidis.ClientModeCluster {
		return errors.New("the server is not part of a cluster: use redis:// or rediss://")
	}
	if t.db != 0 && mode == rueidis.ClientModeCluster {
		return errors.New("the server is part of a cluster, which has only database 0")
	}
	return nil
}

// explain says where a connection failed, and what to do about errors whose
// text does not say it.
func (t target) explain(err error) error {
	at, text := t.at(), err.Error()
	switch {
	case strings.Contains(text, "No such master"):
		return fmt.Errorf("redis sentinels at %s do not know a primary named %q", at, t.masterName)
	case strings.Contains(text, "cluster support disabled"):
		return fmt.Errorf("redis at %s is one server and no cluster: give one address, or use redis+sentinel://", at)
	case strings.Contains(text, "SELECT is not allowed in cluster mode"):
		return fmt.Errorf("redis at %s is a cluster, which has only database 0", at)
	case errors.Is(err, context.Canceled):
		return err
	case IsPassing(err):
		return fmt.Errorf("%w: connecting to redis at %s: %w", store.ErrUnavailable, at, err)
	}
	return fmt.Errorf("connecting to redis at %s: %w", at, err)
}

func (t target) at() string { return strings.Join(t.addresses, ",") }
