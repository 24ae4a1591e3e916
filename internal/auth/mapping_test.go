package auth

import (
	"strings"
	"testing"

	"muster/internal/assert"
)

func TestWhatGoCannotMatchAsJavaDoesFailsAtStart(t *testing.T) {
	for pattern, want := range map[string]string{
		`CN=(?=a).*`:       "look-ahead",
		`CN=(?!a).*`:       "look-ahead",
		`CN=(?<=a).*`:      "look-behind",
		`CN=(?<!a).*`:      "look-behind",
		`CN=(?>a|b).*`:     "backtracking",
		`(?i)cn=(.*)`:      "flags",
		`(?s:.*)`:          "flags",
		`(?P<x>a)`:         "flags",
		`CN=(a)\1`:         "back-reference",
		`CN=\012`:          "back-reference or an octal number",
		`CN=(?<x>a)\k<x>`:  `\k`,
		`CN=\h+`:           `\h`,
		`CN=\v`:            `\v`,
		`CN=\Z`:            `\Z`,
		`CN=\R`:            `\R`,
		"CN=\\u0041":       `\u`,
		`CN=[a\S]`:         `\S`,
		`CN=[\Qa\E]`:       `\Q`,
		`CN=a*+`:           "possessive",
		`CN=a++`:           "possessive",
		`CN=a?+`:           "possessive",
		`CN=a{2}+`:         "possessive",
		`CN=[a-z&&[^b]]`:   "intersections",
		`CN=[a[bc]]`:       "classes within",
		`CN=[[:alpha:]]`:   "classes within",
		`CN=[]a]`:          `write \]`,
		`CN=[^]a]`:         `write \]`,
		`CN=\p{Alpha}`:     "possessive",
		`CN=\p{IsLatin}`:   "possessive",
		`CN=(`:             "missing closing",
		`CN=)(`:            "unexpected )",
		`CN=a)|(b`:         "unexpected )",
		`CN=[a`:            "missing closing",
		`CN=(a{1000}){10}`: "invalid repeat",
	} {
		_, err := ParseMapping("RULE:" + pattern + "/x/")
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v, not %q", pattern, err, want)
	}
}

func TestOddMappingRulesFailAtStart(t *testing.T) {
	for rules, want := range map[string]string{
		"": "there is no rule", " , ,": "there is no rule", "x": "a rule is DEFAULT or RULE", "DEFAULTS": "a comma is missing", "DEFAULT DEFAULT": "a comma is missing",
		"RULE:a/b": `RULE:pattern/replacement/[LU]`, "RULE:a": `RULE:pattern/replacement/[LU]`, `RULE:a\/b/`: `RULE:pattern/replacement/[LU]`,
		"RULE:a/b/Q": "a comma is missing", "RULE:a/$1/": "no group", "RULE:(a)/$/": "before the number", "RULE:(a)/$x/": "before the number",
		"RULE:(a)/${x}/": "no such group", "RULE:(?<x>a)/${x/": "no such group", `RULE:a\`: "RULE:pattern",
	} {
		if _, err := ParseMapping(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", rules, err, want)
		}
	}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	m, err := ParseMapping(`RULE:^CN=(.*?),OU=a.*$/$1/L , RULE:^CN=(.*?),OU=b,.*$/$1@b/U, RULE:^OU=none$//, DEFAULT`)
	assert.Must(t, err)
	for name, want := range map[string]Principal{
		"CN=Al,OU=a,O=x": "User:al", "CN=Al,OU=b,O=x": "User:AL@B", "CN=Al,OU=c,O=x": "User:CN=Al,OU=c,O=x", "O=x,CN=Al,OU=a": "User:O=x,CN=Al,OU=a",
	} {
		if got, err := m.Principal(name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"": "nothing is left", "OU=none": "nothing is left", "CN=Straße,OU=b,O=x": "no simple other case", "CN=" + strings.Repeat("x", maxMapped): "more than 4096",
	} {
		if got, err := m.Principal(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v", shorten(name), got, err)
		}
	}
	if m, err = ParseMapping(`RULE:^CN=(.*)$/$1/`); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Principal("OU=x"); err == nil || !strings.Contains(err.Error(), `no rule matches the name, "OU=x"`) {
		t.Errorf("%s, %v", got, err)
	}
}

func FuzzMapping(f *testing.F) {
	f.Add("DEFAULT", "CN=alice,OU=x")
	f.Add(`RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,RULE:(.*)/<$1$2>/`, "CN=Zoë,OU=ServiceUsers")
	f.Add(`RULE:(?<a>[\w\s.]*?)\/\Qx\E|./${a}\$/U`, "a/x")
	f.Fuzz(func(t *testing.T, rules, name string) {
		m, err := ParseMapping(rules)
		if err != nil {
			return
		}
		p, err := m.Principal(name)
		assert.MustFalse(t, err == nil && (p == "User:" || !strings.HasPrefix(string(p), "User:")), "%q makes %q of %q", rules, p, name)
	})
}
