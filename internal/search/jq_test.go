package search

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func jqOf(t *testing.T, text, value string) (found bool, result string, err error) {
	t.Helper()
	f := aFilter(t, Spec{JQ: text})
	r := &Record{Partition: 3, Offset: 1 << 60, Timestamp: 1000, Key: []byte("k"), Value: []byte(value), Headers: []Header{{"h", []byte("v")}}}
	return f.match(r, time.Now().Add(time.Hour))
}

func TestJQFindsWhatItSays(t *testing.T) {
	const value = `{"a":1,"b":[1,2,{"c":"Text"}],"n":9007199254740993,"s":"x,y","o":{"p":null}}`
	for text, want := range map[string]string{
		".value.a == 1": "true", ".value.a > 1": "", ".value.a + 1": "2", `.value.s + "z"`: `"x,yz"`, ".value.b | length": "3",
		".value.b[2].c | ascii_downcase": `"text"`, `.value.b[2].c | test("^te"; "i")`: "true", ".value.n": "9007199254740993", ".value.n == 9007199254740992": "",
		`.key == "k" and .partition == 3`: "true", ".offset == 1152921504606846976": "true", ".headers.h": `"v"`, `.value | has("a")`: "true", `.value | contains({b: [{c: "ex"}]})`: "true",
		".value.missing": "", "empty": "", ".value.b | map(numbers) | add": "3", ".value.b[0:2] | max": "2", `.value.s | split(",")`: `["x","y"]`, ".value.o.p // 7": "7",
		"if .value.a == 1 then {x: .value.a} else false end": `{"x":1}`, `[.value.b[] | select(type == "number")]`: "[1,2]", ".value.a as $x | $x * 2": "2", `"5" | tonumber`: "5",
		".value.o | tojson": `"{\"p\":null}"`, `"[1]" | fromjson | .[0]`: "1", "[..] | length > 3": "true", "1 < 2, false": "true", ".value.a - 3": "-2", ".value.a / 2": "0.5", "7 % 4": "3",
		".value.o | keys": `["p"]`, ".value | keys": `["a","b","n","o","s"]`, ".value.b | keys": "[0,1,2]", ".value.o | to_entries": `[{"key":"p","value":null}]`, ".value.b[0:2] | to_entries": `[{"key":0,"value":1},{"key":1,"value":2}]`,
		"[.value.b[2][]]": `["Text"]`, "[.value.b[].c?]": `["Text"]`, "[.value | .o[], .b[]]": `[null,1,2,{"c":"Text"}]`, "[.value.s[]?]": "[]", `try .value.a[] catch "no"`: `"no"`, `[.value.b[] as $x | $x | .[]?]`: `["Text"]`, "[.value[]] | length": "5",
		".value.b | any(. == 2)": "true", ".value.b | all(. == 2)": "", ".value.b | any": "true", "[.value.o[]] | all": "", ".value.b | map(type)": `["number","number","object"]`, ".value.o | map(type)": `["null"]`, "[.value.b | ..] | length": "5", "[.value.b | recurse] | length": "5",
		"[[.value.b][][0:2][]]": "[1,2]", `[.value.b[2:][].c]`: `["Text"]`, "[[[1,[2]]][][1][]]": "[2]",
	} {
		found, result, err := jqOf(t, text, value)
		if found && result == "" {
			result = "true"
		}
		if err != nil || result != want || found != (want != "") {
			t.Errorf("%s: %v %q %v, want %q", text, found, result, err, want)
		}
	}
}

