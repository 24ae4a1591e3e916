// Package muster runs a Kafka-compatible broker inside a Go program, for tests
// and for programs that bring their own.
//
//	b, err := muster.Start(ctx, muster.Config{})
//	if err != nil { … }
//	defer b.Close()
//	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
//
// Without further configuration the broker listens on a free port of 127.0.0.1
// and keeps its records in memory, and groups begin as soon as a member joins:
// group.initial.rebalance.delay.ms is 0 here, not Kafka's 3 s. Any number of
// brokers can run in a process; they share nothing. Close leaves nothing behind: no
// goroutine, no port, and of a data folder only what was stored in it.
package muster

import (
	"context"
	"errors"
	"log/slog"
	"maps"

	"muster/internal/broker"
)

// Config of a broker. The zero value is a broker in memory on a free port.
type Config struct {
	// Listen is the address to listen on, as host:port; 127.0.0.1:0 if empty.
	Listen string
	// Data is the folder to keep records in, created if need be. Empty keeps
	// them in memory.
	Data string
	// Redis is the URL of a Redis or Valkey to keep records in, such as
	// redis://127.0.0.1:6379, which any number of brokers may share.
	Redis string
	// Properties are further broker settings under Kafka's names, for example
	// "num.partitions": "6".
	Properties map[string]string
	// Logger receives the broker's log. Nothing is logged if it is nil.
	Logger *slog.Logger
}

// Broker is a running broker.
type Broker struct{ b *broker.Broker }

// Start starts a broker. When it returns, clients can connect. The context is
// for starting only: to stop the broker, call Close.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	props := maps.Clone(cfg.Properties)
	if props == nil {
		props = map[string]string{}
	}
	if _, ok := props["listeners"]; !ok || cfg.Listen != "" {
		if cfg.Listen == "" {
			cfg.Listen = "127.0.0.1:0"
		}
		props["listeners"] = "PLAINTEXT://" + cfg.Listen
	}
	if _, ok := props["group.initial.rebalance.delay.ms"]; !ok {
		props["group.initial.rebalance.delay.ms"] = "0"
	}
	switch {
	case cfg.Redis != "" && cfg.Data != "":
		return nil, errors.New("muster: Config.Data and Config.Redis are both set; records are kept in one place")
	case cfg.Redis != "":
		props["muster.store"], props["muster.redis.url"] = "redis", cfg.Redis
	case cfg.Data != "":
		props["muster.store"], props["log.dir"] = "disk", cfg.Data
	case props["muster.store"] == "" && props["muster.redis.url"] == "":
		props["muster.store"] = "mem"
	}
	b, err := broker.Open(ctx, broker.Config{Properties: props, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	return &Broker{b: b}, nil
}

// Addr returns the address that clients connect to, as host:port.
func (b *Broker) Addr() string { return b.b.Addr() }

// Close stops the broker. Requests in flight are answered first.
func (b *Broker) Close() error { return b.b.Close() }
