package security

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
)

// saltSize is as many bytes as Kafka's own tool takes, and more than RFC 5802 asks for.
const saltSize = 24

func usersCreateCommand() *cobra.Command {
	var flags passwordFlags
	cmd := &cobra.Command{
		Use:     "create NAME",
		Aliases: []string{"add"},
		Short:   "Create a user",
		Long: `Create a user who can log in by SCRAM-SHA-256 and SCRAM-SHA-512, and by PLAIN where the
broker allows that. A user who exists is refused; see muster users set-password.
` + passwordHelp,
		Example: `  muster users create alice
  openssl rand -base64 24 | tee alice.pw | muster users create alice
  muster users create alice --new-password-file alice.pw
  muster users create alice --new-password '${env:ALICE_PW}'`,
		Args: cli.One("user"),
		RunE: func(cmd *cobra.Command, args []string) error { return createUser(cmd, &flags, args[0]) },
	}
	flags.add(cmd)
	cmd.Flags().StringSliceVar(&flags.mechanisms, "mechanism", []string{cli.MechanismScram256, cli.MechanismScram512}, "`mechanisms` by which the user can log in")
	return cmd
}

func usersSetPasswordCommand() *cobra.Command {
	var flags passwordFlags
	cmd := &cobra.Command{
		Use:     "set-password NAME",
		Aliases: []string{"passwd"},
		Short:   "Set the password of a user",
		Long: `Set the password of a user, for all mechanisms that the user has, or for those that
--mechanism names, which the user may not have had before. Those that are not named keep
their password. Connections that are logged in stay so; see connections.max.reauth.ms.
` + passwordHelp,
		Example: `  muster users set-password alice
  muster users set-password alice --new-password-file alice.pw
  muster users set-password alice --mechanism SCRAM-SHA-512`,
		Args:              cli.One("user"),
		ValidArgsFunction: completeUsers(&flags.Flags),
		RunE:              func(cmd *cobra.Command, args []string) error { return setPassword(cmd, &flags, args[0]) },
	}
	flags.add(cmd)
	cmd.Flags().StringSliceVar(&flags.mechanisms, "mechanism", nil, "`mechanisms` whose password is set (default: all that the user has)")
	return cmd
}

func createUser(cmd *cobra.Command, flags *passwordFlags, name string) error {
	return changePassword(cmd, flags, name, "created user", func(users []StoredUser, hashes []scramHash) ([]scramHash, error) {
		if len(users) > 0 {
			return nil, fmt.Errorf("user %q exists; muster users set-password %s sets another password", name, name)
		}
		return hashes, nil
	})
}

func setPassword(cmd *cobra.Command, flags *passwordFlags, name string) error {
	return changePassword(cmd, flags, name, "set the password of user", func(users []StoredUser, hashes []scramHash) ([]scramHash, error) {
		if len(users) == 0 {
			return nil, fmt.Errorf("there is no user %q; muster users create %s creates one", name, name)
		}
		if len(hashes) == 0 {
			for _, m := range users[0].Mechanisms {
				hashes = append(hashes, m.hash)
			}
		}
		return hashes, nil
	})
}

// changePassword gives a user a password, for the hashes that choose makes of those that the
// flags name and of the user, if there is one already.
func changePassword(cmd *cobra.Command, flags *passwordFlags, name, done string, choose func([]StoredUser, []scramHash) ([]scramHash, error)) error {
	hashes, err := flags.hashes()
	if err != nil {
		return err
	}
	password, err := flags.newPassword(cmd, name)
	if err != nil {
		return err
	}
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	users, _, err := describeUsers(cmd.Context(), client, []string{name})
	if err == nil {
		hashes, err = choose(users, hashes)
	}
	if err != nil {
		return err
	}
	return setCredentials(cmd, flags, client, name, password, hashes, done)
}

// setCredentials sends what SCRAM makes of a password, one mechanism after the other: a
// request may name a user once.
func setCredentials(cmd *cobra.Command, flags *passwordFlags, client *kgo.Client, name, password string, hashes []scramHash, done string) error {
	result := StoredUser{Name: name, Mechanisms: []storedCredential{}}
	for _, hash := range hashes {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		u, err := newCredential(name, password, hash, flags.iterations)
		if err != nil {
			return err
		}
		req.Upsertions = append(req.Upsertions, u)
		if err := alterUser(cmd.Context(), client, req); err != nil {
			return err
		}
		result.Mechanisms = append(result.Mechanisms, storedCredential{hash.String(), flags.iterations, hash})
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), result)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", done, name)
	return err
}

// newCredential salts a password, as RFC 5802 says. Like Kafka's tools it takes the
// password's bytes as they are.
func newCredential(name, password string, hash scramHash, iterations int32) (kmsg.AlterUserSCRAMCredentialsRequestUpsertion, error) {
	u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	u.Name, u.Mechanism, u.Iterations, u.Salt = name, int8(hash), iterations, make([]byte, saltSize)
	_, _ = rand.Read(u.Salt) // It never fails.
	var err error
	switch hash {
	case 1:
		u.SaltedPassword, err = pbkdf2.Key(sha256.New, password, u.Salt, int(iterations), sha256.Size)
	case 2:
		u.SaltedPassword, err = pbkdf2.Key(sha512.New, password, u.Salt, int(iterations), sha512.Size)
	default:
		err = fmt.Errorf("user %s has a password for %s, which muster does not know", name, hash)
	}
	return u, err
}

func alterUser(ctx context.Context, client *kgo.Client, req *kmsg.AlterUserSCRAMCredentialsRequest) error {
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return cli.Plain(err)
	}
	if len(resp.Results) == 0 {
		return cli.ErrNoAnswer
	}
	for _, r := range resp.Results {
		if r.ErrorCode != 0 {
			return fmt.Errorf("user %s: %w", r.User, cli.BrokerError(r.ErrorCode, r.ErrorMessage))
		}
	}
	return nil
}

func usersDeleteCommand() *cobra.Command {
	return cli.Deletion{Kind: "user", Delete: deleteUsers, Complete: completeUsers}.Command(&cobra.Command{
		Short: "Delete users",
		Long: `Delete users, who can then no longer log in. Connections that are logged in stay so; see
connections.max.reauth.ms. Rules and quotas that name them stay.

At a terminal it asks first, unless --yes is given; without a terminal --yes is needed.

With --json it prints an array of objects with the fields name and error (null if there
is none).`,
		Example: `  muster users delete alice
  muster users delete alice bob --yes`,
	})
}

func deleteUsers(ctx context.Context, client *kgo.Client, names []string) ([]cli.Deleted, error) {
	users, missing, err := describeUsers(ctx, client, names)
	if err != nil {
		return nil, err
	}
	var out []cli.Deleted
	for _, name := range missing {
		out = append(out, cli.Deleted{Name: name, Err: fmt.Errorf("there is no user %q", name)})
	}
	for _, u := range users {
		out = append(out, cli.Deleted{Name: u.Name, Err: deleteUser(ctx, client, u)})
	}
	return out, nil
}

func deleteUser(ctx context.Context, client *kgo.Client, u StoredUser) error {
	for _, m := range u.Mechanisms {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		d := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		d.Name, d.Mechanism = u.Name, int8(m.hash)
		req.Deletions = append(req.Deletions, d)
		if err := alterUser(ctx, client, req); err != nil {
			return err
		}
	}
	return nil
}