// No expression reads what is not the record, or changes or defines anything.
func TestJQIsRefusedWhatItDoesNotNeed(t *testing.T) {
	for _, text := range []string{
		"env", "$ENV", "$ENV.PATH", "{$ENV}", "input", "inputs", "debug", "stderr", "input_filename", "halt", "halt_error", "error", `error("x")`, "def f: f; f", "reduce .[] as $x (0; .+$x)", "foreach .[] as $x (0; .+$x)",
		"label $x | break $x", `import "a" as a; .`, `include "a"; .`, ". = 1", ".a |= 2", ".a += 1", "@base64", `"\(.)"`, `{"\(.)": 1}`, "setpath([1e8]; 1)", "[limit(3; repeat(1))] | combinations", "sort", "group_by(.a)", "walk(.)",
		".[.a]", ".[[1]]", ". as [$a] | $a", "getpath([1])", "$__loc__", "splits(\"a\")", "gsub(\"a\"; \"b\")", "ltrimstr(env)", "map(env)", "[.[] | env]", "if env then 1 else 2 end", "try env", ".a[env]?", "(env)", "-env", "{a: env}", "{(env): 1}", "99999999999999999999999999999999",
		strings.Repeat("(", 2000), strings.Repeat(".|", 2000) + ".",
	} {
		if _, err := NewFilter(&Spec{JQ: text}, time.Now); err == nil {
			t.Errorf("%q is taken", text[:min(len(text), 40)])
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever an expression does, it ends, and takes no more than it may.
func TestJQThatNeverEndsOrGrowsIsStopped(t *testing.T) {
	for _, text := range []string{
		"[range(1e9)]", "[repeat(1)]", "last(range(1e12))", "[recurse([.,.])]", "until(false; .)", `"x" * 2000000000`, `"x" | until(false; . + .)`, "[1] | until(false; . + .)", `{a:1} | until(false; . + {b: .})`,
		`[limit(40; 1 | recurse([., .]))] | last | tojson`, "[limit(40; 1 | recurse([., .]))] | last | . == .", "[limit(40; 1 | recurse([., .]))] | last as $x | $x | contains($x)", "[limit(40; 1 | recurse([., .]))] | last | [..] | length",
		"9999999999999999 | until(false; . * .)", "[limit(40; 1 | recurse([., .]))] | last", `[repeat("abc" | ascii_upcase)]`, `[limit(60; 1 | recurse({a: ., b: .}))] | last | [., .] | max`,
	} {
		began := time.Now()
		found, result, err := jqOf(t, text, "{}")
		if took := time.Since(began); took > time.Minute || len(result) > maxResult+10 {
			t.Errorf("%s took %v and made %d bytes", text, took, len(result))
		}
		if err == nil && result == "" && !found {
			t.Errorf("%s: nothing was said", text)
		}
	}
}

// The question mark after .[] is about that alone, and not about what is before it.
func TestJQFailsBeforeWhatItGoesThrough(t *testing.T) {
	for _, text := range []string{".value.a.b[]?", ".value[]", ".value | keys", ".value | to_entries", ".value | map(1)", ".value | any"} {
		if _, _, err := jqOf(t, text, `"text"`); err == nil {
			t.Errorf("%s does not fail", text)
		}
	}
}

// To go through a list takes no memory, however often, and whoever is still on the way.
func TestJQGoesThroughListsAsTheyAre(t *testing.T) {
	value := map[string]any{"value": append([]any{false, true}, make([]any, 1<<18)...)}
	for _, text := range []string{
		"first(.value[])", "first(.value[]?)", "first(.value | .[])", ".value | any", ".value | all", ".value | any(not)", ".value | all(.)", ".value | map(startswith(1))",
		"[limit(2; .value | ..)] | length", "[limit(2; .value | recurse)] | length", ".value as $v | [limit(4; 1 | recurse($v[]))] | length",
	} {
		j, err := newJQ(text)
		if err != nil {
			t.Fatal(err)
		}
		j.maker.left = maxMakes
		if n := testing.AllocsPerRun(1, func() { j.code.Run(value).Next() }); n > 1<<16 {
			t.Errorf("%s allocates %.0f times", text, n)
		}
	}
}

// What makes lists of values is bounded by how much that is.
func TestJQMakesNoMoreThanItMay(t *testing.T) {
	list, object := make([]any, 1<<18), map[string]any{}
	for i := range 1 << 14 {
		object[strconv.Itoa(i)] = nil
	}
	value := map[string]any{"list": list, "object": object}
	for _, text := range []string{
		".list as $v | [range(3) | $v | keys]", ".object as $v | [range(40) | $v | keys]", ".object as $v | [range(40) | $v | first(.[])]",
		".object as $v | range(40) | $v | keys | empty", ".list | (keys, keys | empty), to_entries",
	} {
		j, err := newJQ(text)
		if err != nil {
			t.Fatal(err)
		}
		j.maker.left = maxMakes
		if got, _ := j.code.Run(value).Next(); got != errLarge {
			t.Errorf("%s: %.100v", text, got)
		}
	}
}

func FuzzJQ(f *testing.F) {
	for _, text := range []string{".value.a > 1", "[.[]|select(.a)]", "env", "def f: f; f", "[range(1e9)]", `"\(.)"`, "{a:1}|.a", ". as $x | $x", "try error"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := NewFilter(&Spec{JQ: text}, time.Now)
		if err != nil {
			return
		}
		_, result, _ := filter.match(&Record{Value: []byte(`{"a":[1,"x",null]}`)}, time.Now().Add(time.Hour))
		if len(result) > maxResult+10 {
			t.Errorf("%q made %d bytes", text, len(result))
		}
	})
}
