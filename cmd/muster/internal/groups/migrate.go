package groups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/migration"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

func migrateCommand() *cobra.Command {
	var client cli.Flags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "migrate NAME",
		Short: "Say whether a classic group could go over to the consumer protocol now",
		Long: `Say whether a classic group could become a consumer group (KIP-848) now, and what
stands in the way. Nothing has to be run for it to do so: it does when the first
consumer with group.protocol=consumer joins it, while the others go on. If something
stands in the way that consumer is refused instead; so ask before you restart one.

It looks at the broker's settings, and at what the members say and were assigned. That
is told only while the group does not rebalance. An empty group always goes over.

If the group cannot go over the exit code is 1. With --json it prints an object with the
fields name, type, state, members, policy, max_size, upgradable and obstacles, which has
the fields member (null if it is about the group) and reason.`,
		Example: `  muster groups migrate billing --dry-run
  muster groups migrate billing --dry-run --json | jq -r '.obstacles[].reason'`,
		Args:              cli.One("group"),
		ValidArgsFunction: cli.CompleteGroups(&client, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !dryRun {
				return cli.Usagef("give --dry-run: a group goes over by itself when a consumer with group.protocol=consumer joins it")
			}
			return migrateGroup(cmd, &client, args[0])
		},
	}
	client.Add(cmd, "print a JSON object")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, and say what would happen")
	return cmd
}

// MigrationReport has the fields of muster groups migrate --json.
type MigrationReport struct {
	Name       string              `json:"name"`
	Type       string              `json:"type"`
	State      string              `json:"state"`
	Members    int                 `json:"members"`
	Policy     *string             `json:"policy"`
	MaxSize    *int                `json:"max_size"`
	Upgradable bool                `json:"upgradable"`
	Obstacles  []migrationObstacle `json:"obstacles"`
}

type migrationObstacle struct {
	Member *string `json:"member"`
	Reason string  `json:"reason"`
}

func migrateGroup(cmd *cobra.Command, flags *cli.Flags, name string) error {
	ctx := cmd.Context()
	client, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	report, err := askMigration(ctx, source.New(flags, client), name, 2)
	if err != nil {
		return err
	}
	if flags.JSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), report)
	} else {
		report.print(cmd.OutOrStdout())
	}
	if err == nil && !report.Upgradable {
		err = fmt.Errorf("group %s cannot become a consumer group now", name)
	}
	return err
}

// askMigration asks a broker for what decides, and again if that changes meanwhile.
func askMigration(ctx context.Context, s *source.Source, name string, again int) (*MigrationReport, error) {
	described, err := s.Admin.DescribeGroups(ctx, name)
	if err != nil && len(described) == 0 {
		return nil, cli.Plain(err)
	}
	if c, ok := s.DescribeOthers(ctx, described)[name]; ok {
		report := &MigrationReport{Name: name, Type: c.Type, State: c.State, Members: len(c.Members), Obstacles: []migrationObstacle{}}
		report.add(migration.Obstacle{Reason: "it is one already"})
		return report, nil
	}
	d, ok := described[name]
	switch {
	case !ok:
		return nil, cli.GroupError(name, cli.ErrNoAnswer)
	case d.Err != nil:
		return nil, cli.GroupError(name, d.Err)
	case d.State == groupview.Dead:
		return nil, cli.GroupError(name, kerr.GroupIDNotFound)
	}
	report := &MigrationReport{Name: name, Type: groupview.TypeClassic, State: d.State, Members: len(d.Members), Obstacles: []migrationObstacle{}}
	if len(d.Members) > 0 {
		if err := report.settings(ctx, s.Admin, d.Coordinator.NodeID); err != nil {
			return nil, err
		}
		members, err := describedMembers(ctx, s.Client, name)
		if errors.Is(err, kerr.GroupIDNotFound) && again > 0 {
			return askMigration(ctx, s, name, again-1) // It went over, or away, meanwhile.
		}
		if err != nil {
			return nil, cli.GroupError(name, err)
		}
		report.look(&d, members)
	}
	report.Upgradable = len(report.Obstacles) == 0
	return report, nil
}

