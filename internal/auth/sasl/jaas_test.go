package sasl

import (
	"reflect"
	"strings"
	"testing"
)

func TestJAASLines(t *testing.T) {
	const module = "org.apache.kafka.common.security.plain.PlainLoginModule"
	for _, c := range []struct {
		line string
		want map[string]string
	}{
		{module + ` required username="admin" password="a b" user_admin="a b" user_alice='it"s';`,
			map[string]string{"admin": "a b", "alice": `it"s`}},
		{" \n" + module + "\n  Required\n  user_a=word-1_2.3$\n;\n", map[string]string{"a": "word-1_2.3$"}},
		{module + ` required user_a="q\"\\\t\x";`, map[string]string{"a": "q\"\\\tx"}},
		{module + ` required // user_x="y";` + "\n" + `/* user_z="w" */ user_a="//no comment /* here */";`,
			map[string]string{"a": "//no comment /* here */"}},
		{module + ` required user_ünï="pässwörd" user_="nobody" users_x="y" "user_quoted key"="v";`,
			map[string]string{"ünï": "pässwörd", "quoted key": "v"}},
		{module + ` optional;`, map[string]string{}},
	} {
		modules, err := ParseJAAS(c.line)
		if err != nil || len(modules) != 1 {
			t.Errorf("%s: %d modules, %v", c.line, len(modules), err)
			continue
		}
		if got := modules[0].Passwords(); !reflect.DeepEqual(got, c.want) || modules[0].Name != module {
			t.Errorf("%s: %q of %s", c.line, got, modules[0].Name)
		}
	}
	if modules, err := ParseJAAS("a.B required x=y; c.D sufficient;"); err != nil || len(modules) != 2 || modules[1].Flag != "sufficient" {
		t.Errorf("two modules: %v, %v", modules, err)
	}
	if modules, err := ParseJAAS(" // nothing"); err != nil || len(modules) != 0 {
		t.Errorf("nothing: %v, %v", modules, err)
	}
}

// What is wrong with a line is said without the line: it holds passwords.
func TestMalformedJAASLinesAreRefusedWithoutRepeatingThem(t *testing.T) {
	for _, line := range []string{
		`hunter2`,
		`hunter2 hunter2 a="b";`,
		`m required user_a="hunter2"`,
		`m required user_a="hunter2`,
		`m required user_a="hunter2` + "\n" + `";`,
		`m required user_a="hunter2\`,
		`m required user_a="hunter2\101";`,
		`m required user_a=;`,
		`m required user_a "hunter2";`,
		`m required ="hunter2";`,
		`m required user_a=hunter2!;`,
		`m required user_a=hunter2 user_a=hunter2;`,
		`m required user_a={hunter2};`,
		`m required /* hunter2`,
		`"m" required;`,
		`; m required;`,
		`m required; hunter2`,
		"m required user_a=\"hunter2\xff\";",
		"m required;" + strings.Repeat(" ", maxJAAS),
	} {
		modules, err := ParseJAAS(line)
		if err == nil {
			t.Errorf("%.60s: accepted as %v", line, modules)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60s: the error repeats the password: %v", line, err)
		}
	}
}
