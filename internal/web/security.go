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

// why says whether someone may do something, as muster acls why does.
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

// UserList is the users.
type UserList struct {
	Users []UserRow `json:"users" csv:"rows" doc:"by name"`
}

// UserRow is a user.
type UserRow struct {
	Name       string   `json:"name"`
	Mechanisms []string `json:"mechanisms" doc:"by which the user can log in; by PLAIN, too, where a listener has it"`
}

// NewPassword is the password of a user.
type NewPassword struct {
	Password   string   `json:"password"`
	Mechanisms []string `json:"mechanisms,omitempty" doc:"SCRAM-SHA-256, SCRAM-SHA-512; absent for those that the user has, or both"`
}

// ACLsQuery asks for rules.
type ACLsQuery struct {
	Principal string `query:"principal" doc:"only rules for this one, as in User:alice"`
	Resource  string `query:"resource" doc:"only rules about TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID"`
	Name      string `query:"name" doc:"only rules that match the resource of this name"`
}

// ACLList is the rules.
type ACLList struct {
	Enabled bool     `json:"enabled" doc:"false if the broker has no authorizer, so that everyone may do everything"`
	ACLs    []ACLRow `json:"acls" csv:"rows" doc:"by resource"`
}

// ACL is a rule.
type ACL struct {
	Principal    string `json:"principal" doc:"as in User:alice; User:* for everyone"`
	Host         string `json:"host" doc:"an address; * for any"`
	Operation    string `json:"operation" doc:"READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL …"`
	Permission   string `json:"permission" doc:"ALLOW or DENY"`
	ResourceType string `json:"resourceType" doc:"TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID"`
	ResourceName string `json:"resourceName" doc:"kafka-cluster for the cluster; * for all, if literal"`
	PatternType  string `json:"patternType" doc:"LITERAL, or PREFIXED for names that start so"`
}

// ACLRow is a rule in a list.
type ACLRow struct {
	Principal    string `json:"principal"`
	Host         string `json:"host"`
	Operation    string `json:"operation"`
	Permission   string `json:"permission"`
	ResourceType string `json:"resourceType"`
	ResourceName string `json:"resourceName"`
	PatternType  string `json:"patternType"`
	Sentence     string `json:"sentence" doc:"the rule in words"`
}

// WhyQuery asks whether someone may do something.
type WhyQuery struct {
	Principal string `query:"principal" doc:"as in User:alice, or alice"`
	Operation string `query:"operation" doc:"READ, WRITE …"`
	Resource  string `query:"resource" doc:"TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID"`
	Name      string `query:"name" doc:"of the resource; not of the cluster"`
	Host      string `query:"host" doc:"where they come from; if not given, only rules for any host count"`
}

// ACLWhy is whether someone may do something, and why.
type ACLWhy struct {
	Allowed  bool    `json:"allowed"`
	Sentence string  `json:"sentence" doc:"what was decided, and by which rule"`
	Rule     *ACLRow `json:"rule" doc:"the one that decides; null if none does"`
	Command  string  `json:"command,omitempty" doc:"the command that would allow it"`
}

// QuotaList is the quotas.
type QuotaList struct {
	Quotas []QuotaRow `json:"quotas" csv:"rows"`
}

// QuotaRow is the quotas of someone.
type QuotaRow struct {
	Entity []act.QuotaPart  `json:"entity" doc:"whose they are"`
	Values []act.QuotaValue `json:"values"`
}
