package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/words"
)

// Result is what --json shows of something that a command tried to change.
type Result struct {
	Name  string  `json:"name"`
	Error *string `json:"error"`
}

// NewResult makes the result of a change.
func NewResult(name string, err error) Result {
	if err == nil {
		return Result{Name: name}
	}
	text := err.Error()
	return Result{name, &text}
}

// Deletion is what commands differ in that delete things by their names.
type Deletion struct {
	Kind string // "topic"
	With string // What goes with it: " with all records".
	// Delete deletes each or says why not, or fails as a whole.
	Delete   func(ctx context.Context, client *kgo.Client, names []string) ([]Deleted, error)
	Complete func(*Flags) cobra.CompletionFunc
}

// Deleted is what became of one of the names.
type Deleted struct {
	Name string
	Err  error
}

// Command adds to a command what all deletions share: it has a short and a long text, and
// examples.
func (d Deletion) Command(cmd *cobra.Command) *cobra.Command {
	var flags Flags
	var yes bool
	cmd.Use, cmd.Aliases, cmd.Args = "delete NAME...", []string{"rm"}, Some(d.Kind)
	cmd.ValidArgsFunction = d.Complete(&flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names := Unique(args)
		if !yes {
			question := fmt.Sprintf("Delete %s (%s)%s?", words.Plural(len(names), d.Kind), strings.Join(names, ", "), d.With)
			if err := Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question, IsTerminal(cmd.InOrStdin())); err != nil {
				return err
			}
		}
		return d.run(cmd, &flags, names)
	}
	flags.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (d Deletion) run(cmd *cobra.Command, flags *Flags, names []string) error {
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	deleted, err := d.Delete(cmd.Context(), client, names)
	if err != nil {
		return err
	}
	var results []Result
	var failed []error
	for _, x := range deleted {
		if x.Err != nil {
			failed = append(failed, x.Err)
		} else if !flags.JSON {
			fmt.Fprintf(cmd.OutOrStdout(), "deleted %s %s\n", d.Kind, x.Name)
		}
		results = append(results, NewResult(x.Name, x.Err))
	}
	if flags.JSON {
		failed = append(failed, WriteJSON(cmd.OutOrStdout(), results))
	}
	return errors.Join(failed...)
}
