package topics

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
)

func deleteCommand() *cobra.Command {
	deletion := cli.Deletion{
		Kind: "topic", With: " with all records", Delete: deleteTopics,
		Complete: func(flags *cli.Flags) cobra.CompletionFunc { return cli.CompleteTopics(flags, 0) },
	}
	return deletion.Command(&cobra.Command{
		Short: "Delete topics with all their records",
		Long: `Delete topics with all their records. At a terminal it asks first, unless --yes
is given; without a terminal --yes is needed. Each topic is deleted or refused
by itself; if any is refused, the exit code is 1.

With --json it prints an array of objects with the fields name and error (null
if there is none).`,
		Example: `  muster topics delete orders
  muster topics delete orders payments --yes`,
	})
}

func deleteTopics(ctx context.Context, client *kgo.Client, names []string) ([]cli.Deleted, error) {
	responses, err := kadm.NewClient(client).DeleteTopics(ctx, names...)
	if err != nil {
		return nil, cli.Plain(err)
	}
	var out []cli.Deleted
	for _, name := range names {
		r, err := responses.On(name, nil)
		if err != nil {
			return nil, fmt.Errorf("the broker did not answer for topic %s", name)
		}
		if r.Err != nil {
			err = cli.TopicError(name, r.Err, r.ErrMessage)
		}
		out = append(out, cli.Deleted{Name: name, Err: err})
	}
	return out, nil
}
