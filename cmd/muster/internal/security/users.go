package security

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
)

func UsersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "users",
		Short: "List, create and delete users, and set their passwords",
		Long: `List, create and delete the users that log in with a password (SASL), and set their
passwords. What they may do is said by muster acls.

A password never stands on a command line, and never reaches the broker: what is sent
and kept is what SCRAM (RFC 5802) makes of it, with a salt.`,
		Example: `  muster users create alice
  muster users list
  muster users set-password alice`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(usersListCommand(), usersCreateCommand(), usersSetPasswordCommand(), usersDeleteCommand())
	return cmd
}

// scram is a mechanism of SCRAM, by its number on the wire.
type scramHash int8

var scramNames = map[scramHash]string{1: cli.MechanismScram256, 2: cli.MechanismScram512}

func (h scramHash) String() string {
	if name := scramNames[h]; name != "" {
		return name
	}
	return fmt.Sprintf("mechanism %d", int8(h))
}

// StoredUser is a user as list shows it.
type StoredUser struct {
	Name       string             `json:"name"`
	Mechanisms []storedCredential `json:"mechanisms"`
}

type storedCredential struct {
	Mechanism  string `json:"mechanism"`
	Iterations int32  `json:"iterations"`
	hash       scramHash
}

func usersListCommand() *cobra.Command {
	var client cli.Flags
	cmd := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"ls"},
		Short:   "List users",
		Long: `List the users that have a password, with the mechanisms by which they can log in. All of
them can also log in by PLAIN, where the broker's sasl.enabled.mechanisms has it. Users
that log in by a token or a certificate are not known to the broker, and not in the list.

With --json it prints an array of objects with the fields name and mechanisms.`,
		Example: `  muster users list
  muster users list alice --json`,
		ValidArgsFunction: completeUsers(&client),
		RunE: func(cmd *cobra.Command, args []string) error {
			return listUsers(cmd, &client, cli.Unique(args))
		},
	}
	client.Add(cmd, "print a JSON array")
	return cmd
}

func listUsers(cmd *cobra.Command, flags *cli.Flags, names []string) error {
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	users, missing, err := describeUsers(cmd.Context(), client, names)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range missing {
		failed = append(failed, fmt.Errorf("there is no user %q", name))
	}
	switch {
	case flags.JSON:
		failed = append(failed, cli.WriteJSON(cmd.OutOrStdout(), append([]StoredUser{}, users...)))
	case len(users) == 0 && len(missing) == 0:
		fmt.Fprintln(cmd.ErrOrStderr(), "there are no users yet; create one with: muster users create NAME")
	case len(users) > 0:
		t := cli.NewTable("USER", "MECHANISM", ">ITERATIONS")
		for _, u := range users {
			for _, m := range u.Mechanisms {
				t.Add(u.Name, m.Mechanism, m.Iterations)
			}
		}
		failed = append(failed, t.Print(cmd.OutOrStdout()))
	}
	return errors.Join(failed...)
}

// describeUsers asks for users by name, or for all. Those that do not exist are missing.
func describeUsers(ctx context.Context, client *kgo.Client, names []string) (users []StoredUser, missing []string, err error) {
	req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	for _, name := range names {
		u := kmsg.NewDescribeUserSCRAMCredentialsRequestUser()
		u.Name = name
		req.Users = append(req.Users, u)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, nil, cli.Plain(err)
	}
	if resp.ErrorCode != 0 {
		return nil, nil, cli.BrokerError(resp.ErrorCode, resp.ErrorMessage)
	}
	for _, r := range resp.Results {
		switch {
		case r.ErrorCode == kerr.ResourceNotFound.Code:
			missing = append(missing, r.User)
			continue
		case r.ErrorCode != 0:
			return nil, nil, cli.BrokerError(r.ErrorCode, r.ErrorMessage)
		}
		u := StoredUser{Name: r.User, Mechanisms: []storedCredential{}}
		for _, c := range r.CredentialInfos {
			u.Mechanisms = append(u.Mechanisms, storedCredential{scramHash(c.Mechanism).String(), c.Iterations, scramHash(c.Mechanism)})
		}
		users = append(users, u)
	}
	sort.Slice(users, func(i, j int) bool { return users[i].Name < users[j].Name })
	return users, missing, nil
}

// completeUsers completes arguments that are names of users.
func completeUsers(flags *cli.Flags) cobra.CompletionFunc {
	return cli.CompleteNames(flags, 0, func(ctx context.Context, client *kgo.Client, _ string) (names []string, err error) {
		users, _, err := describeUsers(ctx, client, nil)
		for _, u := range users {
			names = append(names, u.Name)
		}
		return names, err
	})
}
