package security

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/words"
)

func SecretCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Rotate the secret by which brokers know each other",
		Long: `Rotate the secret by which the brokers that share a Redis know each other. It is in
__cluster_metadata, is never sent, and no command shows it.`,
		Example: `  muster secret rotate`,
		Args:    cli.SubcommandArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(secretRotateCommand())
	return cmd
}

// Rotation is what --json prints.
type Rotation struct {
	UsedFrom        time.Time `json:"usedFrom"`
	OldAcceptedUpTo time.Time `json:"oldAcceptedUpTo"`
}

func secretRotateCommand() *cobra.Command {
	var flags cli.Flags
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the secret of the cluster",
		Long: fmt.Sprintf(`Replace the secret by which the brokers of the cluster know each other, without downtime.
Brokers learn the new secret at once, log in with it %s later, and accept the old one
for %s. Then the old secret lets no one in, and sessions that used it end.

Rotate if someone may have read __cluster_metadata in Redis or in a backup, and after
an upgrade from a version that sent the secret to other brokers. All brokers must run a version
that knows this command. Needs ALTER on the cluster.

With --json it prints an object with the fields usedFrom and oldAcceptedUpTo.`, words.Duration(metadata.SecretSwitch), words.Duration(metadata.SecretOverlap)),
		Example: `  muster secret rotate
  muster secret rotate --user admin --password-file admin.pw`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return rotateSecret(cmd, &flags) },
	}
	flags.Add(cmd, "print a JSON object")
	return cmd
}

func rotateSecret(cmd *cobra.Command, flags *cli.Flags) error {
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	protocol.AskRotate(&req.UnknownTags)
	resp, err := req.RequestWith(cmd.Context(), client)
	switch {
	case err != nil:
		return cli.Plain(err)
	case len(resp.Results) != 1:
		return errors.New("the broker does not know how to rotate the secret; it is no muster broker, or of an earlier version")
	case resp.Results[0].ErrorCode != 0:
		return cli.BrokerError(resp.Results[0].ErrorCode, resp.Results[0].ErrorMessage)
	}
	now := time.Now().UTC()
	r := Rotation{now.Add(metadata.SecretSwitch), now.Add(metadata.SecretOverlap)}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), r)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "rotated the secret of the cluster\nbrokers use it from %s, and accept the old one up to %s\n",
		r.UsedFrom.Format(time.TimeOnly+" MST"), r.OldAcceptedUpTo.Format(time.TimeOnly+" MST"))
	return err
}
