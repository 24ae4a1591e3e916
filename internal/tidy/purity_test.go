package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// purity says what a pure package may not touch. Its tests may.
type purity struct {
	// packages are the folders, without the leading "internal/".
	packages []string
	// imports are forbidden with all packages below them.
	imports []string
	// others are the packages of other modules that are allowed; nil allows all.
	others []string
	// sequential forbids goroutines, channels and iteration over maps.
	sequential bool
}

// The cores are told the time and given their randomness: the same inputs give
// the same effects, in the simulator and in replay.
var core = purity{
	packages: []string{"coordinator/pump", "group", "group/assignor", "group/classic", "group/consumer", "group/kind", "group/modern", "group/schema", "group/subscription", "machine", "migration", "share/requests", "share/state", "share/window", "txn", "watch/history", "journal", "watch/lag", "watch/list"},
	imports: []string{
		"bufio", "context", "crypto/rand", "hash/maphash", "io", "log", "math/rand", "net", "os", "runtime", "sync", "syscall", "unsafe",
	},
	others:     []string{"github.com/twmb/franz-go/pkg/kerr", "github.com/twmb/franz-go/pkg/kmsg"},
	sequential: true,
}

// The record format is bytes in, bytes out.
var format = purity{
	packages: []string{"record"},
	imports:  []string{"net", "os", "syscall"},
}

// Reasoning about groups is evidence in, data and sentences out: what shows it to
// people, asks brokers for it and knows the time is elsewhere.
var reasoning = purity{
	packages:   []string{"audit", "watch/explain", "words"},
	imports:    []string{"bufio", "context", "io", "log", "net", "os", "runtime", "sync", "syscall"},
	others:     []string{},
	sequential: true,
}

// Who may do what, and how much, is a question to rules and nothing else. Addresses are only
// parsed, which net/netip does without a network.
var deciding = purity{
	packages: []string{"auth", "quota"},
	imports: []string{
		"bufio", "context", "crypto/rand", "crypto/tls", "hash/maphash", "io", "log", "math/rand", "net/http", "os", "runtime", "sync", "syscall", "unsafe",
	},
	others:     []string{"github.com/twmb/franz-go/pkg/kerr"},
	sequential: true,
}

// impure lists the functions that no pure package may name.
var impure = map[string][]string{
	"time": {"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
	"fmt":  {"Print", "Printf", "Println"},
}

func TestPurePackagesStayPure(t *testing.T) {
	report(t, checkPurity(tree(t), core))
	report(t, checkPurity(tree(t), format))
	report(t, checkPurity(tree(t), reasoning))
	report(t, checkPurity(tree(t), deciding))
}

func checkPurity(sources []*source, rule purity) []string {
	var problems []string
	for _, s := range sources {
		if s.isTest() || !slices.Contains(rule.packages, packageName(s.dir())) {
			continue
		}
		complain := func(pos token.Pos, what string) {
			problems = append(problems, fmt.Sprintf("%s: %s in package %s, which is pure", s.at(pos), what, packageName(s.dir())))
		}
		for _, spec := range s.ast.Imports {
			if p := importPath(spec); rule.forbidsImport(p) {
				complain(spec.Pos(), "imports "+p)
			}
			if spec.Name != nil && spec.Name.Name == "." {
				complain(spec.Pos(), "a dot import")
			}
		}
		imported := s.imported()
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if pkg, name := qualified(imported, n); slices.Contains(impure[pkg], name) {
				complain(n.Pos(), pkg+"."+name)
			}
			if what := concurrency(n); rule.sequential && what != "" {
				complain(n.Pos(), what)
			}
			return true
		})
	}
	return problems
}

func (rule purity) forbidsImport(p string) bool {
	below := func(parent string) bool { return p == parent || strings.HasPrefix(p, parent+"/") }
	if slices.ContainsFunc(rule.imports, below) {
		return true
	}
	// Only the first element of a path outside the standard library, and of
	// this module, holds a dot or is the module itself.
	first, _, _ := strings.Cut(p, "/")
	return rule.others != nil && strings.Contains(first, ".") && !slices.Contains(rule.others, p)
}

// concurrency names the concurrent construct that a node is, if any.
func concurrency(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.SelectStmt:
		return "a select statement"
	case *ast.ChanType:
		return "a channel type"
	case *ast.SendStmt:
		return "a channel send"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a channel receive"
		}
	}
	return ""
}

func TestCheckPurityFindsClocksInputAndConcurrency(t *testing.T) {
	const text = `package group

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	. "strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"muster/internal/metadata"
)

var clock = time.Now

func f(d time.Duration) {
	go f(0)
	c := make(chan int)
	c <- 1
	<-c
	select {}
}
`
	wantProblems(t, checkPurity([]*source{fixture(t, "internal/group/a.go", text)}, core),
		":4: imports context", ":5: imports math/rand/v2", ":6: imports sync/atomic", ":7: a dot import",
		":10: imports github.com/twmb/franz-go/pkg/kgo",
		":15: time.Now", ":18: a go statement", ":19: a channel type", ":20: a channel send", ":21: a channel receive", ":22: a select statement")

	wantProblems(t, checkPurity([]*source{
		fixture(t, "internal/group/a_test.go", text),
		fixture(t, "internal/partition/a.go", text),
	}, core))
}

func TestCheckPurityOfTheRecordFormatIsAboutInputAndClock(t *testing.T) {
	const text = `package record

import (
	"io"
	"net/netip"
	"os"
	"sync"
	"time"
)

var age = time.Since
`
	wantProblems(t, checkPurity([]*source{fixture(t, "internal/record/a.go", text)}, format),
		":5: imports net/netip", ":6: imports os", ":11: time.Since")
}

// The race detector is spared only the packages that have nothing for it.
func TestOnlyPackagesWithoutGoroutinesAreNotRaced(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	spared := regexp.MustCompile(`(?m)^PURE +:= (.*)$`).FindSubmatch(makefile)
	if spared == nil {
		t.Fatal("the Makefile has no list PURE")
	}
	for name := range strings.FieldsSeq(string(spared[1])) {
		if !slices.ContainsFunc([]purity{core, reasoning, deciding}, func(p purity) bool { return p.sequential && slices.Contains(p.packages, name) }) {
			t.Errorf("package %s is not raced, but may have goroutines", name)
		}
	}
}
