package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"muster/internal/assert"
)

func TestPasswordsThatOthersCanReadAreWarnedOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the mode of a file does not tell who can read it")
	}
	folder := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		assert.Must(t, os.WriteFile(path, []byte(text), mode))
		if err := os.Chmod(path, mode); err != nil { // Whatever the mask is.
			t.Fatal(err)
		}
		return path
	}
	secret := "muster.bootstrap.user=ann:sesame\n"
	for _, c := range []struct {
		f    serveFlags
		want string // in the warning; none if empty
	}{
		{serveFlags{set: []string{"num.partitions=1"}}, ""},
		{serveFlags{set: []string{"muster.bootstrap.user=ann:sesame"}}, "--set muster.bootstrap.user"},
		{serveFlags{set: []string{"listener.name.a.plain.sasl.jaas.config=sesame"}}, "--set listener.name.a.plain"},
		{serveFlags{set: []string{"muster.bootstrap.user=ann:${env:PW}"}}, ""},
		{serveFlags{store: "redis://ann:sesame@127.0.0.1:6379"}, "the password in --store"},
		{serveFlags{store: "redis://:sesame@127.0.0.1:6379/2"}, "the password in --store"},
		{serveFlags{store: "redis+sentinel://127.0.0.1:26379/main?sentinel_password=sesame"}, "the password in --store"},
		{serveFlags{store: "redis://ann:${env:PW}@127.0.0.1:6379"}, ""},
		{serveFlags{store: "redis://127.0.0.1:6379"}, ""},
		{serveFlags{config: file("open", secret, 0o644)}, "open has passwords"},
		{serveFlags{config: file("odd", secret, 0o604)}, "odd has passwords"},
		{serveFlags{config: file("closed", secret, 0o600)}, ""},
		{serveFlags{config: file("group", secret, 0o640)}, ""},
		{serveFlags{config: file("none", "num.partitions=1\n", 0o644)}, ""},
		{serveFlags{config: file("reference", "muster.bootstrap.user=ann:${file:/p}\n", 0o644)}, ""},
	} {
		var out bytes.Buffer
		c.f.warnOfSecrets(&out)
		got := out.String()
		assert.True(t, (got == "") == (c.want == "") && strings.Contains(got, c.want) && !strings.Contains(got, "sesame"), "%+v: %q, want %q", c.f, got, c.want)
	}
}
