package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/record"
)

// Limits of rules.
const (
	maxRules     = 20_000
	maxRuleBytes = 8 << 20 // of the strings in them together
	// maxCompared is how many rules one request to delete may compare with its filters,
	// while no other change can be made, and maxNamed and maxNamedBytes how many it may
	// name in its answer: each filter names all that it means.
	maxCompared   = 4_000_000
	maxNamed      = 2 * maxRules
	maxNamedBytes = 2 * maxRuleBytes
)

// CreateRules adds rules, each on its own. One that is there already is no error, as in
// Kafka.
func (c *Controller) CreateRules(ctx context.Context, rules []auth.Rule) (errs []error) {
	err := c.durably(ctx, func() error {
		image := c.image.Load()
		edit := image.Edit()
		errs = make([]error, len(rules))
		added := map[string]bool{}
		size := image.Rules.Size()
		var recs []record.Record
		for i, r := range rules {
			r, err := r.Check()
			if err != nil {
				errs[i] = refused(err)
				continue
			}
			id := r.ID()
			if image.Rules.Has(r) || added[id] {
				continue
			}
			if errs[i] = checkRuleRoom(image.Rules.Len()+len(added)+1, size+r.Size()); errs[i] != nil {
				continue
			}
			added[id] = true
			size += r.Size()
			edit.AddRule(r)
			recs = append(recs, ruleRecord(r))
		}
		if len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	return fill(errs, err)
}

func checkRuleRoom(rules, bytes int) error {
	switch {
	case rules > maxRules:
		return metadata.Refuse(kerr.PolicyViolation, "there are %d rules already, which is the limit", maxRules)
	case bytes > maxRuleBytes:
		return metadata.Refuse(kerr.PolicyViolation, "the rules would take %d bytes, which is more than %d", bytes, maxRuleBytes)
	}
	return nil
}

// refused gives an error about a rule or filter the form that all errors of changes have.
func refused(err error) error {
	var r *auth.Refused
	if errors.As(err, &r) {
		return &metadata.Refused{Code: r.Code, Msg: r.Msg}
	}
	return err
}

// DeleteRules deletes the rules that filters mean, and returns them by filter. A rule that
// several filters mean is returned for each, as in Kafka.
func (c *Controller) DeleteRules(ctx context.Context, filters []auth.Filter) (deleted [][]auth.Rule, errs []error) {
	err := c.durably(ctx, func() error {
		image := c.image.Load()
		edit := image.Edit()
		deleted, errs = make([][]auth.Rule, len(filters)), make([]error, len(filters))
		gone := map[string]bool{}
		room := search{index: image.Rules}
		var recs []record.Record
		for i, f := range filters {
			if deleted[i], errs[i] = room.find(f); errs[i] != nil {
				continue
			}
			for _, r := range deleted[i] {
				if id := r.ID(); !gone[id] {
					gone[id] = true
					edit.RemoveRule(id)
					recs = append(recs, tombstone(keyRulePrefix+id))
				}
			}
		}
		if len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	if err != nil {
		clear(deleted)
	}
	return deleted, fill(errs, err)
}

// search finds rules as long as there is room for it.
type search struct {
	index                  *auth.Index
	compared, named, bytes int
}

func (s *search) find(f auth.Filter) ([]auth.Rule, error) {
	f, err := f.Check()
	if err != nil {
		return nil, refused(err)
	}
	found, exact := s.exactly(f)
	if !exact {
		if s.compared += s.index.Len(); s.compared > maxCompared {
			return nil, metadata.Refuse(kerr.InvalidRequest, "one request may not have so many filters that leave something open")
		}
		found = s.index.Rules(f)
	}
	s.named += len(found)
	for _, r := range found {
		s.bytes += r.Size()
	}
	if s.named > maxNamed || s.bytes > maxNamedBytes {
		return nil, metadata.Refuse(kerr.InvalidRequest, "the filters of one request may not mean so many rules")
	}
	return found, nil
}

// exactly finds the rule of a filter that leaves nothing open, as those of tools that
// remove one rule, without a look at all others.
func (s *search) exactly(f auth.Filter) (found []auth.Rule, exact bool) {
	if f.Name == nil || f.Principal == nil || f.Host == nil {
		return nil, false
	}
	r, err := auth.Rule{
		Type: f.Type, Pattern: f.Pattern, Name: *f.Name, Principal: auth.Principal(*f.Principal), Host: *f.Host,
		Operation: f.Operation, Permission: f.Permission,
	}.Check()
	if err != nil { // Something in it stands for any, or there can be no such rule.
		return nil, false
	}
	if s.index.Has(r) {
		found = []auth.Rule{r}
	}
	return found, true
}

func ruleRecord(r auth.Rule) record.Record {
	return record.Record{Key: []byte(keyRulePrefix + r.ID()), Value: r.Value()}
}

func applyRule(edit *metadata.Edit, id string, r *record.Record) error {
	if r.Tombstone() {
		edit.RemoveRule(id)
		return nil
	}
	rule, err := auth.DecodeRule(id, r.Value)
	if err != nil {
		return err
	}
	edit.AddRule(rule)
	return nil
}
