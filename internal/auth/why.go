package auth

import (
	"fmt"
	"strconv"
	"strings"
)

// Why is a decision for people.
type Why struct {
	Decision
	// Sentence says what was decided, and by what.
	Sentence string
	// Fix is the command that allows what was denied: it adds a rule, or removes
	// the one that denies. It is empty if nothing was denied, and if no rule can be
	// written for the resource. Where many rules deny, each takes a command.
	Fix string
}

// Why answers a request for people.
func (x *Index) Why(q Request) Why {
	d := x.Decide(q)
	w := Why{Decision: d}
	may, because := "may", ""
	if !d.Allowed {
		may, w.Fix = "may not", fix(q, d)
	}
	switch d.Reason {
	case BySuperUser:
		because = "a super user may do everything"
	case ByRule:
		because = "a rule says " + d.Rule.String()
		if op := d.Rule.Operation; op != q.Operation && op != All {
			because += fmt.Sprintf(", which includes %v", q.Operation)
		}
	case NoRule:
		because = fmt.Sprintf("no rule is about %s, and allow.everyone.if.no.acl.found is %t", resource(q.Type, q.Name), d.Allowed)
	case NoneMatches:
		because = fmt.Sprintf("%s has rules, and none allows this", resource(q.Type, q.Name))
	}
	if !d.Allowed && d.Reason != ByRule && q.needsName() {
		because = fmt.Sprintf("%s needs a rule that names it, and none allows this", resource(q.Type, q.Name))
	}
	w.Sentence = fmt.Sprintf("%s %s %v %s from %s: %s.", word(string(q.Principal)), may, q.Operation, resource(q.Type, q.Name), word(q.Host), because)
	return w
}

func fix(q Request, d Decision) string {
	if d.Reason == ByRule {
		return d.Rule.Command("remove")
	}
	r := Rule{
		Type: q.Type, Pattern: Literal, Name: q.Name, Principal: q.Principal, Host: AnyHost,
		Operation: q.Operation, Permission: Allow,
	}
	if q.Name == Wildcard {
		r.Pattern = Prefixed // Literal, it would allow every name there is.
	}
	if _, err := r.Check(); err != nil || strings.Contains(q.Name+string(q.Principal), "\x00") {
		return "" // There is no such rule, or no way to type it.
	}
	return r.Command("add")
}

// String says in words what the rule says.
func (r Rule) String() string {
	who, from := word(string(r.Principal)), "any host"
	if r.Principal == Everyone {
		who = "everyone"
	}
	if r.Host != AnyHost {
		from = word(r.Host)
	}
	on := resource(r.Type, r.Name)
	switch kind := plain(r.Type.String(), " "); {
	case r.Pattern == Prefixed:
		on = fmt.Sprintf("every %s that starts with %s", kind, word(r.Name))
	case r.Name == Wildcard:
		on = "every " + kind
	}
	return fmt.Sprintf("%v %s %v on %s from %s", r.Permission, who, r.Operation, on, from)
}

// Command returns the command line that does something with the rule:
//
//	muster acls add [--deny] [--prefixed] [--host H] USER OPERATION TYPE [NAME]
func (r Rule) Command(verb string) string {
	args := []string{"muster", "acls", verb}
	if r.Permission == Deny {
		args = append(args, "--deny")
	}
	if r.Pattern == Prefixed {
		args = append(args, "--prefixed")
	}
	if r.Host != AnyHost {
		args = append(args, "--host", quote(r.Host))
	}
	if strings.HasPrefix(r.Name, "-") {
		args = append(args, "--")
	}
	args = append(args, quote(r.Principal.short()), plain(r.Operation.String(), "-"), plain(r.Type.String(), "-"))
	if r.Type != Cluster {
		args = append(args, quote(r.Name))
	}
	return strings.Join(args, " ")
}

// plain writes TRANSACTIONAL_ID as people do.
func plain(name, between string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", between)
}

func resource(t ResourceType, name string) string {
	if t == Cluster {
		return "the cluster"
	}
	return plain(t.String(), " ") + " " + word(name)
}

// word writes a name into a sentence. Names come from clients, so what could be
// taken for the rest of the sentence, or for the next line, is quoted.
func word(s string) string {
	if isPlain(s) && len(s) <= 200 {
		return s
	}
	return strconv.Quote(shorten(s))
}

func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_-./:@%+=,", rune(c)) {
			return false
		}
	}
	return s != ""
}

// quote writes an argument of a command for a shell.
func quote(s string) string {
	if isPlain(s) {
		return s
	}
	for _, c := range s {
		if !strconv.IsPrint(c) {
			quoted := strconv.Quote(s)
			inside := strings.ReplaceAll(quoted[1:len(quoted)-1], "'", `\'`)
			return "$'" + strings.ReplaceAll(inside, `\"`, `"`) + "'"
		}
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
