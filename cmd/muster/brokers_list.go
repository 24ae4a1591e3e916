package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

// listedBroker has the fields of muster brokers list --json.
type listedBroker struct {
	ID         int32  `json:"id"`
	Address    string `json:"address"`
	Rack       string `json:"rack"`
	Controller bool   `json:"controller"`
	Partitions int    `json:"partitions_led"`
	Running    bool   `json:"running"`
	Drained    *bool  `json:"drained"`
}

func (b *listedBroker) state() string {
	switch {
	case !b.Running:
		return "drained, not running"
	case b.Drained != nil && *b.Drained:
		return "drained"
	}
	return "running"
}

func brokersListCommand() *cobra.Command {
	var client clientFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List brokers",
		Long: `List the brokers of the cluster, with the number of partitions that each leads. A
drained broker is listed while it is not running, too.

With --json it prints an array of objects with the fields id, address, rack,
controller, partitions_led, running and drained; drained is null if the brokers do not
tell it.`,
		Example: `  muster brokers list
  muster brokers list --json | jq '.[] | select(.drained) | .id'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return listBrokers(cmd, &client) },
	}
	client.add(cmd, "print a JSON array")
	return cmd
}

func listBrokers(cmd *cobra.Command, client *clientFlags) error {
	ctx := cmd.Context()
	conn, err := client.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	fleet, err := loadFleet(ctx, conn)
	if err != nil {
		return err
	}
	// Who may not see the settings, and who asks Kafka, sees the brokers all the same.
	drained, unknown := loadDrained(ctx, conn, fleet.controller)
	list := []listedBroker{}
	for _, b := range fleet.brokers {
		row := listedBroker{
			ID: b.NodeID, Address: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), Controller: b.NodeID == fleet.controller,
			Partitions: fleet.led[b.NodeID], Running: true,
		}
		if b.Rack != nil {
			row.Rack = *b.Rack
		}
		if unknown == nil {
			is := slices.Contains(drained, b.NodeID)
			row.Drained = &is
		}
		list = append(list, row)
	}
	for _, id := range drained {
		if !fleet.has(id) {
			is := true
			list = append(list, listedBroker{ID: id, Drained: &is})
		}
	}
	slices.SortFunc(list, func(a, b listedBroker) int { return int(a.ID - b.ID) })
	if client.json {
		return writeJSON(cmd.OutOrStdout(), list)
	}
	t := newTable(">NODE", "ADDRESS", "RACK", ">PARTITIONS LED", "STATE")
	for i := range list {
		b := &list[i]
		state := b.state()
		if b.Controller {
			state = fmt.Sprintf("%s, controller", state)
		}
		t.add(b.ID, dashed(b.Address), dashed(b.Rack), b.Partitions, state)
	}
	return t.print(cmd.OutOrStdout())
}

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
