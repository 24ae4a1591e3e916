package brokers

import (
	"fmt"
	"net"
	"slices"
	"sort"
	"strconv"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
)

// Listed has the fields of muster brokers list --json.
type Listed struct {
	ID         int32  `json:"id"`
	Address    string `json:"address"`
	Rack       string `json:"rack"`
	Controller bool   `json:"controller"`
	Partitions int    `json:"partitions_led"`
	Running    bool   `json:"running"`
	Drained    *bool  `json:"drained"`
}

func (b *Listed) state() string {
	switch {
	case !b.Running:
		return "drained, not running"
	case b.Drained != nil && *b.Drained:
		return "drained"
	}
	return "running"
}

func listCommand() *cobra.Command {
	var client cli.Flags
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
	client.Add(cmd, "print a JSON array")
	return cmd
}

func listBrokers(cmd *cobra.Command, client *cli.Flags) error {
	ctx := cmd.Context()
	conn, err := client.Connect(ctx)
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
	list := []Listed{}
	for _, b := range fleet.brokers {
		row := Listed{
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
			list = append(list, Listed{ID: id, Drained: &is})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
	if client.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), list)
	}
	t := cli.NewTable(">NODE", "ADDRESS", "RACK", ">PARTITIONS LED", "STATE")
	for i := range list {
		b := &list[i]
		state := b.state()
		if b.Controller {
			state = fmt.Sprintf("%s, controller", state)
		}
		t.Add(b.ID, dashed(b.Address), dashed(b.Rack), b.Partitions, state)
	}
	return t.Print(cmd.OutOrStdout())
}

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
