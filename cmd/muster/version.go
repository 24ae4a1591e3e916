package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
)

// version is what the go command stamped into the binary. The fields are those
// of muster version --json.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Time     string `json:"time"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// released is the version of a release, which the linker sets.
var released string

func buildVersion() version {
	v := version{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if stamped := info.Main.Version; stamped != "" && stamped != "(devel)" {
		v.Version = stamped
	}
	if released != "" {
		v.Version = released
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "vcs.time":
			v.Time = s.Value
		}
	}
	return v
}

func (v version) String() string {
	parts := []string{"muster", v.Version}
	if v.Revision != "" {
		revision := "revision " + v.Revision[:min(12, len(v.Revision))]
		if v.Modified {
			revision += " with changes"
		}
		parts = append(parts, "("+revision+")")
	}
	return strings.Join(append(parts, v.Go, v.Platform), " ")
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Long: `Print the version of this binary: the release, the Git revision it was built
from, and the version of Go.

With --json it prints one object with the fields version, revision, modified,
time, go and platform. revision and time are empty if the binary was built
without Git.`,
		Example: "  muster version\n  muster version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return cli.WriteJSON(cmd.OutOrStdout(), buildVersion())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), buildVersion())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
