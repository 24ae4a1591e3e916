package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/demo"
	"muster/internal/words"
)

// demoFlags are the flags of muster demo.
type demoFlags struct {
	listen, http string
	lasts        time.Duration
	seed         uint64
}

func DemoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a broker with groups in every interesting state, to look at",
		Long: `Run a broker in memory with lively topics and with groups in every state that is
worth a look: behind and catching up, behind for good, rebalancing again and
again, stuck, waiting for a static member or for a transaction. It prints where
the console is, what to look at, and commands to try.

Nothing is made up: Kafka clients in this process write, read and fail. What the
broker says by rules that take minutes shows after minutes; the list says when.

It listens on 127.0.0.1:9092 and has its console on 127.0.0.1:9021, or on other
ports if something else has these. Ctrl-C ends it, and nothing is left.`,
		Example: `  muster demo
  muster demo --for 10m
  muster demo --listen 127.0.0.1:9192 --http 127.0.0.1:9121`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "address to listen on, host:port (default "+demo.DefaultListen+" if that is free)")
	cmd.Flags().StringVar(&f.http, "http", "", "address of the console, host:port (default "+demo.DefaultHTTP+" if that is free)")
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "end by itself after that time, such as 30s or 10m")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "what the records are made from: the same seed makes the same records, times aside")
	return cmd
}

// run runs the demo until ctx ends, or its time is over.
func (f *demoFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	if f.lasts < 0 {
		return cli.Usagef("--for is a time such as 30s, not %s", f.lasts)
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := demo.Start(ctx, demo.Options{Listen: f.listen, HTTP: f.http, Seed: f.seed, Logger: logger})
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	_, err = io.WriteString(stdout, f.text(d))
	if err == nil {
		err = f.wait(ctx)
	}
	return errors.Join(err, d.Close())
}

func (f *demoFlags) wait(ctx context.Context) error {
	var over <-chan time.Time
	if f.lasts > 0 {
		timer := time.NewTimer(f.lasts)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-over:
	}
	return nil // It runs until the user ends it.
}

// text says what runs where, and what to look at.
func (f *demoFlags) text(d *demo.Demo) string {
	var out strings.Builder
	fmt.Fprintf(&out, "A shop runs on a broker in memory, and some of its groups have problems.\n\n")
	fmt.Fprintf(&out, "  console  http://%s\n  broker   %s%s\n\n", d.HTTP(), d.Addr(), f.elsewhere(d))
	t := cli.NewTable("GROUP", ">AFTER", "WHAT TO SEE")
	for _, g := range demo.Groups() {
		t.Add(g.Name, words.Duration(g.From), g.Look)
	}
	_ = t.Print(&out)
	broker := ""
	if d.Addr() != cli.DefaultBroker {
		broker = " --broker " + d.Addr()
	}
	fmt.Fprint(&out, "\nTry, in another terminal:\n\n")
	for _, line := range []string{"top", "groups list", "groups explain email-sender", "groups explain stock-keeper", "groups describe warehouse", "txns list", "consume orders --count 3"} {
		fmt.Fprintf(&out, "  muster %s%s\n", line, broker)
	}
	if f.lasts > 0 {
		fmt.Fprintf(&out, "\nIt ends in %s, or with Ctrl-C; nothing is kept.\n", words.Duration(f.lasts))
	} else {
		fmt.Fprint(&out, "\nCtrl-C ends it; nothing is kept.\n")
	}
	return out.String()
}

// elsewhere says why an address is not the usual one.
func (f *demoFlags) elsewhere(d *demo.Demo) string {
	var taken []string
	if f.listen == "" && d.Addr() != demo.DefaultListen {
		taken = append(taken, demo.DefaultListen)
	}
	if f.http == "" && d.HTTP() != demo.DefaultHTTP {
		taken = append(taken, demo.DefaultHTTP)
	}
	if len(taken) == 0 {
		return ""
	}
	return fmt.Sprintf("\n  (not where it usually is: something else has %s)", words.List(taken))
}
