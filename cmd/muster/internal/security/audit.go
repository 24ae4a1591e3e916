package security

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/words"
)

// auditFlags are the flags of muster audit.
type auditFlags struct {
	source.HistoryFlags
	follow   bool
	kinds    []string
	who      string
	host     string
	resource string
}

func AuditCommand() *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who logged in, who was denied what, and who changed what",
		Long: `Show the audit log, the oldest entry first: logins and logins that failed, rights that
were denied, and every change of topics, settings, groups, offsets, users, rules and
quotas, with who did it, from where and by which request. What a user does again and
again is told once, and then by a count a minute.

A muster broker keeps it in the topic ` + source.AuditLog.Topic + `, for as long as
muster.audit.retention.ms says; reading it needs read on that topic.

With --json it prints the entries as the broker wrote them, one object per line.`,
		Example: `  muster audit
  muster audit --kind denied,login-failed --since 7d
  muster audit --resource orders --limit 0
  muster audit --by alice --follow
  muster audit --json | jq -c '[.time, .principal, .kind, .resources[0].name]'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showAudit(cmd, &flags) },
	}
	flags.Add(cmd)
	f := cmd.Flags()
	f.BoolVarP(&flags.follow, "follow", "f", false, "wait for further entries, until interrupted")
	f.StringSliceVar(&flags.kinds, "kind", nil, "only entries of these `kinds`")
	f.StringVar(&flags.who, "by", "", "only what that `user` did")
	f.StringVar(&flags.host, "host", "", "only what came from that `address`")
	f.StringVar(&flags.resource, "resource", "", "only what is about the topic, group, user … of that `name`")
	var kinds []string
	for _, k := range audit.Kinds() {
		kinds = append(kinds, string(k))
	}
	cli.CompleteValues(cmd, "kind", kinds...)
	cli.CompleteFlag(cmd, "by", completeUsers(&flags.Flags))
	return cmd
}

// check finds what is wrong with the flags.
func (f *auditFlags) check() error {
	for _, k := range f.kinds {
		if !slices.Contains(audit.Kinds(), audit.Kind(k)) {
			return cli.Usagef("--kind has no %q; there are %s", k, kindList())
		}
	}
	return nil
}

func kindList() string {
	var names []string
	for _, k := range audit.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// wants says whether an entry is one of those that were asked for.
func (f *auditFlags) wants(e *audit.Entry) bool {
	switch {
	case len(f.kinds) > 0 && !slices.Contains(f.kinds, string(e.Kind)):
		return false
	case f.who != "" && e.Principal != string(auth.ParsePrincipal(f.who)):
		return false
	case f.host != "" && e.Host != f.host:
		return false
	}
	return f.resource == "" || slices.ContainsFunc(e.Resources, func(r audit.Resource) bool { return r.Name == f.resource })
}

func showAudit(cmd *cobra.Command, flags *auditFlags) error {
	since, err := flags.Since()
	if err == nil {
		err = flags.check()
	}
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	r, err := source.AuditLog.Open(ctx, &flags.Flags, time.Now().Add(-since), flags.follow)
	if errors.Is(err, source.AuditLog.ErrNone) && !flags.follow {
		fmt.Fprintln(cmd.ErrOrStderr(), err)
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	entries, err := r.Read(ctx)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e source.AuditEntry) bool { return !flags.wants(&e.Entry) })
	entries = source.Latest(&flags.HistoryFlags, cmd.ErrOrStderr(), entries)
	if len(entries) == 0 && !flags.follow {
		fmt.Fprintf(cmd.ErrOrStderr(), "the audit log has no such entry in the last %s; --since looks further back\n", words.Past(since))
	}
	if err := printAudit(cmd.OutOrStdout(), flags, entries); err != nil || !flags.follow {
		return err
	}
	return followAudit(ctx, cmd.OutOrStdout(), flags, r)
}

// followAudit prints entries as they come.
func followAudit(ctx context.Context, out io.Writer, flags *auditFlags, r *source.Reader[source.AuditEntry]) error {
	for {
		entries, err := r.Poll(ctx)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e source.AuditEntry) bool { return !flags.wants(&e.Entry) })
		if err := printAudit(out, flags, entries); err != nil {
			return err
		}
	}
}

func printAudit(w io.Writer, flags *auditFlags, entries []source.AuditEntry) error {
	out := bufio.NewWriter(w)
	now := time.Now()
	for i := range entries {
		if e := &entries[i]; flags.JSON {
			fmt.Fprintf(out, "%s\n", e.Raw)
		} else {
			fmt.Fprintf(out, "%s %s\n", words.Time(e.Time, now), e.Line())
		}
	}
	return out.Flush()
}
