package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// Hints knows how the command that runs reached its broker, so that more can be said about
// its error than the error does.
type Hints struct{ flags *Flags }

type hintsKey struct{}

// WithHints returns a context in which a command runs, and the hints on its error.
func WithHints(ctx context.Context) (context.Context, *Hints) {
	h := &Hints{}
	return context.WithValue(ctx, hintsKey{}, h), h
}

// noTopicError says that there is no topic of that name.
type noTopicError struct{ name string }

func (e *noTopicError) Error() string { return fmt.Sprintf("there is no topic %q", e.name) }

// Of returns what helps with an error, "" if there is nothing.
func (h *Hints) Of(ctx context.Context, cmd *cobra.Command, args []string, err error) string {
	if h.flags == nil || ctx.Err() != nil {
		return ""
	}
	var topic *noTopicError
	var group *groupview.NoGroupError
	switch {
	case errors.As(err, &topic):
		return h.near(ctx, topic.name, func(admin *kadm.Client) ([]string, error) {
			topics, err := admin.ListTopics(ctx)
			return topics.Names(), err
		})
	case errors.As(err, &group):
		return h.near(ctx, group.Name, func(admin *kadm.Client) ([]string, error) {
			groups, err := admin.ListGroups(ctx)
			return groups.Groups(), err
		})
	}
	return h.missingRule(cmd, args, err)
}

// near returns the name that the user may have meant.
func (h *Hints) near(ctx context.Context, name string, list func(*kadm.Client) ([]string, error)) string {
	admin, err := h.flags.Admin(ctx)
	if err != nil {
		return ""
	}
	defer admin.Close()
	known, err := list(admin)
	if near := words.Nearest(name, known); err == nil && near != "" && near != name {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// operations says what commands do with resources of a type, as rules name it. Those that
// read what is there do so by describe.
var operations = map[string]map[auth.ResourceType]auth.Operation{
	"produce":        {auth.Topic: auth.Write, auth.TransactionalID: auth.Write},
	"consume":        {auth.Topic: auth.Read, auth.Group: auth.Read},
	"topics create":  {auth.Topic: auth.Create, auth.Cluster: auth.Create},
	"topics delete":  {auth.Topic: auth.Delete},
	"topics alter":   {auth.Topic: auth.AlterConfigs},
	"topics convert": {auth.Topic: auth.Alter},
	"groups reset":   {auth.Topic: auth.Read, auth.Group: auth.Read},
	"groups delete":  {auth.Group: auth.Delete, auth.Topic: auth.Read},
	"users create":   {auth.Cluster: auth.Alter},
	"users delete":   {auth.Cluster: auth.Alter},
	"acls add":       {auth.Cluster: auth.Alter},
	"acls remove":    {auth.Cluster: auth.Alter},
	"quotas list":    {auth.Cluster: auth.DescribeConfigs},
	"quotas set":     {auth.Cluster: auth.AlterConfigs},
	"quotas remove":  {auth.Cluster: auth.AlterConfigs},
	"audit":          {auth.Topic: auth.Read},
	"txns abort":     {auth.Cluster: auth.Alter},
	"secret rotate":  {auth.Cluster: auth.Alter},
	"brokers drain":  {auth.Cluster: auth.AlterConfigs},

	"brokers undrain":       {auth.Cluster: auth.AlterConfigs},
	"groups members remove": {auth.Group: auth.Read},
	"users set-password":    {auth.Cluster: auth.Alter},
}

// missingRule names the rule for want of which the broker refused, and the command that
// adds it, as the broker's log does.
func (h *Hints) missingRule(cmd *cobra.Command, args []string, err error) string {
	var code *kerr.Error
	if !errors.As(err, &code) {
		return ""
	}
	t, ok := map[*kerr.Error]auth.ResourceType{
		kerr.TopicAuthorizationFailed: auth.Topic, kerr.GroupAuthorizationFailed: auth.Group,
		kerr.ClusterAuthorizationFailed: auth.Cluster, kerr.TransactionalIDAuthorizationFailed: auth.TransactionalID,
	}[code]
	if !ok {
		return ""
	}
	path := cmd.CommandPath()[len(cmd.Root().Name())+1:]
	rule := auth.Rule{
		Type: t, Pattern: auth.Literal, Name: nameOf(cmd, args, t), Host: auth.AnyHost, Permission: auth.Allow,
		Principal: h.flags.Login.principal(), Operation: cmp.Or(operations[path][t], auth.Describe),
	}
	if path == "topics alter" && cmd.Flags().Changed("partitions") {
		rule.Operation = auth.Alter // Of what is asked for it comes first.
	}
	if _, err := rule.Check(); err != nil {
		return ""
	}
	return fmt.Sprintf("no rule allows it; whoever may alter the cluster can add one: %s", rule.Command("add"))
}

// nameOf finds the name of the resource that a command is about.
func nameOf(cmd *cobra.Command, args []string, t auth.ResourceType) string {
	flag := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	switch {
	case t == auth.Cluster:
		return auth.ClusterName
	case cmd.Name() == "audit":
		return metadata.AuditTopic
	case t == auth.Group && cmp.Or(flag("group"), flag("share")) != "":
		return cmp.Or(flag("group"), flag("share"))
	case t == auth.TransactionalID && flag("transactional-id") != "":
		return flag("transactional-id")
	case t == auth.Topic && cmd.Parent().Name() == "groups" || len(args) == 0:
		return auth.Wildcard // Those of the group, whichever they are.
	}
	return args[0]
}

// principal is who a command is to the rules.
func (l *LoginFlags) principal() auth.Principal {
	if l.known != nil && l.known.User != "" {
		return auth.User(l.known.User)
	}
	return auth.Anonymous
}

// TellHidden says, where a list is empty, that rules may hide what is there. It returns
// false where they hide nothing: whoever may do everything with the cluster sees all.
func (f *Flags) TellHidden(ctx context.Context, client *kgo.Client, what string, t auth.ResourceType) (string, bool) {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.IncludeClusterAuthorizedOperations = true
	resp, err := req.RequestWith(ctx, client)
	if err != nil || resp.ErrorCode != 0 || seesAll(resp.ClusterAuthorizedOperations) {
		return "", false
	}
	rule := auth.Rule{
		Type: t, Pattern: auth.Literal, Name: auth.Wildcard, Host: auth.AnyHost, Permission: auth.Allow, Principal: f.Login.principal(), Operation: auth.Describe,
	}
	return fmt.Sprintf("there are no %s that %s may see; to see all: %s", what, rule.Principal, rule.Command("add")), true
}

// seesAll says whether these are all the operations that there are on a cluster.
func seesAll(bits int32) bool {
	return !slices.ContainsFunc([]auth.Operation{
		auth.Create, auth.Alter, auth.Describe, auth.ClusterAction, auth.DescribeConfigs, auth.AlterConfigs, auth.IdempotentWrite,
	}, func(op auth.Operation) bool { return bits&(1<<op) == 0 })
}

// IsNoTopic says whether an error is that there is no such topic.
func IsNoTopic(err error) bool {
	var topic *noTopicError
	return errors.As(err, &topic)
}
