// Package serve has the commands that run a broker: serve, and demo, which brings clients;
// and health, which asks one how it is.
//
// Settings come from files, the environment and flags; what is unsafe or has no effect is
// warned of.
package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/broker"
	"muster/internal/metadata/config"
)

// serveFlags are the flags of muster serve.
type serveFlags struct {
	listen []string
	data   string
	store  string
	http   string
	config string
	set    []string
	// ready and untilEOF are for programs that start a broker.
	ready, untilEOF bool
	// warnings are about what was given and has no effect.
	warnings []string
}

// Command runs a broker. The version is the one that --ready tells.
func Command(version string) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker",
		Long: `Run a broker until it is told to stop (Ctrl-C or SIGTERM).

Without flags it listens on 127.0.0.1:9092 and keeps its records in ./data.
On 127.0.0.1:9021 it answers HTTP (/healthz, /api/v1), if nothing else has that port.
With --store redis://host it keeps nothing itself: records are in Redis Streams,
and any number of brokers can share one Redis.

Settings have Kafka's names. They are taken, each overriding the one before,
from the file given with --config, from environment variables (num.partitions
is MUSTER_NUM_PARTITIONS, or KAFKA_NUM_PARTITIONS as in Kafka's container image),
from --set, and from the other flags.

The defaults are Kafka's, but for --store mem, which is for tests: there
group.initial.rebalance.delay.ms is 0, so that groups begin at once.

For programs that start a broker: --ready prints one line of JSON to stdout once
clients can connect, with the listeners (name, address, advertised), the address of
HTTP, the pid and the version, so that a test can have free ports (--listen
127.0.0.1:0) and need not read the log. --until-eof stops the broker when its
stdin ends, and so no later than the program that holds the other end.`,
		Example: `  muster serve
  muster serve --listen 0.0.0.0:9092 --data /var/lib/muster
  muster serve --store mem --set num.partitions=6
  muster serve --store redis://127.0.0.1:6379 --http 127.0.0.1:8080
  muster serve --http https://0.0.0.0:9021 --set muster.http.ssl.keystore.location=console.pem
  muster serve --config server.properties
  muster serve --store mem --listen 127.0.0.1:0 --http off --ready --until-eof`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			props, err := f.properties(os.Environ())
			if err != nil {
				return err
			}
			f.warn(cmd.ErrOrStderr())
			ctx := cmd.Context()
			if f.untilEOF {
				var stop func()
				ctx, stop = context.WithCancel(ctx)
				defer stop()
				go func() {
					_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // An error is an end as well.
					stop()
				}()
			}
			return serve(ctx, props, cmd.ErrOrStderr(), func(b *broker.Broker) error {
				if !f.ready {
					return nil
				}
				return printReady(cmd.OutOrStdout(), b, version)
			})
		},
	}
	cmd.Flags().StringSliceVar(&f.listen, "listen", nil, "address to listen on, host:port (default 127.0.0.1:9092)")
	cmd.Flags().StringVar(&f.data, "data", "", "folder for records (default ./data)")
	cmd.Flags().StringVar(&f.store, "store", "", "where records are kept: disk, mem, or the URL of a Redis (redis://, rediss://, redis+sentinel://, redis+cluster://) (default disk)")
	cmd.Flags().StringVar(&f.http, "http", "", "address for HTTP, host:port, or off (default 127.0.0.1:9021 if that is free); https://host:port for TLS, with the PEM file that muster.http.ssl.keystore.location names")
	cmd.Flags().StringVar(&f.config, "config", "", "file with settings, in the form of server.properties")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "a setting, key=value; may be given again")
	cmd.Flags().BoolVar(&f.ready, "ready", false, "print one line of JSON once clients can connect")
	cmd.Flags().BoolVar(&f.untilEOF, "until-eof", false, "stop when stdin ends")
	return cmd
}

// httpOff as the address says that it is to answer none.
const httpOff = "off"

// roomForGarbage is the size of an allocation that is never touched, so that it
// takes no memory, but which the garbage collector counts. It would run for every
// 4 MB that a small broker allocates, which under load is many times a second and
// a quarter of the work of a commit.
const roomForGarbage = 16 << 20

// serve runs a broker until ctx ends. up is told when clients can connect.
func serve(ctx context.Context, props map[string]string, stderr io.Writer, up func(*broker.Broker) error) error {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	b, err := broker.Open(ctx, broker.Config{Properties: props, Logger: logger, HTTP: cli.DefaultHTTP})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		logger.Info("stopped before the broker was up")
		return nil
	}
	if err != nil {
		return err
	}
	tell := func(state string) {
		if err := notify(state); err != nil {
			logger.Warn("systemd does not know the state of the broker", "err", err)
		}
	}
	tell("READY=1")
	if err := up(b); err != nil {
		return errors.Join(err, b.Close())
	}
	room := make([]byte, roomForGarbage)
	<-ctx.Done()
	runtime.KeepAlive(room)
	logger.Info("stopping")
	tell("STOPPING=1")
	if err := b.Close(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	logger.Info("stopped")
	return nil
}

// properties gathers the settings from all their sources.
func (f *serveFlags) properties(environ []string) (map[string]string, error) {
	props := map[string]string{}
	if f.config != "" {
		text, err := os.ReadFile(f.config)
		if err != nil {
			return nil, err
		}
		if props, err = config.ParseProperties(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.config, err)
		}
	}
	advertised := fromKafka(props, environ)
	f.warnings = fromEnvironment(props, environ)
	for _, s := range f.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("--set takes key=value, not %q", s)
		}
		props[name] = value
	}
	for _, addr := range f.listen {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, cli.Usagef("--listen takes host:port, not %q", addr)
		}
	}
	f.apply(props)
	if advertised {
		listenForAll(props)
	}
	if _, given := props[initialDelay]; !given && props["muster.store"] == "mem" {
		props[initialDelay] = "0" // For tests, which know who will join.
	}
	return props, nil
}

const initialDelay = "group.initial.rebalance.delay.ms"

// apply puts the flags that stand for settings into props.
func (f *serveFlags) apply(props map[string]string) {
	if len(f.listen) > 0 {
		var listeners []string
		for i, addr := range f.listen {
			name := "PLAINTEXT"
			if i > 0 {
				name = fmt.Sprintf("PLAINTEXT%d", i+1)
				props["listener.security.protocol.map"] = config.BrokerDef("listener.security.protocol.map").Default
			}
			listeners = append(listeners, name+"://"+addr)
		}
		for i := 1; i < len(f.listen); i++ {
			props["listener.security.protocol.map"] += fmt.Sprintf(",PLAINTEXT%d:PLAINTEXT", i+1)
		}
		props["listeners"] = strings.Join(listeners, ",")
	}
	if f.data != "" {
		delete(props, "log.dirs")
		props["log.dir"] = f.data
	}
	switch f.http {
	case "":
	case httpOff:
		props["muster.http.listener"] = ""
	default:
		props["muster.http.listener"] = f.http
	}
	if f.store != "" {
		props["muster.store"] = f.store
	}
	if url := props["muster.store"]; strings.Contains(url, "://") {
		props["muster.store"], props["muster.redis.url"] = "redis", url
	}
}
