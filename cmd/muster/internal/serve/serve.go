// Package serve has the commands that run a broker: serve, and demo, which brings clients.
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
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/broker"
	"muster/internal/metadata/config"
	"muster/internal/words"
)

// serveFlags are the flags of muster serve.
type serveFlags struct {
	listen []string
	data   string
	store  string
	http   string
	config string
	set    []string
	// warnings are about what was given and has no effect.
	warnings []string
}

func Command() *cobra.Command {
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
is MUSTER_NUM_PARTITIONS), from --set, and from the other flags.

The defaults are Kafka's, but for --store mem, which is for tests: there
group.initial.rebalance.delay.ms is 0, so that groups begin at once.`,
		Example: `  muster serve
  muster serve --listen 0.0.0.0:9092 --data /var/lib/muster
  muster serve --store mem --set num.partitions=6
  muster serve --store redis://127.0.0.1:6379 --http 127.0.0.1:8080
  muster serve --http https://0.0.0.0:9021 --set muster.http.ssl.keystore.location=console.pem
  muster serve --config server.properties`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			props, err := f.properties(os.Environ())
			if err != nil {
				return err
			}
			f.warn(cmd.ErrOrStderr())
			return serve(cmd.Context(), props, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringSliceVar(&f.listen, "listen", nil, "address to listen on, host:port (default 127.0.0.1:9092)")
	cmd.Flags().StringVar(&f.data, "data", "", "folder for records (default ./data)")
	cmd.Flags().StringVar(&f.store, "store", "", "where records are kept: disk, mem, or the URL of a Redis (redis://, rediss://, redis+sentinel://, redis+cluster://) (default disk)")
	cmd.Flags().StringVar(&f.http, "http", "", "address for HTTP, host:port, or off (default 127.0.0.1:9021 if that is free); https://host:port for TLS, with the PEM file that muster.http.ssl.keystore.location names")
	cmd.Flags().StringVar(&f.config, "config", "", "file with settings, in the form of server.properties")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "a setting, key=value; may be given again")
	return cmd
}

// httpOff as the address says that it is to answer none.
const httpOff = "off"

// roomForGarbage is the size of an allocation that is never touched, so that it
// takes no memory, but which the garbage collector counts. It would run for every
// 4 MB that a small broker allocates, which under load is many times a second and
// a quarter of the work of a commit.
const roomForGarbage = 16 << 20

// serve runs a broker until ctx ends.
func serve(ctx context.Context, props map[string]string, stderr io.Writer) error {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	b, err := broker.Open(ctx, broker.Config{Properties: props, Logger: logger, HTTP: cli.DefaultHTTP})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		logger.Info("stopped before the broker was up")
		return nil
	}
	if err != nil {
		return err
	}
	room := make([]byte, roomForGarbage)
	<-ctx.Done()
	runtime.KeepAlive(room)
	logger.Info("stopping")
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

const envPrefix = "MUSTER_"

// fromEnvironment takes settings from variables like MUSTER_LOG_RETENTION_MS, and says which
// ones look like settings and are none.
func fromEnvironment(props map[string]string, environ []string) (unknown []string) {
	names := map[string]string{}
	for _, d := range config.BrokerDefs() {
		names[strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(d.Name, "muster."), ".", "_"))] = d.Name
	}
	for _, e := range environ {
		variable, value, _ := strings.Cut(e, "=")
		short, ok := strings.CutPrefix(variable, envPrefix)
		if !ok {
			continue
		}
		if name, ok := names[short]; ok {
			props[name] = value
		} else if !slices.Contains(clientEnv, variable) {
			near := ""
			if n := words.Nearest(short, slices.Sorted(maps.Keys(names))); n != "" {
				near = "; did you mean " + envPrefix + n + "?"
			}
			unknown = append(unknown, fmt.Sprintf("environment variable %s is not a setting%s", variable, near))
		}
	}
	return unknown
}

// WarnOfEnvironment tells of variables that look like those of commands that talk to a broker.
func WarnOfEnvironment(w io.Writer, environ []string) {
	var known []string
	for _, variable := range clientEnv {
		known = append(known, strings.TrimPrefix(variable, envPrefix))
	}
	for _, unknown := range environ {
		variable, _, _ := strings.Cut(unknown, "=")
		short, ok := strings.CutPrefix(variable, envPrefix)
		if !ok || len(fromEnvironment(map[string]string{}, []string{unknown})) == 0 {
			continue
		}
		if near := words.Nearest(short, known); near != "" {
			fmt.Fprintf(w, "warning: environment variable %s has no effect; did you mean %s?\n", variable, envPrefix+near)
		}
	}
}

// clientEnv are the variables of the other commands, which may be there for everything that
// runs in a shell.
var clientEnv = []string{cli.HTTPEnv, cli.BrokerEnv, cli.UserEnv, cli.PasswordFileEnv, cli.CommandConfigEnv, cli.TLSCAEnv}
