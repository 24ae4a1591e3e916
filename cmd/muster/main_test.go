package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muster"
	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
	"muster/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main() // For tests that run commands as processes.
	}
	// What starts Redis servers lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("muster/internal/redistest.launcher"))
}

// shell runs command lines against a broker of its own.
type shell struct {
	t      *testing.T
	broker string
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newShell starts a broker in memory. Properties are given in pairs.
func newShell(t *testing.T, properties ...string) *shell {
	t.Helper()
	return &shell{t, startBroker(t, muster.Config{}, properties...).Addr()}
}

// startBroker starts a broker with properties, and stops it with the test.
func startBroker(t *testing.T, config muster.Config, properties ...string) *muster.Broker {
	t.Helper()
	config.Properties = map[string]string{}
	for pair := range slices.Chunk(properties, 2) {
		config.Properties[pair[0]] = pair[1]
	}
	b, err := muster.Start(t.Context(), config)
	must(t, err)
	t.Cleanup(func() {
		assert.NoError(t, b.Close())
	})
	return b
}

// result is what a command line left behind.
type result struct {
	t           *testing.T
	line        string
	code        int
	stdout, err string
}

// run runs a command with an empty stdin.
func (s *shell) run(args ...string) *result { return s.pipe("", args...) }

// pipe runs a command with text as its stdin.
func (s *shell) pipe(stdin string, args ...string) *result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(s.t.Context(), s.args(args), strings.NewReader(stdin), &stdout, &stderr)
	return &result{s.t, strings.Join(args, " "), code, stdout.String(), stderr.String()}
}

// args adds the broker to the arguments of commands that talk to one.
func (s *shell) args(args []string) []string {
	if s.broker == "" {
		return args
	}
	return append(slices.Clone(args), "--broker", s.broker)
}

// ok fails the test unless the command succeeded, and returns its output.
func (r *result) ok() string {
	r.t.Helper()
	assert.MustTrue(r.t, r.code == exitOK, "%s: exit code %d\nstdout: %s\nstderr: %s", r.line, r.code, r.stdout, r.err)
	return r.stdout
}

// fails demands an exit code, and texts on stderr. Every line there begins with
// the program's name, or is the hint at the help.
func (r *result) fails(code int, texts ...string) *result {
	r.t.Helper()
	assert.True(r.t, r.code == code, "%s: exit code %d, want %d\nstderr: %s", r.line, r.code, code, r.err)
	for _, text := range texts {
		if !strings.Contains(r.err, text) {
			r.t.Errorf("%s: stderr does not have %q:\n%s", r.line, text, r.err)
		}
	}
	return r
}

// prints demands the exact output of a command that succeeds.
func (r *result) prints(want string) {
	r.t.Helper()
	assert.Equal(r.t, r.ok(), want, "%s printed", r.line)
}

// decode parses the output as JSON, and refuses fields that T does not have.
func decode[T any](r *result) T {
	r.t.Helper()
	var out T
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.DisallowUnknownFields()
	assert.Must(r.t, d.Decode(&out), "%s: in\n%s", r.line, r.stdout)
	assert.MustFalse(r.t, d.More(), "%s: more than one JSON document in\n%s", r.line, r.stdout)
	return out
}

// same fails the test unless both are equal.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	assert.Equal(t, got, want, "%s", what)
}

// freeAddress returns an address at which no one listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

func TestMusterAloneExplainsItself(t *testing.T) {
	s := &shell{t: t}
	out := s.run().ok()
	for _, want := range []string{"serve", "topics", "produce", "consume", "completion", "muster topics create orders"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not mention %q:\n%s", want, out)
		}
	}
	same(t, "muster help", s.run("help").ok(), out)
}

