package console_test

import (
	"fmt"
	"testing"

	"muster/internal/assert"
	"muster/internal/words"
)

// Sentences have commands of any name in them, and a capital letter in it does not end one.
func testCommands(t *testing.T, p *page) {
	t.Helper()
	code := script(t, "src/format.ts", "format")
	for _, name := range []string{"billing", "Billing", "Orders.v2", "dots.", "comma,", "ALL", "my group", "My Group. Or", "it's", "a\nb", "-rf", "-A."} {
		first := words.Command("groups reset", name, "--topic", name+":0", "--shift-by", "1")
		last := words.Command("topics create", name)
		for _, text := range []string{
			"See it: %s. To skip it, stop the group, then: %s.", "Run at most 3, or: %s; the process comes again. Then: %s.", "Keep it: %s (and more, if it is set). Or: %s.",
		} {
			got := evaluate[[]string](t, p, code, "format.commandsIn("+quoted(fmt.Sprintf(text, first, last))+")")
			assert.True(t, len(got) == 2 && got[0] == first && got[1] == last, "%q: of %q and %q there are %q", name, first, last, got)
		}
	}
}

// What is typed for partitions is some of them, or nothing is done.
func testNumbers(t *testing.T, p *page) {
	t.Helper()
	code := script(t, "src/numbers.ts", "numbers") + `
const read = (text) => { try { return numbers.numbers(text).join(" ") } catch (e) { return "wrong: " + e.message } };
const fits = (text) => new RegExp("^(?:" + numbers.pattern + ")$", "v").test(text);
`
	for text, want := range map[string]string{"0": "0", "0, 2-4": "0 2 3 4", "7 3–5,3": "3 4 5 7", " 1 ,": "1", "2-2": "2", "10-12 9": "9 10 11 12"} {
		if got := evaluate[string](t, p, code, "read("+quoted(text)+")"); got != want || !evaluate[bool](t, p, code, "fits("+quoted(text)+")") {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for text, fits := range map[string]bool{"3-": false, "5-2": true, ",": false, "2-4-9": false, "-3": false, "1.5": false, "0 - 4": false, "x": false, "0-200000": true} {
		got := evaluate[string](t, p, code, "read("+quoted(text)+")")
		assert.True(t, len(got) >= 7 && got[:7] == "wrong: ", "%q is %q", text, got)
		assert.Equal(t, evaluate[bool](t, p, code, "fits("+quoted(text)+")"), fits, "whether the form takes %q", text)
	}
	assert.True(t, evaluate[bool](t, p, code, `fits("")`), "the form wants partitions even for all")
}
