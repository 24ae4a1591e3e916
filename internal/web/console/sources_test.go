package console

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"muster/internal/assert"
)

// sources calls see with every TypeScript file of the console.
func sources(t *testing.T, see func(name, text string)) {
	t.Helper()
	dir := os.DirFS("src")
	err := fs.WalkDir(dir, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".tsx") {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		see(name, string(text))
		return err
	})
	assert.Must(t, err)
}

// Commands are pasted into terminals, and names are anybody's choice: what is put into
// one is quoted.
func TestCommandsQuoteWhatIsPutIntoThem(t *testing.T) {
	command := regexp.MustCompile("`muster [^`]*`")
	put := regexp.MustCompile(`\$\{[^}]*\}`)
	found := 0
	sources(t, func(name, text string) {
		for _, c := range command.FindAllString(text, -1) {
			for _, p := range put.FindAllString(c, -1) {
				found++
				assert.True(t, strings.HasPrefix(p, "${f.quoted("), "%s: %s is not quoted in %s", name, p, c)
			}
		}
	})
	assert.True(t, found != 0, "no command has a name in it: this test looks for the wrong thing")
}
