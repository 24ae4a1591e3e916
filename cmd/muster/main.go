// Command muster is a Kafka-compatible broker in one binary, with the tools
// to work with any Kafka broker from a shell.
//
// serve runs the broker. All other commands are Kafka clients that reach a
// broker over the network: they know nothing about the broker's insides, and
// each lives in a file of its own name.
//
//	muster serve
//	muster demo
//	muster top
//	muster brokers list|drain|undrain
//	muster topics list|describe|create|alter|delete
//	muster produce TOPIC
//	muster consume TOPIC...
//	muster users|acls|quotas|audit
//
// Results go to stdout, in tables for people or with --json for programs.
// Everything said about the work goes to stderr. The exit code is 0 when all
// of it succeeded, 1 when any of it failed, 2 when the command line is wrong,
// and 130 when the user interrupted work that was not done.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // What shells report for SIGINT: 128 + 2.
)

func main() {
	// A reader that goes away (muster consume | head) is then an error of the
	// write, which run ends on quietly, instead of death by SIGPIPE.
	signal.Ignore(syscall.SIGPIPE)
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 {
		lineWidth = min(lineWidth, width)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; the next one has its usual
	// effect, in case that takes too long.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code. The tests call it
// as main does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	help := &hints{}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addCompletion(root) // It keeps the output that it finds.
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = checkHelp
		}
	}
	started := markStart(root)
	cmd, err := root.ExecuteContextC(context.WithValue(ctx, hintsKey{}, help))
	switch {
	case err == nil, isClosedPipe(err):
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "muster: interrupted")
		return exitInterrupted
	}
	if !*started {
		err = argumentError(cmd, err)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "muster: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if more := help.of(ctx, cmd, cmd.Flags().Args(), err); more != "" {
		fmt.Fprintf(stderr, "muster: %s\n", more)
	}
	var usage *usageError
	if errors.As(err, &usage) || !*started {
		fmt.Fprintf(stderr, "Run '%s --help' for its usage.\n", cmd.CommandPath())
		return exitUsage
	}
	var interrupted *interruptedError
	if errors.As(err, &interrupted) {
		return exitInterrupted
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "muster",
		Short: "A Kafka-compatible broker in one binary",
		Long: `muster is a Kafka-compatible broker in one binary, with the tools to work
with it. Any Kafka client talks to the broker unchanged, and the tools talk
to any Kafka broker.`,
		Example: `  muster serve                                # run a broker on 127.0.0.1:9092
  muster topics create orders --partitions 3
  echo 'hello' | muster produce orders
  muster consume orders`,
		Version:       buildVersion().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommandArgs,
		RunE:          help,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if cmd.Flags().Lookup("broker") != nil {
				warnOfEnvironment(cmd.ErrOrStderr(), os.Environ())
			}
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	// Commands that only hold subcommands can be run, to refuse wrong ones, but
	// their usage should not say so.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(),
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.AddCommand(serveCommand(), demoCommand(), topCommand(), brokersCommand(), topicsCommand(), groupsCommand(), txnsCommand(), produceCommand(), consumeCommand(),
		usersCommand(), aclsCommand(), quotasCommand(), secretCommand(), auditCommand(), versionCommand())
	return root
}

// markStart notes when a command's own code begins to run: an error before
// that is cobra's, about the command line.
func markStart(root *cobra.Command) *bool {
	started := new(bool)
	var wrap func(*cobra.Command)
	wrap = func(cmd *cobra.Command) {
		if inner := cmd.RunE; inner != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				*started = true
				return inner(cmd, args)
			}
		}
		for _, sub := range cmd.Commands() {
			wrap(sub)
		}
	}
	wrap(root)
	return started
}

// help is what a command does that only holds subcommands.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// subcommandArgs refuses the arguments of a command that only holds
// subcommands: they are a subcommand's name with a slip in it.
func subcommandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("%s has no command %q; did you mean %q?", cmd.CommandPath(), args[0], near[0])
	}
	return usagef("%s has no command %q", cmd.CommandPath(), args[0])
}
