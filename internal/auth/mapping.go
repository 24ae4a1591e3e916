package auth

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mapping is ssl.principal.mapping.rules: it makes principals of the names of
// certificates. The first rule that matches a whole name decides.
//
//	RULE:pattern/replacement/[LU]   L and U change the case of the result
//	DEFAULT                         the name itself
type Mapping struct{ rules []mappingRule }

type mappingRule struct {
	isDefault   bool
	expression  expression
	replacement []piece
	change      byte // 'L', 'U' or nothing
}

// maxMapped bounds the names that rules are tried on, because what Java's way to
// replace takes grows by the square of a name.
const maxMapped = 4096

// ParseMapping reads rules that stand between commas. What Kafka would refuse at
// start, or at each connection, is refused here, and so are regular expressions
// that Go has not, or understands in another way than Java.
func ParseMapping(s string) (*Mapping, error) {
	m := new(Mapping)
	for rest := strings.TrimSpace(s); rest != ""; {
		rest = strings.TrimLeft(rest, " \t\r\n")
		text := rest
		r, after, err := parseRule(rest)
		if err == nil {
			rest, err = toNextRule(after)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %q", err, shorten(text))
		}
		if r != nil {
			m.rules = append(m.rules, *r)
		}
	}
	if len(m.rules) == 0 {
		return nil, errors.New("there is no rule, so no client would have a principal")
	}
	return m, nil
}

// parseRule reads one rule and returns what follows. An empty rule is none.
func parseRule(s string) (*mappingRule, string, error) {
	if after, ok := strings.CutPrefix(s, "DEFAULT"); ok {
		return &mappingRule{isDefault: true}, after, nil
	}
	if s == "" || s[0] == ',' {
		return nil, s, nil
	}
	s, ok := strings.CutPrefix(s, "RULE:")
	if !ok {
		return nil, "", errors.New("a rule is DEFAULT or RULE:pattern/replacement/[LU]")
	}
	pattern, s, ok := cutSlash(s)
	replacement, s, ok2 := cutSlash(s)
	if !ok || !ok2 {
		return nil, "", errors.New("a rule is RULE:pattern/replacement/[LU], with \\/ for a slash in its parts")
	}
	r := new(mappingRule)
	var err error
	if r.expression, err = compile(pattern); err != nil {
		return nil, "", err
	}
	if r.replacement, err = parseReplacement(replacement, r.expression.first); err != nil {
		return nil, "", err
	}
	if s != "" && (s[0] == 'L' || s[0] == 'U') {
		r.change, s = s[0], s[1:]
	}
	return r, s, nil
}

func toNextRule(s string) (string, error) {
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" {
		return s, nil
	}
	after, ok := strings.CutPrefix(s, ",")
	if !ok {
		return "", fmt.Errorf("a comma is missing before %q", shorten(s))
	}
	return after, nil
}

// cutSlash cuts at the first slash that no backslash precedes.
func cutSlash(s string) (before, after string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '/':
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// piece of a replacement: text, or what a group matched.
type piece struct {
	text  string
	group int // none for text
}

// parseReplacement reads a replacement as Java does, and as Kafka corrects it: a
// group that is not there is plain text, if there is any group at all.
func parseReplacement(s string, re *regexp.Regexp) ([]piece, error) {
	var out []piece
	text := func(c string) { out = append(out, piece{text: c, group: none}) }
	for s != "" {
		switch {
		case s[0] == '\\' && len(s) > 1:
			_, size := utf8.DecodeRuneInString(s[1:])
			text(s[1 : 1+size])
			s = s[1+size:]
		case s[0] != '$':
			n := strings.IndexAny(s, `\$`)
			if n <= 0 {
				n = len(s)
			}
			text(s[:n])
			s = s[n:]
		case strings.HasPrefix(s, "${"):
			name, after, ok := strings.Cut(s[2:], "}")
			group := re.SubexpIndex(name)
			if !ok || group < 0 {
				return nil, fmt.Errorf("the replacement has %q, and the pattern has no such group", shorten(s))
			}
			out = append(out, piece{group: group})
			s = after
		case len(s) == 1 || s[1] < '0' || s[1] > '9':
			return nil, fmt.Errorf(`a $ in the replacement stands before the number of a group; write \$ for the sign itself`)
		case int(s[1]-'0') > re.NumSubexp() && re.NumSubexp() == 0:
			return nil, fmt.Errorf("the replacement has %q, and the pattern has no group", s[:2])
		case int(s[1]-'0') > re.NumSubexp():
			text(s[:2])
			s = s[2:]
		default:
			group, n := int(s[1]-'0'), 2
			for n < len(s) && s[n] >= '0' && s[n] <= '9' && group*10+int(s[n]-'0') <= re.NumSubexp() {
				group, n = group*10+int(s[n]-'0'), n+1
			}
			out = append(out, piece{group: group})
			s = s[n:]
		}
	}
	return out, nil
}

// Principal returns the principal of a certificate's name.
func (m *Mapping) Principal(name string) (Principal, error) {
	user, err := m.Name(name)
	if err != nil {
		return "", err
	}
	return User(user), nil
}

// Name makes the name of a user of another name.
func (m *Mapping) Name(name string) (string, error) {
	if len(name) > maxMapped {
		return "", fmt.Errorf("the name has %d bytes, more than %d", len(name), maxMapped)
	}
	for i := range m.rules {
		user, ok, err := m.rules[i].apply(name)
		switch {
		case err != nil:
			return "", err
		case ok && user == "":
			return "", fmt.Errorf("nothing is left of the name, %q", shorten(name))
		case ok:
			return user, nil
		}
	}
	return "", fmt.Errorf("no rule matches the name, %q", shorten(name))
}

func (r *mappingRule) apply(name string) (string, bool, error) {
	if r.isDefault {
		return name, true, nil
	}
	if !r.expression.whole.MatchString(name) {
		return "", false, nil
	}
	user := r.expression.replaceAll(name, r.replacement)
	switch r.change {
	case 'L':
		return changed(user, strings.ToLower, noSimpleLower)
	case 'U':
		return changed(user, strings.ToUpper, noSimpleUpper)
	}
	return user, true, nil
}
