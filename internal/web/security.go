package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/web/act"
	"muster/internal/web/problem"
)

// scramNames are the mechanisms by the numbers that credentials have.
var scramNames = []string{1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

// users lists the users.
func (a *api) users(*call, *None) (*UserList, error) {
	all := a.reads.Image().Users
	out := &UserList{Users: []UserRow{}}
	for _, name := range all.Names() {
		out.Users = append(out.Users, UserRow{Name: name, Mechanisms: some(mechanismsOf(all.Credentials(name)))})
	}
	return out, nil
}

func mechanismsOf(credentials []metadata.Credential) []string {
	var out []string
	for i := range credentials {
		if h := int(credentials[i].Hash); h > 0 && h < len(scramNames) {
			out = append(out, scramNames[h])
		}
	}
	return out
}

// rules lists the rules.
func (a *api) rules(_ *call, q *ACLsQuery) (*ACLList, error) {
	f := auth.Filter{Type: auth.AnyResource, Pattern: auth.AnyPattern, Operation: auth.AnyOperation, Permission: auth.AnyPermission}
	if q.Principal != "" {
		f.Principal = &q.Principal
	}
	if q.Resource != "" {
		var err error
		if f.Type, err = auth.ParseResourceType(q.Resource); err != nil {
			return nil, problem.BadRequest("resource: %v", err)
		}
	}
	if q.Name != "" {
		f.Name, f.Pattern = &q.Name, auth.Match
	}
	image := a.reads.Image()
	out := &ACLList{Enabled: image.Authorizes(), ACLs: []ACLRow{}}
	if !out.Enabled {
		return out, nil
	}
	for _, r := range image.Rules.Rules(f) {
		out.ACLs = append(out.ACLs, ruleRow(r))
	}
	return out, nil
}

func ruleRow(r auth.Rule) ACLRow {
	return ACLRow{
		Principal: string(r.Principal), Host: r.Host, Operation: r.Operation.String(), Permission: r.Permission.String(),
		ResourceType: r.Type.String(), ResourceName: r.Name, PatternType: r.Pattern.String(), Sentence: r.String(),
	}
}

// why says whether somebody may do something, as muster acls why does.
func (a *api) why(_ *call, q *WhyQuery) (*ACLWhy, error) {
	asked := auth.Request{Principal: auth.Principal(q.Principal), Host: cmp.Or(q.Host, auth.AnyHost), Name: q.Name}
	if q.Principal == "" {
		return nil, problem.BadRequest("say who, with principal")
	}
	if !strings.Contains(q.Principal, ":") {
		asked.Principal = auth.User(q.Principal)
	}
	var err error
	if asked.Operation, err = auth.ParseOperation(q.Operation); err != nil {
		return nil, problem.BadRequest("operation: %v", err)
	}
	if asked.Type, err = auth.ParseResourceType(q.Resource); err != nil {
		return nil, problem.BadRequest("resource: %v", err)
	}
	if asked.Type == auth.Cluster {
		asked.Name = auth.ClusterName
	}
	if asked.Name == "" {
		return nil, problem.BadRequest("say which %s, with name", strings.ToLower(asked.Type.String()))
	}
	image := a.reads.Image()
	if !image.Authorizes() {
		text := "everyone may do everything: ACLs are off, since authorizer.class.name is not set."
		return &ACLWhy{Allowed: true, Sentence: string(asked.Principal) + " may " + asked.Operation.String() + ", as " + text}, nil
	}
	w := image.Rules.Why(asked)
	out := &ACLWhy{Allowed: w.Allowed, Sentence: w.Sentence, Command: w.Fix}
	if asked.Host == auth.AnyHost {
		// The sentence quotes the star, which is no host.
		out.Sentence = strings.Replace(out.Sentence, ` from "*": `, " from any host: ", 1)
	}
	if w.Reason == auth.ByRule {
		row := ruleRow(w.Rule)
		out.Rule = &row
	}
	return out, nil
}

// quotas lists the quotas.
func (a *api) quotas(*call, *None) (*QuotaList, error) {
	all := a.reads.Image().Quotas
	out := &QuotaList{Quotas: []QuotaRow{}}
	for _, e := range all.Entities() {
		row := QuotaRow{Entity: quotaParts(e), Values: []act.QuotaValue{}}
		of := all.Of(e)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			row.Values = append(row.Values, act.QuotaValue{Name: name, Value: of[name]})
		}
		out.Quotas = append(out.Quotas, row)
	}
	return out, nil
}

func quotaParts(e metadata.QuotaEntity) []act.QuotaPart {
	out := []act.QuotaPart{}
	add := func(kind string, n metadata.QuotaName) {
		switch {
		case n == metadata.Default():
			out = append(out, act.QuotaPart{Type: kind})
		case n.Named:
			out = append(out, act.QuotaPart{Type: kind, Name: &n.Name})
		}
	}
	add("user", e.User)
	add("client-id", e.ClientID)
	add("ip", e.IP)
	return out
}
