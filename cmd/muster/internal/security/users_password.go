package security

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/metadata/config"
)

const passwordHelp = `
The password is asked for at a terminal, or read from the first line of stdin, or from
the file that --new-password-file names. --new-password takes where it is kept,
'${env:NAME}' or '${file:/path}', and never the password itself: command lines are seen
by every user of the machine, and kept by shells.

With --json it prints an object with the fields name and mechanisms.`

// The bounds that brokers set to iterations, Kafka's and ours.
const minIterations, maxIterations = 4096, 16384

// passwordFlags are the flags of commands that set a password.
type passwordFlags struct {
	cli.Flags
	file       string
	reference  string
	iterations int32
	mechanisms []string
}

func (f *passwordFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd, "print a JSON object")
	cmd.Flags().StringVar(&f.file, "new-password-file", "", "`file` with the password of the user")
	cmd.Flags().StringVar(&f.reference, "new-password", "", "where the password is kept: '${env:NAME}' or '${file:/path}'")
	cmd.Flags().Int32Var(&f.iterations, "iterations", minIterations, "how often the password is hashed, 4096 to 16384")
	cmd.MarkFlagsMutuallyExclusive("new-password-file", "new-password")
}

// hashes returns the mechanisms that are named.
func (f *passwordFlags) hashes() ([]scramHash, error) {
	var out []scramHash
	for _, name := range f.mechanisms {
		var hash scramHash
		switch name {
		case cli.MechanismScram256:
			hash = 1
		case cli.MechanismScram512:
			hash = 2
		default:
			return nil, cli.Usagef("--mechanism is %s or %s, not %q; whoever has one of them can log in by PLAIN too", cli.MechanismScram256, cli.MechanismScram512, name)
		}
		if !slices.Contains(out, hash) {
			out = append(out, hash)
		}
	}
	return out, nil
}

// newPassword reads the password that the user is to have.
func (f *passwordFlags) newPassword(cmd *cobra.Command, name string) (string, error) {
	if f.iterations < minIterations || f.iterations > maxIterations {
		return "", cli.Usagef("--iterations is %d to %d, not %d", minIterations, maxIterations, f.iterations)
	}
	switch {
	case f.file != "":
		return cli.ReadSecretFile(f.file)
	case f.reference != "":
		return f.resolve()
	}
	if in, ok := cmd.InOrStdin().(*os.File); ok && cli.IsTerminal(in) {
		return askTwice(in, cmd.ErrOrStderr(), name)
	}
	line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), cli.MaxSecretFile)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("the password cannot be read from stdin: %w", err)
	}
	if line = cli.TrimLine(line); line == "" {
		return "", cli.Usagef("give the password on stdin, or with --new-password-file; there is no terminal to ask at")
	}
	return line, nil
}

// resolve looks up where the password is kept. What is no reference is refused, and not
// repeated, since it may be the password.
func (f *passwordFlags) resolve() (string, error) {
	if !config.HasReference(f.reference) {
		return "", cli.Usagef("--new-password takes '${env:NAME}' or '${file:/path}', and no password: everyone on this machine can see command lines")
	}
	found, err := config.Resolve(map[string]string{"--new-password": f.reference}, cli.Lookups)
	if err != nil {
		return "", err
	}
	if found["--new-password"] == "" {
		return "", fmt.Errorf("%s is empty", f.reference)
	}
	return found["--new-password"], nil
}

func askTwice(terminal *os.File, out io.Writer, name string) (string, error) {
	password, err := cli.AskPassword(terminal, out, "New password of "+name+": ")
	if err != nil {
		return "", err
	}
	again, err := cli.AskPassword(terminal, out, "Once more: ")
	if err == nil && again != password {
		err = errors.New("these are two passwords; nothing was changed")
	}
	return password, err
}