func TestUsageShowsFlagsOnlyOfCommandsThatDoSomething(t *testing.T) {
	s := &shell{t: t}
	for line, want := range map[string]bool{"topics": false, "topics list": true, "serve": true, "": false} {
		out := s.run(append(strings.Fields(line), "--help")...).ok()
		same(t, line+": flags in the usage", strings.Contains(out, "[flags]\n"), want)
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	s := &shell{t: t}
	for _, line := range []string{
		"topics", "topics list", "topics describe", "topics create", "topics alter", "topics delete", "topics check",
		"produce", "consume", "version", "completion", "serve", "health",
		"users", "users list", "users create", "users set-password", "users delete", "acls", "acls list", "acls add", "acls remove", "acls why",
		"quotas", "quotas list", "quotas set", "quotas remove", "audit",
	} {
		out := s.run(append(strings.Fields(line), "--help")...).ok()
		if !strings.Contains(out, "Examples:\n  muster "+line) && !strings.Contains(out, "muster "+line+" ") {
			t.Errorf("muster %s --help has no example:\n%s", line, out)
		}
	}
}

func TestWrongCommandLinesExitWithCode2(t *testing.T) {
	s := &shell{t: t}
	for line, want := range map[string]string{
		"nope":                                    `muster: muster has no command "nope"`,
		"topcis":                                  `did you mean "topics"?`,
		"topics lits":                             `muster topics has no command "lits"; did you mean "list"?`,
		"topics list --nope":                      "muster topics list has no flag --nope",
		"topics list --jsno":                      "did you mean --json?",
		"topics create a --partitions x":          `--partitions takes a whole number, not "x"`,
		"topics create a --partitions":            "--partitions takes a whole number, and has none",
		"topics list -Z":                          "has no flag -Z",
		"groups list --state Foo":                 `--state "Foo" is not a state of groups; the states are Assigning,`,
		"groups list --state Stabel":              `did you mean "Stable"?`,
		"quotas set foo=alice":                    `"foo" is neither user, client-id or ip, nor a quota`,
		"quotas set usr=alice":                    `connection_creation_rate; did you mean "user"?`,
		"topics list (":                           "is no regular expression",
		"topics list a b":                         "muster topics list takes other arguments: [REGEX]",
		"topics list --broker ,":                  "--broker is empty",
		"topics list --broker :":                  `a broker's address is host:port, not ":"`,
		"topics list --broker h:99999":            `a broker's address is host:port, not "h:99999"`,
		"topics list --broker http://h:9092":      `a broker's address is host:port, not "http://h:9092"`,
		"topics list --password-file f":           "--password-file needs --user",
		"help nope":                               `muster has no command "nope"`,
		"help topics lits":                        `muster topics has no command "lits"; did you mean "list"?`,
		"serve --set x":                           `--set takes key=value, not "x"`,
		"serve --listen x":                        `--listen takes host:port, not "x"`,
		"health --http x":                         `--http takes an address such as http://127.0.0.1:9021, not "x"`,
		"topics describe":                         "give the name of a topic",
		"topics create":                           "give the name of a topic",
		"topics create a --config x":              `--config takes name=value, not "x"`,
		"topics create a -c x=1 -c x=2":           "--config sets x twice",
		"topics alter a":                          "nothing to change",
		"topics alter a b --partitions 3":         "give the name of one topic, not 2",
		"topics alter a -c x=1 --delete-config x": "x cannot be both set and deleted",
		"topics delete a":                         "add --yes",
		"topics check":                            "give the name of a topic",
		"topics check a --partition -2":           "--partition takes the number of a partition",
		"produce":                                 "give the name of a topic",
		"produce a --acks 2":                      `--acks is all, 1 or 0, not "2"`,
		"produce a --compression zip":             "--compression is none, gzip, snappy, lz4 or zstd",
		"produce a --header x":                    `--header takes name=value, not "x"`,
		"produce a --key x -K :":                  "--key and --key-separator cannot be used together",
		"produce a -K \\q":                        "there is no escape",
		"produce a --partition -2":                "--partition is a partition's number",
		"consume":                                 "give the name of a topic",
		"consume a --from x":                      "--from is beginning, end, OFFSET, -N or @TIME",
		"consume a --from @x":                     `"x" is no time`,
		"consume a --format %q":                   "--format has no %q",
		"consume a --format %":                    "ends in a single %",
		"consume a --isolation x":                 "--isolation is read_uncommitted or read_committed",
		"consume a --count -1":                    "cannot be negative",
		"consume a --json --format %v":            "--format and --json cannot be used together",
		"version x":                               "muster version takes no arguments",
		"acls add alice read":                     "give USER OPERATION TYPE [NAME]",
		"acls add alice eat topic a":              `"eat" is no operation`,
		"acls add alice read table a":             `"table" is no type of resource`,
		"acls add alice read topic":               "give the name of a topic",
		"acls add alice read cluster a":           "there is one cluster",
		"acls add alice write group g":            "write is nothing that can be done with a group; there are read, delete, describe",
		"acls why alice read,write topic a":       "give one operation, not 2",
		"users create":                            "give the name of a user",
		"users create a":                          "give the password on stdin",
		"users create a --new-password secret":    "takes '${env:NAME}' or '${file:/path}', and no password",
		"users create a --iterations 1":           "--iterations is 4096 to 16384",
		"users delete a":                          "add --yes",
		"quotas set producer_byte_rate=1":         "say whom the quota is for",
		"quotas set user=a":                       "say which quota",
		"quotas set user=a producer_byte_rate=x":  "is not a rate",
		"quotas set user= producer_byte_rate=1":   "has no name",
		"quotas remove user=a x=1":                "in the form name",
		"audit --kind x":                          `--kind has no "x"`,
		"topics list --user a":                    "--user needs a password",
		"topics list --sasl-mechanism PLAIN":      "--sasl-mechanism needs --user",
		"completion tcsh":                         `muster completion has no command "tcsh"`,
	} {
		r := s.run(strings.Fields(line)...).fails(exitUsage, want, "--help' for its usage.")
		same(t, line+": stdout", r.stdout, "")
		assert.True(t, strings.HasPrefix(r.err, "muster: "), "%s: stderr does not begin with the program's name: %s", line, r.err)
	}
}

func TestCommandsSayThatNoBrokerAnswers(t *testing.T) {
	address := freeAddress(t)
	s := &shell{t, address}
	want := "muster: no broker answers at " + address + ": connection refused; start one with: muster serve\n"
	for _, line := range []string{
		"topics list", "topics describe a", "topics create a", "topics alter a -p 3", "topics delete a --yes", "produce a", "consume a",
	} {
		same(t, line, s.run(strings.Fields(line)...).fails(exitFailed).err, want)
	}
}

func TestOneSilentBrokerDoesNotHideAnother(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // It accepts connections, and says nothing.
	must(t, err)
	defer silent.Close()
	s := newShell(t)
	began := time.Now()
	(&shell{t: t}).run("topics", "list", "-b", freeAddress(t)+","+silent.Addr().String(), "-b", s.broker).ok()
	if took := time.Since(began); took >= cli.ConnectTimeout {
		t.Errorf("it took %s", took)
	}
}

func TestBrokerComesFromTheEnvironment(t *testing.T) {
	t.Setenv(cli.BrokerEnv, newShell(t).broker)
	s := &shell{t: t}
	s.run("topics", "create", "a").ok()
	address := freeAddress(t)
	s.run("topics", "list", "-b", address).fails(exitFailed, address)
}

func TestInterruptEndsACommandWithCode130(t *testing.T) {
	s := newShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := run(ctx, s.args([]string{"topics", "list"}), strings.NewReader(""), io.Discard, &stderr)
	same(t, "the exit code", code, exitInterrupted)
	same(t, "stderr", stderr.String(), "muster: interrupted\n")
}

// TestABrokerThatIsStoppedWhileItWaitsForItsNodeIDEndsInGoodOrder has another
// broker of the same node id.
func TestABrokerThatIsStoppedWhileItWaitsForItsNodeIDEndsInGoodOrder(t *testing.T) {
	server := redistest.Single(t)
	if _, err := server.Nodes[0].Do("SET", "{muster:__cluster_metadata:0}:broker:3", "token somebody else", "PX", "60000"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr, written := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--store", server.URL(), "--listen", "127.0.0.1:0", "--set", "node.id=3"}, strings.NewReader(""), io.Discard, written)
		_ = written.Close()
	}()
	last := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if last = lines.Text(); strings.Contains(last, "waiting for its lease to run out") {
			cancel()
		}
	}
	same(t, "the exit code", <-ended, exitOK)
	assert.Contains(t, last, "stopped before the broker was up", "its last words")
}

