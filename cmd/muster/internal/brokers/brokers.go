// Package brokers has the commands about the brokers of a fleet: list, drain and undrain.
//
// Who leads what is the brokers' own decision: drain sets a setting, and waits.
package brokers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
)

// drainedSetting lists the drained brokers. It is a setting of all brokers.
const drainedSetting = "muster.brokers.drained"

func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "brokers",
		Aliases: []string{"broker"},
		Short:   "List brokers, and drain one before it is stopped",
		Example: `  muster brokers list
  muster brokers drain 2
  muster brokers undrain 2`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(listCommand(), drainCommand(), undrainCommand())
	return cmd
}

// fleetState is what brokers say of themselves.
type fleetState struct {
	controller int32
	brokers    []kadm.BrokerDetail
	led        map[int32]int // partitions by leader
}

// has says whether a broker is running.
func (s *fleetState) has(id int32) bool {
	return slices.ContainsFunc(s.brokers, func(b kadm.BrokerDetail) bool { return b.NodeID == id })
}

// loadFleet asks for brokers and leaders.
func loadFleet(ctx context.Context, conn *kgo.Client) (*fleetState, error) {
	m, err := kadm.NewClient(conn).Metadata(ctx)
	if err != nil {
		return nil, cli.Plain(err)
	}
	s := &fleetState{controller: m.Controller, brokers: m.Brokers, led: map[int32]int{}}
	m.Topics.EachPartition(func(p kadm.PartitionDetail) { s.led[p.Leader]++ })
	return s, nil
}

// ledBy counts the partitions that a broker leads, as another one knows it.
func ledBy(ctx context.Context, conn *kgo.Client, leader, asked int32) (int, error) {
	req := kmsg.NewPtrMetadataRequest()
	resp, err := req.RequestWith(ctx, conn.Broker(int(asked)))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Leader == leader {
				n++
			}
		}
	}
	return n, nil
}

var errNoDrain = errors.New("the brokers cannot be drained: they are not muster, or of a version that cannot do it yet")

// loadDrained returns the ids of the drained brokers. The broker that is asked must know
// the setting: Kafka accepts any name, and does nothing.
func loadDrained(ctx context.Context, conn *kgo.Client, asked int32) ([]int32, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: strconv.Itoa(int(asked)), ConfigNames: []string{drainedSetting},
	}}
	resp, err := req.RequestWith(ctx, conn.Broker(int(asked)))
	if err != nil {
		return nil, cli.Plain(err)
	}
	for _, r := range resp.Resources {
		if r.ErrorCode != 0 {
			return nil, cli.BrokerError(r.ErrorCode, r.ErrorMessage)
		}
		if len(r.Configs) == 1 && r.Configs[0].Value != nil {
			return parseIDs(*r.Configs[0].Value)
		}
	}
	return nil, errNoDrain
}

func parseIDs(list string) ([]int32, error) {
	var ids []int32
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s has %q, which is not the id of a broker", drainedSetting, name)
		}
		ids = append(ids, int32(id))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// oneBroker checks the arguments of a command that takes the id of a broker.
func oneBroker(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("give the node id of one broker, not %d", len(args))
	}
	if _, err := brokerID(args[0]); err != nil {
		return err
	}
	return nil
}

func brokerID(arg string) (int32, error) {
	id, err := strconv.ParseInt(arg, 10, 32)
	if err != nil || id < 0 {
		return 0, cli.Usagef("%q is not a node id: a number, as in muster brokers list", arg)
	}
	return int32(id), nil
}
