package auth

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Refused is an error for the one who asked: Kafka's code, and a sentence.
type Refused struct {
	Code *kerr.Error
	Msg  string
}

func (e *Refused) Error() string { return e.Msg }

// Unwrap returns the code.
func (e *Refused) Unwrap() error { return e.Code }

func invalid(format string, args ...any) error {
	return &Refused{Code: kerr.InvalidRequest, Msg: fmt.Sprintf(format, args...)}
}

// Rule is one ACL: someone, from some host, may or may not do something with the
// resources that a pattern matches. Two rules that are equal are the same rule.
type Rule struct {
	Type       ResourceType `json:"type"`
	Pattern    PatternType  `json:"pattern"`
	Name       string       `json:"name"`
	Principal  Principal    `json:"principal"`
	Host       string       `json:"host"`
	Operation  Operation    `json:"operation"`
	Permission Permission   `json:"permission"`
}

// maxText bounds the strings of a rule, in bytes: what Kafka's older versions can
// say in a string. Newer ones could say megabytes.
const maxText = 1<<15 - 1

// Check says what CreateAcls finds wrong with a rule, and returns the rule in the
// one form in which the index knows it. The order and the words are Kafka's where
// Kafka checks; it does not look at hosts, nor at what cannot be written down.
func (r Rule) Check() (Rule, error) {
	switch {
	case r.Type == Cluster && r.Name != ClusterName:
		return r, invalid("The only valid name for the CLUSTER resource is %s", ClusterName)
	case r.Name == "":
		return r, invalid("Invalid empty resource name")
	case r.Type == 6 || r.Type == 7:
		return r, invalid("Invalid resourceType %d: there are no delegation tokens", r.Type)
	case r.Type <= AnyResource || r.Type >= resourceTypes:
		return r, invalid("Invalid resourceType %v", r.Type)
	case r.Pattern != Literal && r.Pattern != Prefixed:
		return r, invalid("Invalid patternType %v", r.Pattern)
	case r.Operation <= AnyOperation || r.Operation >= operations:
		return r, invalid("Invalid operation %v", r.Operation)
	case r.Permission != Deny && r.Permission != Allow:
		return r, invalid("Invalid permissionType %v", r.Permission)
	case !strings.Contains(string(r.Principal), ":"):
		return r, invalid("Could not parse principal from `%s` (no colon is present separating the principal type from the principal name)", shorten(string(r.Principal)))
	case r.Host == "":
		return r, invalid("Invalid empty host: %s stands for all hosts", AnyHost)
	}
	for _, s := range []string{r.Name, string(r.Principal), r.Host} {
		if len(s) > maxText || !utf8.ValidString(s) {
			return r, invalid("a name, principal or host has at most %d bytes and is valid UTF-8, which %q is not", maxText, shorten(s))
		}
	}
	r.Host = canonicalHost(r.Host)
	return r, nil
}

// Size returns how many bytes the strings of the rule take.
func (r Rule) Size() int { return len(r.Name) + len(r.Principal) + len(r.Host) }

func shorten(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// compare is the order in which rules are listed: by resource first, because
// DescribeAcls answers by resource.
func compare(a, b Rule) int {
	return cmp.Or(
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pattern, b.Pattern),
		cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Host, b.Host),
		cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Permission, b.Permission),
	)
}

// ID names the rule in the key of its record. It is made of the rule itself, so
// that two brokers that add the same rule at once add it once. What it is made of
// must never change: lengths come first, so that no two rules are the same bytes.
func (r Rule) ID() string {
	b := fmt.Appendf(nil, "%d %d %d %d %d %d ", r.Type, r.Pattern, r.Operation, r.Permission, len(r.Name), len(r.Principal))
	b = append(append(append(b, r.Name...), r.Principal...), r.Host...)
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Value returns the rule as the value of its record.
func (r Rule) Value() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("a rule is plain data: " + err.Error())
	}
	return b
}

// DecodeRule reads a rule from the id and the value of its record.
func DecodeRule(id string, value []byte) (Rule, error) {
	var r Rule
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("rule %q: %w", id, err)
	}
	checked, err := r.Check()
	switch {
	case err != nil:
		return r, fmt.Errorf("rule %q: %w", id, err)
	case checked.ID() != id:
		return r, fmt.Errorf("rule %q: what it says has the id %q", id, checked.ID())
	}
	return checked, nil
}

// MarshalText writes the name.
func (t ResourceType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the name.
func (t *ResourceType) UnmarshalText(b []byte) (err error) {
	*t, err = ParseResourceType(string(b))
	return err
}

// MarshalText writes the name.
func (t PatternType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the name.
func (t *PatternType) UnmarshalText(b []byte) (err error) {
	*t, err = ParsePatternType(string(b))
	return err
}

// MarshalText writes the name.
func (o Operation) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name.
func (o *Operation) UnmarshalText(b []byte) (err error) {
	*o, err = ParseOperation(string(b))
	return err
}

// MarshalText writes the name.
func (p Permission) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name.
func (p *Permission) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePermission(string(b))
	return err
}
