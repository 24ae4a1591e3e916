package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/internal/auth"
	"muster/internal/web/act"
	"muster/internal/web/problem"
	"muster/internal/words"
)

func (a *api) setPassword(c *call, q *ActQuery, p *NewPassword) (*Done, error) {
	name := c.param("user")
	if p.Password == "" {
		return nil, problem.BadRequest("the password is empty")
	}
	credentials := a.reads.Image().Users.Credentials(name)
	mechanisms := p.Mechanisms
	if len(mechanisms) == 0 {
		mechanisms = mechanismsOf(credentials)
	}
	if len(mechanisms) == 0 {
		mechanisms = scramNames[1:]
	}
	for i, m := range mechanisms {
		if !slices.Contains(scramNames[1:], m) || slices.Contains(mechanisms[:i], m) {
			return nil, problem.BadRequest("mechanisms are %s, each once, and not %q", words.List(scramNames[1:]), m)
		}
	}
	if q.Preview {
		if err := a.allowed(c, []need{altersCluster}); err != nil {
			return nil, err
		}
		if len(credentials) == 0 {
			return preview(a.firstUser(fmt.Sprintf("User %q would be created, who can log in by %s.", name, words.List(mechanisms)))...), nil
		}
		return preview(fmt.Sprintf("User %q would have another password. Connections that are logged in stay so.", name)), nil
	}
	if err := a.acts.SetPassword(c.ctx(), c.asker(), name, p.Password, mechanisms); err != nil {
		return nil, err
	}
	if len(credentials) == 0 {
		return done("User %q was created, who can log in by %s.", name, words.List(mechanisms)), nil
	}
	return done("The password of user %q was set.", name), nil
}

// firstUser adds what the first user means.
func (a *api) firstUser(sentence string) []string {
	if a.gate.WantsLogin() {
		return []string{sentence}
	}
	return []string{sentence, "It is the first: from then on everyone has to log in here."}
}

func (a *api) deleteUser(c *call, q *ActQuery, _ *Nothing) (*Done, error) {
	name := c.param("user")
	if !q.Preview {
		if err := a.acts.DeleteUser(c.ctx(), c.asker(), name); err != nil {
			return nil, err
		}
		return done("User %q was deleted.", name), nil
	}
	if err := a.allowed(c, []need{altersCluster}); err != nil {
		return nil, err
	}
	users := a.reads.Image().Users
	if len(users.Credentials(name)) == 0 {
		return nil, problem.NotFound("there is no user %q", name)
	}
	out := preview(fmt.Sprintf("User %q would be deleted, and could no longer log in. Connections that are logged in stay so, and so do rules and quotas that name the user.", name))
	if c.who == auth.User(name) {
		out.Sentences = append(out.Sentences, "That is you: you could not log in any more.")
	}
	if users.Len() == 1 {
		out.Sentences = append(out.Sentences, "There is no other user.")
		if !a.gate.AlwaysWantsLogin() {
			out.Sentences = append(out.Sentences, "From then on no login is needed here.")
		}
	}
	return out, nil
}

// rule reads a rule.
func (r *ACL) rule() (auth.Rule, error) {
	out := auth.Rule{Name: r.ResourceName, Principal: auth.Principal(r.Principal), Host: r.Host}
	for _, read := range []func() error{
		func() (err error) { out.Type, err = auth.ParseResourceType(r.ResourceType); return err },
		func() (err error) { out.Pattern, err = auth.ParsePatternType(r.PatternType); return err },
		func() (err error) { out.Operation, err = auth.ParseOperation(r.Operation); return err },
		func() (err error) { out.Permission, err = auth.ParsePermission(r.Permission); return err },
	} {
		if err := read(); err != nil {
			return out, problem.BadRequest("%v", err)
		}
	}
	checked, err := out.Check()
	if err != nil {
		return out, problem.BadRequest("%v", err)
	}
	return checked, nil
}

func (a *api) addRule(c *call, q *ActQuery, body *ACL) (*Done, error) {
	r, err := body.rule()
	if err != nil {
		return nil, err
	}
	if !q.Preview {
		if err := a.acts.AddRule(c.ctx(), c.asker(), r); err != nil {
			return nil, err
		}
		return done("There is a rule now: %s.", r), nil
	}
	out, err := a.previewRule(c, fmt.Sprintf("There would be a rule: %s.", r), func(e *auth.Edit) { e.Add(r) })
	if err == nil && a.reads.Image().Rules.Has(r) {
		out.Sentences = []string{"There is this rule already, so that nothing would change."}
	}
	return out, err
}

func (a *api) removeRule(c *call, q *ActQuery, body *ACL) (*Done, error) {
	r, err := body.rule()
	if err != nil {
		return nil, err
	}
	if !q.Preview {
		found, err := a.acts.RemoveRule(c.ctx(), c.asker(), r)
		if err == nil && !found {
			err = problem.NotFound("there is no rule %s", r)
		}
		if err != nil {
			return nil, err
		}
		return done("There is no rule any more: %s.", r), nil
	}
	out, err := a.previewRule(c, fmt.Sprintf("A rule would be removed: %s.", r), func(e *auth.Edit) { e.Remove(r) })
	if err == nil && !a.reads.Image().Rules.Has(r) {
		return nil, problem.NotFound("there is no rule %s", r)
	}
	return out, err
}

// previewRule says what a change of the rules means for the one who makes it.
func (a *api) previewRule(c *call, sentence string, change func(*auth.Edit)) (*Done, error) {
	if err := a.allowed(c, []need{altersCluster}); err != nil {
		return nil, err
	}
	out := preview(sentence)
	image := a.reads.Image()
	if !image.Authorizes() {
		out.Refused = "the broker has no rules, since authorizer.class.name is not set"
		return out, nil
	}
	edit := image.Rules.Edit()
	change(edit)
	if !edit.Index().Allows(c.asks(auth.Alter, auth.Cluster, auth.ClusterName)) {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s could not change rules any more.", c.who))
	}
	return out, nil
}

func (a *api) alterQuota(c *call, q *ActQuery, change *act.ChangedQuota) (*Done, error) {
	if len(change.Entity) == 0 || len(change.Set)+len(change.Remove) == 0 {
		return nil, problem.BadRequest("say whose quotas, and which to set or remove")
	}
	seen := map[string]bool{}
	names := slices.Clone(change.Remove)
	for _, v := range change.Set {
		names = append(names, v.Name)
	}
	for _, name := range names {
		if seen[name] {
			return nil, problem.BadRequest("%s is named twice", name)
		}
		seen[name] = true
	}
	if err := a.acts.AlterQuota(c.ctx(), c.asker(), change, q.Preview); err != nil {
		return nil, err
	}
	whose := quotaWords(change.Entity)
	if !q.Preview {
		return done("Quotas of %s changed: %s.", whose, words.List(slices.Sorted(maps.Keys(seen)))), nil
	}
	out := preview()
	for _, v := range change.Set {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s of %s would be %v. It holds at once, for connections that are open, too.", v.Name, whose, v.Value))
	}
	for _, name := range change.Remove {
		out.Sentences = append(out.Sentences, fmt.Sprintf("%s of %s would be removed.", name, whose))
	}
	return out, nil
}

func quotaWords(parts []act.QuotaPart) string {
	var out []string
	for _, p := range parts {
		if p.Name == nil {
			out = append(out, "any "+p.Type)
		} else {
			out = append(out, fmt.Sprintf("%s %q", p.Type, *p.Name))
		}
	}
	return strings.Join(out, " with ")
}
