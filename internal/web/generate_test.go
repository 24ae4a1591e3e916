package web

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what a test finds out of date")

const (
	openAPIFile    = "openapi.json"
	typeScriptFile = "ui/api.ts"
)

// The files are made of the table of routes, so that they cannot say anything else.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	s := newSchemas(t)
	for name, want := range map[string][]byte{openAPIFile: s.openAPI(), typeScriptFile: s.typeScript()} {
		if *rewrite {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date; make generate writes it", name)
		}
	}
}
