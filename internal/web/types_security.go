package web

import "muster/internal/web/act"

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

// WhyQuery asks whether somebody may do something.
type WhyQuery struct {
	Principal string `query:"principal" doc:"as in User:alice, or alice"`
	Operation string `query:"operation" doc:"READ, WRITE …"`
	Resource  string `query:"resource" doc:"TOPIC, GROUP, CLUSTER or TRANSACTIONAL_ID"`
	Name      string `query:"name" doc:"of the resource; not of the cluster"`
	Host      string `query:"host" doc:"where they come from; if not given, only rules for any host count"`
}

// ACLWhy is whether somebody may do something, and why.
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

// QuotaRow is the quotas of somebody.
type QuotaRow struct {
	Entity []act.QuotaPart  `json:"entity" doc:"whose they are"`
	Values []act.QuotaValue `json:"values"`
}