// settings asks the group's coordinator for its settings.
func (r *MigrationReport) settings(ctx context.Context, admin *kadm.Client, broker int32) error {
	configs, err := admin.DescribeBrokerConfigs(ctx, broker)
	if err != nil {
		return cli.Plain(err)
	}
	for _, resource := range configs {
		if resource.Err != nil {
			return fmt.Errorf("the settings of broker %d: %w", broker, cli.Plain(resource.Err))
		}
		for _, c := range resource.Configs {
			switch c.Key {
			case migration.PolicySetting:
				policy := strings.ToLower(c.MaybeValue())
				r.Policy = &policy
			case migration.MaxSizeSetting:
				if n, err := strconv.Atoi(c.MaybeValue()); err == nil {
					r.MaxSize = &n
				}
			}
		}
	}
	if r.Policy == nil || r.MaxSize == nil {
		return errors.New("the broker does not know the consumer protocol: it has no setting " + migration.PolicySetting)
	}
	return nil
}

// look compares a group with what a consumer group must be.
func (r *MigrationReport) look(d *kadm.DescribedGroup, members []kmsg.DescribeGroupsResponseGroupMember) {
	for _, o := range migration.OfGroup(migration.Group{ProtocolType: d.ProtocolType, Members: len(d.Members), Policy: migration.Policy(*r.Policy), MaxSize: *r.MaxSize}) {
		r.add(o)
	}
	if d.ProtocolType != migration.ProtocolType {
		return
	}
	if d.State != groupview.Stable {
		r.add(migration.Obstacle{Reason: "it is " + d.State + ", and what its members say is told only of a Stable group; ask again"})
		return
	}
	var read []migration.Member
	for i := range members {
		read = append(read, MigrationMember(&members[i]))
	}
	sort.Slice(read, func(i, j int) bool { return read[i].ID < read[j].ID })
	for _, o := range migration.OfMembers(read) {
		r.add(o)
	}
}

// describedMembers asks for what members say in their own bytes: kadm does not tell
// whether it could read them.
func describedMembers(ctx context.Context, client *kgo.Client, name string) ([]kmsg.DescribeGroupsResponseGroupMember, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{name}
	resp, err := req.RequestWith(ctx, client)
	switch {
	case err != nil:
		return nil, cli.Plain(err)
	case len(resp.Groups) != 1:
		return nil, cli.ErrNoAnswer
	case resp.Groups[0].ErrorCode != 0:
		return nil, kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	return resp.Groups[0].Members, nil
}

// MigrationMember is what decides of a member.
func MigrationMember(m *kmsg.DescribeGroupsResponseGroupMember) migration.Member {
	out := migration.Member{ID: m.MemberID}
	subscription := kmsg.NewConsumerMemberMetadata()
	out.UnreadableSubscription = subscription.ReadFrom(m.ProtocolMetadata) != nil
	if len(m.MemberAssignment) == 0 {
		return out
	}
	assigned := kmsg.NewConsumerMemberAssignment()
	if out.UnreadableAssignment = assigned.ReadFrom(m.MemberAssignment) != nil; out.UnreadableAssignment {
		return out
	}
	out.UserData = len(assigned.UserData) > 0
	for _, t := range assigned.Topics {
		for _, n := range t.Partitions {
			out.Assigned = append(out.Assigned, migration.Partition{Topic: t.Topic, Number: n})
		}
	}
	return out
}

func (r *MigrationReport) add(o migration.Obstacle) {
	out := migrationObstacle{Reason: o.Reason}
	if o.Member != "" {
		out.Member = &o.Member
	}
	r.Obstacles = append(r.Obstacles, out)
}

func (r *MigrationReport) print(w io.Writer) {
	switch {
	case r.Members == 0 && r.Upgradable:
		fmt.Fprintf(w, "Group %s is empty. It becomes a consumer group when the next consumer with group.protocol=consumer joins it; its committed offsets stay.\n", r.Name)
		return
	case r.Upgradable:
		fmt.Fprintf(w, "Group %s could become a consumer group now, with its %s going on: nothing stands in the way.\n", r.Name, words.Plural(r.Members, "member"))
		return
	}
	fmt.Fprintf(w, "Group %s cannot become a consumer group now, because\n", r.Name)
	for _, o := range r.Obstacles {
		fmt.Fprintf(w, "  - %s\n", o.Reason)
	}
}
