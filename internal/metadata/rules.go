package metadata

import (
	"muster/internal/auth"
	"muster/internal/metadata/config"
)

// The broker settings that decide whether there are rights and who has all of them.
const (
	authorizerSetting    = "authorizer.class.name"
	superUsersSetting    = "super.users"
	allowEveryoneSetting = "allow.everyone.if.no.acl.found"
)

// Authorizes says whether rules count: whether authorizer.class.name is set.
func (i *Image) Authorizes() bool { return i.authorizes }

// Asker is who asks for something, as rules name them. The zero one is no one.
type Asker struct {
	Principal auth.Principal
	Groups    auth.Groups
	// Host is in the form of auth.Host.
	Host string
}

// Shows says whether someone may know that a topic is there.
func (i *Image) Shows(topic string, to Asker) bool {
	return !i.authorizes || i.Rules.Allows(auth.Request{Principal: to.Principal, Groups: to.Groups, Host: to.Host, Operation: auth.Describe, Type: auth.Topic, Name: topic})
}

// MayCreate says whether someone may create a topic.
func (i *Image) MayCreate(topic string, who Asker) bool {
	if !i.authorizes {
		return true
	}
	q := auth.Request{Principal: who.Principal, Groups: who.Groups, Host: who.Host, Operation: auth.Create, Type: auth.Topic, Name: topic}
	if i.Rules.Allows(q) {
		return true
	}
	q.Type, q.Name = auth.Cluster, auth.ClusterName
	return i.Rules.Allows(q)
}

// CheckPolicy says what is wrong with the settings about rights.
func CheckPolicy(b *config.Broker) error {
	_, err := policy(b)
	return err
}

// authorization returns whether rules count, and an index without rules. The settings
// are read at start and cannot be altered.
func authorization(b *config.Broker) (bool, *auth.Index) {
	// Who could not be read is no super user. The broker does not start then.
	p, _ := policy(b)
	return b.Get(authorizerSetting) != "", auth.New(p)
}

func policy(b *config.Broker) (p auth.Policy, err error) {
	p.AllowEveryone = b.Bool(allowEveryoneSetting)
	p.SuperUsers, err = auth.ParseSuperUsers(b.Get(superUsersSetting))
	if name, _, ok := b.BootstrapUser(); ok {
		p.SuperUsers = append(p.SuperUsers, auth.User(name))
	}
	return p, err
}

// AddRule adds a rule that its Check returned. One that is there stays.
func (e *Edit) AddRule(r auth.Rule) { e.editRules().Add(r) }

// RemoveRule removes the rule with that id if it is there.
func (e *Edit) RemoveRule(id string) { e.editRules().RemoveID(id) }

func (e *Edit) editRules() *auth.Edit {
	if e.rules == nil {
		e.rules = e.next.Rules.Edit()
	}
	return e.rules
}
