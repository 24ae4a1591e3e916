package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/watch/groupview"
)

// removeFlags are the flags of muster groups members remove.
type removeFlags struct {
	cli.Flags
	instances []string
	members   []string
	all       bool
	reason    string
}

// RemovedMember has the fields of muster groups members remove --json.
type RemovedMember struct {
	Member   string  `json:"member_id"`
	Instance *string `json:"instance_id"`
	Error    *string `json:"error"`
}

func membersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "members",
		Aliases: []string{"member"},
		Short:   "Remove members from a group",
		Example: `  muster groups members remove billing --instance-id billing-3`,
		Args:    cli.SubcommandArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(groupsMembersRemoveCommand())
	return cmd
}

func groupsMembersRemoveCommand() *cobra.Command {
	var flags removeFlags
	cmd := &cobra.Command{
		Use:     "remove GROUP",
		Aliases: []string{"rm"},
		Short:   "Remove members from a group, without waiting for their session to end",
		Long: `Remove members from a group, which then rebalances. It is meant for processes
that are gone for good: a static member that was taken away would hold its
partitions until its session timeout ends.

It does not stop a process: one that still runs will join again.

With --json it prints an array of objects with the fields member_id, instance_id
and error (null if there is none).`,
		Example: `  muster groups members remove billing --instance-id billing-3
  muster groups members remove billing --member consumer-1-5f0c7d7e-8a04-4b8e-9d2f-1c2f3b4a5d6e
  muster groups members remove billing --all --reason 'host is gone'`,
		Args:              cli.One("group"),
		ValidArgsFunction: cli.CompleteGroups(&flags.Flags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return removeMembers(cmd, &flags, args[0]) },
	}
	flags.Add(cmd, "print a JSON array")
	f := cmd.Flags()
	f.StringSliceVar(&flags.instances, "instance-id", nil, "group instance `id` of a static member; more than one with commas")
	f.StringSliceVar(&flags.members, "member", nil, "member `id`; more than one with commas")
	f.BoolVar(&flags.all, "all", false, "remove all members")
	f.StringVar(&flags.reason, "reason", "removed with muster groups members remove", "`text` for the group journal, and for the logs of other brokers")
	cmd.MarkFlagsMutuallyExclusive("all", "instance-id")
	cmd.MarkFlagsMutuallyExclusive("all", "member")
	flags.complete(cmd, "instance-id", func(m *groupview.Member) string {
		if m.Instance == nil {
			return ""
		}
		return *m.Instance
	})
	flags.complete(cmd, "member", func(m *groupview.Member) string { return m.ID })
	return cmd
}

// complete completes a flag with what value returns for each member.
func (f *removeFlags) complete(cmd *cobra.Command, flag string, value func(*groupview.Member) string) {
	cli.CompleteBy(cmd, flag, func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompletionTimeout)
		defer cancel()
		client, err := f.Connect(ctx)
		if err != nil || len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		g, err := source.NewLoader(&f.Flags, client).One(ctx, args[0])
		if err != nil || g == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i := range g.Members {
			if v := value(&g.Members[i]); v != "" && strings.HasPrefix(v, prefix) {
				out = append(out, v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

func removeMembers(cmd *cobra.Command, flags *removeFlags, name string) error {
	if !flags.all && (slices.Contains(flags.instances, "") || slices.Contains(flags.members, "") || len(flags.instances)+len(flags.members) == 0) {
		return cli.Usagef("give the id of a member with --instance-id or --member")
	}
	ctx := cmd.Context()
	client, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	g, err := source.NewLoader(&flags.Flags, client).One(ctx, name)
	switch {
	case err != nil:
		return err
	case g == nil:
		return &groupview.NoGroupError{Name: name}
	case flags.all && len(g.Members) == 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "group %s has no members\n", name)
	}
	removed, err := leave(ctx, client, name, flags.leavers(g))
	if err != nil {
		return cli.GroupError(name, err)
	}
	var failed []error
	for _, m := range removed {
		who := m.Member
		if m.Instance != nil {
			who = *m.Instance
		}
		switch {
		case m.Error != nil:
			failed = append(failed, fmt.Errorf("%s", *m.Error))
		case !flags.JSON:
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s from group %s\n", who, name)
		}
	}
	if flags.JSON {
		failed = append(failed, cli.WriteJSON(cmd.OutOrStdout(), removed))
	}
	return errors.Join(failed...)
}

// leavers returns the members to remove. A static member is known by its
// instance id, also when it has just restarted under another member id.
func (f *removeFlags) leavers(g *groupview.Group) []kmsg.LeaveGroupRequestMember {
	var out []kmsg.LeaveGroupRequestMember
	add := func(member string, instance *string) {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.InstanceID, m.Reason = member, instance, &f.reason
		out = append(out, m)
	}
	for _, id := range cli.Unique(f.instances) {
		add("", &id)
	}
	for _, id := range cli.Unique(f.members) {
		add(id, nil)
	}
	if f.all {
		for _, m := range g.Members {
			if m.Instance != nil {
				add("", m.Instance)
			} else {
				add(m.ID, nil)
			}
		}
	}
	return out
}

// leave has members leave a group.
func leave(ctx context.Context, client *kgo.Client, name string, members []kmsg.LeaveGroupRequestMember) ([]RemovedMember, error) {
	out := []RemovedMember{}
	if len(members) == 0 {
		return out, nil
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.Members = name, members
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range resp.Members {
		r := RemovedMember{Member: m.MemberID, Instance: m.InstanceID}
		if err := kerr.ErrorForCode(m.ErrorCode); err != nil {
			text := leaveError(name, &r, err).Error()
			r.Error = &text
		}
		out = append(out, r)
	}
	return out, nil
}

func leaveError(group string, m *RemovedMember, err error) error {
	switch {
	case !errors.Is(err, kerr.UnknownMemberID):
		return fmt.Errorf("member %s of group %s: %w", m.Member, group, cli.Plain(err))
	case m.Instance != nil:
		return fmt.Errorf("group %s has no static member %q", group, *m.Instance)
	}
	return fmt.Errorf("group %s has no member %q", group, m.Member)
}
