package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster"
	"muster/internal/assert"
)

// Each thing is deleted or refused by itself; if any is refused, the command fails and says
// which.
func TestADeletionFailsIfAnythingIsRefused(t *testing.T) {
	b, err := muster.Start(t.Context(), muster.Config{})
	assert.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	refused := errors.New("thing two is in use")
	run := func(args ...string) (string, error) {
		d := Deletion{
			Kind: "thing", Complete: func(*Flags) cobra.CompletionFunc { return nil },
			Delete: func(_ context.Context, _ *kgo.Client, names []string) (out []Deleted, _ error) {
				for _, name := range names {
					out = append(out, Deleted{name, map[string]error{"two": refused}[name]})
				}
				return out, nil
			},
		}
		var out bytes.Buffer
		cmd := d.Command(&cobra.Command{SilenceErrors: true, SilenceUsage: true})
		cmd.SetArgs(append(args, "--yes", "--broker", b.Addr()))
		cmd.SetOut(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run("one", "one", "three"); err != nil || out != "deleted thing one\ndeleted thing three\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run("one", "two"); !errors.Is(err, refused) || out != "deleted thing one\n" {
		t.Errorf("%q, %v", out, err)
	}
	out, err := run("one", "two", "--json")
	var results []Result
	if wrong := json.Unmarshal([]byte(out), &results); wrong != nil || !errors.Is(err, refused) || len(results) != 2 || results[0].Error != nil || *results[1].Error != refused.Error() {
		t.Errorf("%s, %v", out, err)
	}
}
