package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"muster/internal/assert"
)

var rewrite = flag.Bool("rewrite", false, "write what a test finds out of date")

// maxSize is how large all that a page loads may be, unpacked.
const maxSize = 250_000

// unavailable skips a test for want of packages, except where they must be had.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if *rewrite || os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// packages returns a folder with the npm packages of package-lock.json. They are fetched
// once, and kept in a folder of the user's cache that is named for the lock file.
func packages(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	assert.Must(t, err)
	cache, err := os.UserCacheDir()
	if err != nil {
		unavailable(t, "there is no folder for the npm packages: %v", err)
	}
	dir := filepath.Join(cache, "muster", "console-"+short(lock))
	if _, err := os.Stat(dir); err == nil {
		return filepath.Join(dir, "node_modules")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		unavailable(t, "the npm packages are not there, and no npm to fetch them: %v", err)
	}
	assert.Must(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	fetched, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	assert.Must(t, err)
	defer func() { _ = os.RemoveAll(fetched) }()
	for _, name := range []string{"package.json", "package-lock.json"} {
		copyFile(t, filepath.Join(fetched, name), name)
	}
	cmd := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = fetched
	if out, err := cmd.CombinedOutput(); err != nil {
		unavailable(t, "npm could not fetch the packages: %v\n%s", err, out)
	}
	if err := os.Rename(fetched, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // Else another test was faster.
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "node_modules")
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	assert.Must(t, err)
	assert.Must(t, os.WriteFile(to, b, 0o644))
}

// workshop is a folder with the sources beside the packages, which are outside of the
// tree, so that Go and others who walk it need not know of them.
func workshop(t *testing.T) string {
	t.Helper()
	node := packages(t)
	dir := t.TempDir()
	console := filepath.Join(dir, "console")
	for to, from := range map[string]string{filepath.Join(console, "src"): "src", filepath.Join(dir, "ui"): filepath.Join("..", "ui")} {
		assert.Must(t, os.CopyFS(to, os.DirFS(from)))
	}
	copyFile(t, filepath.Join(console, "tsconfig.json"), "tsconfig.json")
	assert.Must(t, os.Symlink(node, filepath.Join(console, "node_modules")))
	return console
}

func short(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// bundle makes the files of dist by name, not yet packed.
func bundle(t *testing.T) map[string][]byte {
	t.Helper()
	dir := workshop(t)
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir, EntryPoints: []string{"src/main.tsx", "src/style.css"}, Outdir: "out", Bundle: true,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Charset: api.CharsetUTF8,
		Format: api.FormatIIFE, Target: api.ES2022, Engines: []api.Engine{{Name: api.EngineChrome, Version: "123"}, {Name: api.EngineFirefox, Version: "120"}, {Name: api.EngineSafari, Version: "17.5"}},
		LegalComments: api.LegalCommentsNone, JSX: api.JSXAutomatic, JSXImportSource: "preact",
		Define: map[string]string{"process.env.NODE_ENV": `"production"`},
	})
	for _, m := range slices.Concat(result.Errors, result.Warnings) {
		t.Errorf("esbuild: %s %v", m.Text, m.Location)
	}
	out := map[string][]byte{"licenses.txt": licenses(t, filepath.Join(dir, "node_modules"))}
	named := map[string]string{}
	add := func(key, name, ext string, b []byte) {
		file := name + "-" + short(b) + ext
		out[file], named[key] = b, assets+file
	}
	for _, f := range result.OutputFiles {
		if filepath.Ext(f.Path) == ".js" {
			add("script", "app", ".js", f.Contents)
		} else {
			add("style", "app", ".css", f.Contents)
		}
	}
	for _, name := range []string{"icon.svg", "index.html"} {
		b, err := os.ReadFile(filepath.Join("src", name))
		assert.Must(t, err)
		if name == "icon.svg" {
			add("icon", "icon", ".svg", b)
			continue
		}
		for key, address := range named {
			b = bytes.ReplaceAll(b, []byte("{{"+key+"}}"), []byte(address))
		}
		out[indexFile] = b
	}
	return out
}

// licenses names what is in the bundle, and under which terms.
func licenses(t *testing.T, node string) []byte {
	t.Helper()
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	b, err := os.ReadFile("package-lock.json")
	assert.Must(t, err)
	assert.Must(t, json.Unmarshal(b, &lock))
	out := bytes.NewBufferString("The console contains these packages.\n")
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		p := lock.Packages[path]
		name, ok := strings.CutPrefix(path, "node_modules/")
		if p.Dev || !ok {
			continue
		}
		terms, err := os.ReadFile(filepath.Join(node, filepath.FromSlash(name), "LICENSE"))
		assert.Must(t, err)
		fmt.Fprintf(out, "\n%s %s (%s)\n\n%s\n", name, p.Version, p.License, bytes.TrimSpace(terms))
	}
	return out.Bytes()
}

// packed says whether a file is kept and sent with gzip.
func packed(name string) bool {
	return filepath.Ext(name) == ".js" || filepath.Ext(name) == ".css"
}

// write puts files into dist and then removes what is there besides them.
func write(t *testing.T, want map[string][]byte) {
	t.Helper()
	wanted := map[string]bool{}
	for name, b := range want {
		if packed(name) {
			var zipped bytes.Buffer
			w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
			assert.Must(t, err)
			if _, err := w.Write(b); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			name, b = name+".gz", zipped.Bytes()
		}
		wanted[name] = true
		assert.Must(t, os.WriteFile(filepath.Join("dist", name), b, 0o644))
	}
	entries, err := os.ReadDir("dist")
	assert.Must(t, err)
	for _, e := range entries {
		if wanted[e.Name()] {
			continue
		}
		assert.Must(t, os.Remove(filepath.Join("dist", e.Name())))
	}
}

// What is committed is what the sources and the pinned packages make. It is compared
// unpacked, since another release of Go may pack otherwise.
func TestBundleIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is Go")
	}
	want := bundle(t)
	if t.Failed() {
		return
	}
	if *rewrite {
		stale := len(want) != len(files())
		for name, b := range want {
			stale = stale || files()[name] == nil || !bytes.Equal(files()[name].plain, b)
		}
		if stale {
			write(t, want)
		}
		return
	}
	for name, b := range want {
		if f := files()[name]; f == nil || !bytes.Equal(f.plain, b) {
			t.Errorf("dist/%s is out of date; make generate writes it", name)
		}
	}
	for name := range files() {
		assert.True(t, want[name] != nil, "dist/%s belongs to nothing any more; make generate removes it", name)
	}
}

func TestTypesAreRight(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is Go")
	}
	dir := workshop(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join("node_modules", ".bin", "tsc"), "-p", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the TypeScript compiler: %v\n%s", err, out)
	}
}

func TestBundleIsSmall(t *testing.T) {
	size := 0
	for name, f := range files() {
		if packed(name) {
			size += len(f.plain)
		}
	}
	t.Logf("scripts and styles have %d bytes", size)
	assert.True(t, size != 0 && size <= maxSize, "scripts and styles have %d bytes, want at most %d", size, maxSize)
}