func TestVersion(t *testing.T) {
	s := &shell{t: t}
	v := decode[version](s.run("version", "--json"))
	assert.True(t, v.Version != "" && strings.HasPrefix(v.Go, "go1.") && strings.Contains(v.Platform, "/"), "version --json is %+v", v)
	s.run("version").prints(v.String() + "\n")
	s.run("--version").prints(v.String() + "\n")
	v = version{Version: "v1.2.3", Revision: "0123456789abcdef", Modified: true, Go: "go1.26", Platform: "linux/amd64"}
	same(t, "a full version", v.String(), "muster v1.2.3 (revision 0123456789ab with changes) go1.26 linux/amd64")
}

func TestCompletionOffersTopicsAndSettings(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "orders", "orders2", "users").ok()
	// The flags come first, since the last argument is the one to complete.
	complete := func(args ...string) string {
		return (&shell{t: t}).run(append([]string{"__complete"}, args...)...).ok()
	}
	for _, command := range []string{"topics describe", "topics alter", "topics delete", "produce", "consume"} {
		args := append(strings.Fields(command), "-b", s.broker, "ord")
		same(t, command, complete(args...), "orders\norders2\n:4\n")
	}
	same(t, "a second topic", complete("consume", "-b", s.broker, "orders", ""), "orders2\nusers\n:4\n")
	same(t, "a second topic for produce", complete("produce", "-b", s.broker, "orders", ""), ":4\n")
	same(t, "no broker", complete("consume", "-b", freeAddress(t), ""), ":4\n")
	if out := complete("topics", "create", "a", "--config", "retention."); !strings.HasPrefix(out, "retention.bytes=\t") {
		t.Errorf("--config completes to %q", out)
	}
	same(t, "--acks", complete("produce", "--acks", ""), "all\n1\n0\n:4\n")
	assert.Contains(t, (&shell{t: t}).run("completion", "bash").ok(), "__start_muster", "completion bash prints no script")
}

func TestTableAlignsItsColumns(t *testing.T) {
	tab := cli.NewTable("NAME", ">N", "LAST")
	tab.Add("a", 1, "x")
	tab.Add("größer", 1000, "")
	var out bytes.Buffer
	must(t, tab.Print(&out))
	same(t, "the table", out.String(), "NAME       N  LAST\na          1  x\ngrößer  1000  \n")
}
