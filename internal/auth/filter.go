package auth

import "strings"

// Filter says which rules someone means: all those for which every field is the
// rule's own, or stands for any.
type Filter struct {
	Type       ResourceType // AnyResource for all
	Pattern    PatternType  // AnyPattern for all; Match for those that match Name
	Name       *string      // nil for all
	Principal  *string      // nil for all; User:* is only the rule for everyone
	Host       *string      // nil for all; * is only the rule for all hosts
	Operation  Operation    // AnyOperation for all; ALL is only the rule for all
	Permission Permission   // AnyPermission for all
}

// Check says what DescribeAcls and DeleteAcls find wrong with a filter, and
// returns it in the one form in which it is compared with rules. Types that Kafka
// has and muster has no rules for are no error: there are none.
func (f Filter) Check() (Filter, error) {
	switch {
	case f.Type <= UnknownResource || f.Type > 7:
		return f, invalid("The filter has an unknown resource type")
	case f.Pattern <= UnknownPattern || f.Pattern > Prefixed:
		return f, invalid("The filter has an unknown pattern type")
	case f.Operation <= UnknownOperation || f.Operation >= operations:
		return f, invalid("The filter has an unknown operation")
	case f.Permission <= UnknownPermission || f.Permission > Allow:
		return f, invalid("The filter has an unknown permission type")
	}
	if f.Host != nil {
		host := canonicalHost(*f.Host)
		f.Host = &host
	}
	return f, nil
}

// Matches says whether the filter means a rule.
func (f Filter) Matches(r Rule) bool {
	same := func(want *string, is string) bool { return want == nil || *want == is }
	return (f.Type == AnyResource || f.Type == r.Type) && f.matchesPattern(r) &&
		same(f.Principal, string(r.Principal)) && same(f.Host, r.Host) &&
		(f.Operation == AnyOperation || f.Operation == r.Operation) &&
		(f.Permission == AnyPermission || f.Permission == r.Permission)
}

func (f Filter) matchesPattern(r Rule) bool {
	switch {
	case f.Pattern == Match && f.Name == nil:
		return true
	case f.Pattern == Match && r.Pattern == Prefixed:
		return strings.HasPrefix(*f.Name, r.Name)
	case f.Pattern == Match:
		return r.Name == *f.Name || r.Name == Wildcard
	case f.Pattern != AnyPattern && f.Pattern != r.Pattern:
		return false
	}
	return f.Name == nil || *f.Name == r.Name
}
