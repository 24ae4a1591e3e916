// Command matrix runs Kafka clients of every language against a fresh broker,
// once for each store, and writes down what was tried and what came of it.
//
//	go run ./interop/matrix -stores "disk redis" -write docs/clients.md
//
// A row of the matrix (rows.go) is a program that talks to the broker. It prints
// the version of its client and each check that passes, in lines of their own:
//
//	version 4.4.0
//	ok produce: acks=all
//
// and exits with 0 if all did. What it needs is installed by scripts/setup, and
// bin/muster is built by make. Everything that is started here is ended here, also
// on Ctrl-C, and listens on 127.0.0.1 only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	stores := flag.String("stores", "disk", "stores to try, of disk, mem and redis")
	only := flag.String("rows", "", "regular expression of the rows to run; the matrix is then not written")
	write := flag.String("write", "", "file to write the matrix to")
	jobs := flag.Int("jobs", 2, "how many rows run at the same time")
	flag.Parse()
	filter, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	m := &matrix{stores: strings.Fields(strings.ReplaceAll(*stores, ",", " "))}
	for _, r := range rows() {
		if filter.MatchString(r.name) {
			m.rows = append(m.rows, r)
		}
	}
	for _, store := range m.stores {
		if err := m.tryStore(ctx, store, *jobs); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	if *write != "" && *only == "" {
		if err := os.WriteFile(*write, []byte(m.markdown()), 0o644); err != nil {
			return err
		}
	}
	if n := m.failures(); n > 0 {
		return fmt.Errorf("%d of %d rows failed", n, len(m.stores)*len(m.rows))
	}
	return nil
}

// matrix is what is tried, and what came of it.
type matrix struct {
	stores  []string
	rows    []row
	results map[string]map[string]result // store, row's name
}

// tryStore runs all rows against a broker with a store.
func (m *matrix) tryStore(ctx context.Context, store string, jobs int) error {
	dir, err := os.MkdirTemp("", "muster-matrix-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tests, err := buildGoTests(ctx, dir)
	if err != nil {
		return err
	}
	b, err := startBroker(ctx, store, dir)
	if err != nil {
		return err
	}
	defer b.stop()
	p := place{addr: b.addr, store: store, dir: dir, goTests: tests}
	if slices.ContainsFunc(m.rows, func(r row) bool { return r.old }) {
		if p.old, err = buildOld(ctx, dir); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(m.rows, func(r row) bool { return r.secured }) {
		if p.secured, err = startSecured(ctx, store, filepath.Join(dir, "secured")); err != nil {
			return err
		}
		defer p.secured.stop()
	}
	fmt.Printf("%d rows with a broker on %s, store %s\n", len(m.rows), b.addr, store)
	began := time.Now()
	results := make([]result, len(m.rows))
	next := make(chan int)
	var working sync.WaitGroup
	for range jobs {
		working.Go(func() {
			for i := range next {
				results[i] = m.rows[i].run(ctx, p)
				results[i].print(store, m.rows[i].name)
			}
		})
	}
	for i := range m.rows {
		next <- i
	}
	close(next)
	working.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if m.results == nil {
		m.results = map[string]map[string]result{}
	}
	m.results[store] = map[string]result{}
	failed := 0
	for i, r := range results {
		m.results[store][m.rows[i].name] = r
		if r.failed() {
			failed++
		}
	}
	fmt.Printf("%d of %d rows passed with store %s, in %s\n", len(m.rows)-failed, len(m.rows), store, time.Since(began).Round(time.Second))
	if failed > 0 {
		fmt.Printf("the end of the broker's log:\n%s\n", b.logs.String())
		if p.secured != nil {
			fmt.Printf("and of that where clients log in:\n%s\n", p.secured.logs.String())
		}
	}
	return nil
}
