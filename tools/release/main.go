// Command release makes everything that is published of a version of muster: binaries in
// archives, packages for Debian and Fedora, a container image, a formula for Homebrew, wheels
// for Python, packages for Node.js and jars for the JVM, with what they are made of (SBOM) and their checksums.
//
//	make release VERSION=v0.1.0
//	go -C tools/release run . -version v0.1.0 -targets linux/amd64
//
// The same commit gives the same bytes, in any folder and at any time: files have the time of
// the commit, and owners and orders are fixed. It reaches no network, but for what the go
// command and Maven download, and publishes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// allTargets are the systems and processors that a release is for.
const allTargets = "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"

// release is what is made.
type release struct {
	root    string // of the source
	out     string // the folder for the results
	version string // with the v
	time    time.Time
	// texts are files that are the same for all targets: completions, man page, licence.
	texts []file
	// classes are of the package for the JVM; none if that is left out.
	classes []file
}

// target is a system and processor, with the program for it.
type target struct {
	os, arch string
	program  []byte
	sbom     []byte
}

func main() {
	version := flag.String("version", "", "`version` to release, such as v0.1.0")
	targets := flag.String("targets", allTargets, "systems and processors to build for")
	without := flag.String("without", "", "jvm leaves out the package for the JVM, which needs a JDK and Maven")
	out := flag.String("out", "dist", "`folder` for the results, from the root of the source; emptied first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *version, strings.Fields(*targets), *without, *out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

func run(ctx context.Context, version string, targets []string, without, out string) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("-version is vMAJOR.MINOR.PATCH, as v0.1.0 or v0.1.0-rc.1, not %q", version)
	}
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	r := &release{root: root, out: out, version: version}
	if r.time, err = commitTime(ctx, root); err != nil {
		return err
	}
	if changes, err := output(ctx, root, "git", "status", "--porcelain"); err != nil || changes != "" {
		fmt.Fprintf(os.Stderr, "release: not what is committed; changed or new:\n%s\n", changes)
	}
	if without != "jvm" {
		if err := r.compileJVM(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}
	return r.make(ctx, targets)
}

// commitTime is the time that all files get.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	seconds, given := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !given {
		var err error
		if seconds, err = output(ctx, root, "git", "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the release: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

// make makes all results.
func (r *release) make(ctx context.Context, names []string) error {
	var built []*target
	for _, name := range names {
		t, err := r.build(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		built = append(built, t)
	}
	if err := r.describe(ctx, built); err != nil {
		return err
	}
	for _, t := range built {
		if err := r.publish(t); err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
	}
	return r.publishAll(built)
}

// publishAll makes what there is once for all targets.
func (r *release) publishAll(built []*target) error {
	all := []error{r.image(built), r.nodeMain(), r.formula(built)}
	if len(r.classes) > 0 {
		all = append(all, r.jvmMain(built))
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	return r.sums()
}

// build compiles the program for a target: static, and without paths of this machine.
func (r *release) build(ctx context.Context, name string) (*target, error) {
	system, arch, ok := strings.Cut(name, "/")
	if !ok {
		return nil, errors.New("a target is a system and a processor, as linux/amd64")
	}
	fmt.Fprintln(os.Stderr, "release: building for", name)
	program := filepath.Join(r.out, "program")
	defer func() { _ = os.Remove(program) }()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w -X main.released="+r.version, "-o", program, "./cmd/muster")
	build.Dir = r.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	sbom, err := r.sbom(program)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(program)
	return &target{os: system, arch: arch, program: text, sbom: sbom}, err
}

// describe has the program for this machine write its completions and its manual.
func (r *release) describe(ctx context.Context, built []*target) error {
	for _, t := range built {
		if t.os == runtime.GOOS && t.arch == runtime.GOARCH {
			return r.describeBy(ctx, t)
		}
	}
	return fmt.Errorf("the targets must include this machine's, %s/%s, whose program writes the manual", runtime.GOOS, runtime.GOARCH)
}

func (r *release) describeBy(ctx context.Context, t *target) error {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := filepath.Join(folder, "muster"+t.suffix())
	if err := os.WriteFile(program, t.program, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "grafana/muster.json", "grafana/alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		r.texts = append(r.texts, file{name: name, text: text})
	}
	for shell, name := range map[string]string{"bash": "muster.bash", "zsh": "_muster", "fish": "muster.fish"} {
		text, err := output(ctx, r.root, program, "completion", shell)
		if err != nil {
			return err
		}
		r.texts = append(r.texts, file{name: "completions/" + name, text: []byte(text + "\n")})
	}
	page, err := manual(ctx, program, r.version, r.time)
	r.texts = append(r.texts, file{name: "muster.1", text: page})
	return err
}

// publish makes all that there is of one target.
func (r *release) publish(t *target) error {
	results := []func(*target) error{r.archive, r.wheel, r.nodeBinary}
	if len(r.classes) > 0 {
		results = append(results, r.jvmBinary)
	}
	if t.os == "linux" {
		results = append(results, r.systemPackages)
	}
	for _, result := range results {
		if err := result(t); err != nil {
			return err
		}
	}
	return r.write(r.base(t)+".cdx.json", t.sbom)
}

// plain is the version without its v.
func (r *release) plain() string { return strings.TrimPrefix(r.version, "v") }

func (r *release) base(t *target) string {
	return fmt.Sprintf("muster_%s_%s_%s", r.plain(), t.os, t.arch)
}

func (r *release) write(name string, content []byte) error {
	path := filepath.Join(r.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

func (t *target) suffix() string {
	if t.os == "windows" {
		return ".exe"
	}
	return ""
}

// output runs a program in a folder and returns what it prints.
func output(ctx context.Context, folder, program string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = folder
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
