package brokers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

const (
	// drainTimeout is how long a drain waits until all brokers know the new leaders. They
	// learn of them within milliseconds, but one may be starting or stopping.
	drainTimeout = time.Minute
	drainPoll    = 100 * time.Millisecond
)

// DrainResult has the fields of --json.
type DrainResult struct {
	ID      int32 `json:"id"`
	Drained bool  `json:"drained"`
	Moved   int   `json:"moved"`
}

func drainCommand() *cobra.Command {
	var client cli.Flags
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Move all partitions away from a broker",
		Long: `Move the leadership of all partitions, and with it the groups and transactions that it
coordinates, from a broker to the others. Clients go there by themselves; groups do
not rebalance. The command returns when all brokers know the new leaders.

A drained broker goes on running, but leads nothing while another broker can, even
after it was started again, until muster brokers undrain. It needs brokers that share
a Redis: a broker with a store of its own has no other to move anything to.

With --json it prints an object with the fields id, drained and moved, the number of
partitions.`,
		Example: `  muster brokers drain 2
  muster brokers undrain 2       # or: muster brokers drain 2 --undo`,
		Args:              oneBroker,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if undo {
				return undrain(cmd, &client, args[0])
			}
			return drain(cmd, &client, args[0])
		},
	}
	client.Add(cmd, "print a JSON object")
	cmd.Flags().BoolVar(&undo, "undo", false, "let it lead partitions again, as muster brokers undrain")
	return cmd
}

func undrainCommand() *cobra.Command {
	var client cli.Flags
	cmd := &cobra.Command{
		Use:   "undrain NODE",
		Short: "Let a drained broker lead partitions again",
		Long: `Let a drained broker lead partitions again. If it is running, it gets its share of
every topic at once, and the partitions that were reassigned to it; else when it is
started.

With --json it prints an object with the fields id, drained and moved.`,
		Example:           `  muster brokers undrain 2`,
		Args:              oneBroker,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return undrain(cmd, &client, args[0]) },
	}
	client.Add(cmd, "print a JSON object")
	return cmd
}

// drainable connects, and finds the brokers and those that are drained.
func drainable(ctx context.Context, client *cli.Flags, arg string) (id int32, conn *kgo.Client, fleet *fleetState, drained []int32, err error) {
	if id, err = brokerID(arg); err != nil {
		return id, nil, nil, nil, err
	}
	if conn, err = client.Connect(ctx); err != nil {
		return id, nil, nil, nil, err
	}
	if fleet, err = loadFleet(ctx, conn); err == nil {
		drained, err = loadDrained(ctx, conn, fleet.controller)
	}
	if err != nil {
		conn.Close()
	}
	return id, conn, fleet, drained, err
}

func drain(cmd *cobra.Command, client *cli.Flags, arg string) error {
	ctx := cmd.Context()
	id, conn, before, drained, err := drainable(ctx, client, arg)
	if err != nil {
		return err
	}
	defer conn.Close()
	switch {
	case !before.has(id):
		return noBroker(id, before)
	case !slices.Contains(drained, id):
		if err := alterDrained(ctx, conn, kadm.AppendConfig, id); err != nil {
			return err
		}
	}
	said := cmd.ErrOrStderr()
	if client.JSON {
		said = io.Discard
	}
	if err := awaitDrain(ctx, conn, id, said); err != nil {
		return err
	}
	moved := before.led[id]
	if client.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), DrainResult{id, true, moved})
	}
	if slices.Contains(drained, id) && moved == 0 {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "broker %d is drained already; it leads no partitions\n", id)
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "drained broker %d: moved %s; it can be stopped now\n", id, words.Plural(moved, "partition"))
	return err
}

func noBroker(id int32, fleet *fleetState) error {
	var ids []string
	for _, b := range fleet.brokers {
		ids = append(ids, strconv.Itoa(int(b.NodeID)))
	}
	return fmt.Errorf("there is no broker %d; running are %s", id, strings.Join(ids, ", "))
}

// awaitDrain waits until no broker says that one leads anything.
func awaitDrain(ctx context.Context, conn *kgo.Client, id int32, said io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, drainTimeout, errors.New("not all brokers know the new leaders yet; see muster brokers list"))
	defer cancel()
	last := -1
	for {
		fleet, err := loadFleet(ctx, conn)
		most := 0
		for i := 0; err == nil && i < len(fleet.brokers); i++ {
			var n int
			n, err = ledBy(ctx, conn, id, fleet.brokers[i].NodeID)
			most = max(most, n)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && most == 0:
			return nil
		case err == nil && most != last:
			fmt.Fprintf(said, "broker %d still leads %s\n", id, words.Plural(most, "partition"))
			last = most
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(drainPoll):
		}
	}
}

func undrain(cmd *cobra.Command, client *cli.Flags, arg string) error {
	ctx := cmd.Context()
	id, conn, before, drained, err := drainable(ctx, client, arg)
	if err != nil {
		return err
	}
	defer conn.Close()
	switch is := slices.Contains(drained, id); {
	case !is && !before.has(id):
		return noBroker(id, before)
	case is:
		if err := alterDrained(ctx, conn, kadm.SubtractConfig, id); err != nil {
			return err
		}
	}
	after, err := loadFleet(ctx, conn)
	if err != nil {
		return err
	}
	moved := max(after.led[id]-before.led[id], 0)
	switch {
	case client.JSON:
		return cli.WriteJSON(cmd.OutOrStdout(), DrainResult{id, false, moved})
	case !slices.Contains(drained, id):
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "broker %d is not drained\n", id)
	case !before.has(id):
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "broker %d may lead partitions again when it is started\n", id)
	default:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "broker %d may lead partitions again\n", id)
	}
	return err
}

// alterDrained adds a broker to the drained ones, or takes it out.
func alterDrained(ctx context.Context, conn *kgo.Client, op kadm.IncrementalOp, id int32) error {
	value := strconv.Itoa(int(id))
	answers, err := kadm.NewClient(conn).AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: drainedSetting, Value: &value}})
	if err != nil {
		return cli.Plain(err)
	}
	for _, a := range answers {
		if a.Err != nil && a.ErrMessage != "" {
			return errors.New(a.ErrMessage)
		}
		if a.Err != nil {
			return cli.Plain(a.Err)
		}
	}
	return nil
}
