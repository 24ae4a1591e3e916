// Command muster is a Kafka-compatible broker in one binary, with the tools
// to work with any Kafka broker from a shell.
//
// serve runs the broker. All other commands are Kafka clients that reach a
// broker over the network: they know nothing about the broker's insides. Each
// family of them is a package below internal; this one puts them together.
//
//	muster serve
//	muster demo
//	muster health
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

	"muster/cmd/muster/internal/brokers"
	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/groups"
	"muster/cmd/muster/internal/records"
	"muster/cmd/muster/internal/security"
	"muster/cmd/muster/internal/serve"
	"muster/cmd/muster/internal/top"
	"muster/cmd/muster/internal/topics"
	"muster/cmd/muster/internal/txns"
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
		cli.LineWidth = min(cli.LineWidth, width)
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
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cli.AddCompletion(root) // It keeps the output that it finds.
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = cli.CheckHelp
		}
	}
	started := markStart(root)
	hinted, hints := cli.WithHints(ctx)
	cmd, err := root.ExecuteContextC(hinted)
	switch {
	case err == nil, cli.IsClosedPipe(err):
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "muster: interrupted")
		return exitInterrupted
	}
	if !*started {
		err = cli.ArgumentError(cmd, err)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "muster: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if more := hints.Of(ctx, cmd, cmd.Flags().Args(), err); more != "" {
		fmt.Fprintf(stderr, "muster: %s\n", more)
	}
	var usage *cli.UsageError
	if errors.As(err, &usage) || !*started {
		fmt.Fprintf(stderr, "Run '%s --help' for its usage.\n", cmd.CommandPath())
		return exitUsage
	}
	var interrupted *cli.InterruptedError
	if errors.As(err, &interrupted) {
		return exitInterrupted
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	var printVersion bool
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
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cli.SubcommandArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if printVersion {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), buildVersion())
				return err
			}
			return cli.Help(cmd, args)
		},
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if cmd.Flags().Lookup("broker") != nil {
				serve.WarnOfEnvironment(cmd.ErrOrStderr(), os.Environ())
			}
		},
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetUsageFunc(usageFunc(root.UsageFunc()))
	// Not cobra's own flag: what it prints can be changed only by a template. Packages of
	// templates call methods by name, so that the linker keeps every exported method of the
	// program: a third of the binary.
	root.Flags().BoolVarP(&printVersion, "version", "v", false, "version for muster")
	root.AddCommand(serve.Command(buildVersion().Version), serve.DemoCommand(), serve.HealthCommand(), top.Command(), brokers.Command(), topics.Command(), groups.Command(), txns.Command(), records.ProduceCommand(), records.ConsumeCommand(),
		security.UsersCommand(), security.AclsCommand(), security.QuotasCommand(), security.SecretCommand(), security.AuditCommand(), versionCommand())
	return root
}

// usageFunc prints usages as cobra does. Commands that only hold subcommands can be run, to
// refuse wrong ones, but their usage does not say so.
func usageFunc(print func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		if cmd.HasAvailableSubCommands() {
			run := cmd.RunE
			cmd.RunE = nil
			defer func() { cmd.RunE = run }()
		}
		return print(cmd)
	}
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
