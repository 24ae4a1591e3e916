package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/words"
)

func deleteCommand() *cobra.Command {
	deletion := cli.Deletion{
		Kind: "group", With: " with all committed offsets", Delete: deleteGroups,
		Complete: func(flags *cli.Flags) cobra.CompletionFunc { return cli.CompleteGroups(flags, 0) },
	}
	return deletion.Command(&cobra.Command{
		Short: "Delete groups with their committed offsets",
		Long: `Delete groups with their committed offsets. A group that has members is refused:
stop them first. Should its consumers start again, they begin where their
auto.offset.reset says. With a share group goes what is known of its records.

At a terminal it asks first, unless --yes is given; without a terminal --yes is
needed. Each group is deleted or refused by itself; if any is refused, the exit
code is 1.

With --json it prints an array of objects with the fields name and error (null
if there is none).`,
		Example: `  muster groups delete billing
  muster groups delete billing audit --yes`,
	})
}

func deleteGroups(ctx context.Context, client *kgo.Client, names []string) ([]cli.Deleted, error) {
	admin := kadm.NewClient(client)
	responses, err := admin.DeleteGroups(ctx, names...)
	if err != nil && len(responses) == 0 {
		return nil, cli.Plain(err)
	}
	var out []cli.Deleted
	for _, name := range names {
		err := cli.ErrNoAnswer
		if r, ok := responses[name]; ok {
			err = r.Err
		}
		switch {
		case errors.Is(err, kerr.NonEmptyGroup):
			err = nonEmptyError(ctx, admin, name)
		case err != nil:
			err = cli.GroupError(name, err)
		}
		out = append(out, cli.Deleted{Name: name, Err: err})
	}
	return out, nil
}

// nonEmptyError says who is in a group that cannot be deleted.
func nonEmptyError(ctx context.Context, admin *kadm.Client, name string) error {
	described, err := admin.DescribeGroups(ctx, name)
	d := described[name]
	if err != nil || len(d.Members) == 0 {
		return fmt.Errorf("group %s has members; stop them first", name)
	}
	var who []string
	for _, m := range source.Description(&d, nil).Members {
		who = append(who, m.String())
	}
	return fmt.Errorf("group %s has %s: %s; stop %s first", name, words.Plural(len(who), "member"), words.List(who), words.Verb(len(who), "it", "them"))
}
