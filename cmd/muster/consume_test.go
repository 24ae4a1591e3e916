package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func sortLines(text string) string {
	lines := slices.Collect(strings.Lines(text))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// follow runs a command with --follow until it has printed n lines, which it
// returns, then interrupts it and demands that it ends well.
func (s *shell) follow(n int, args ...string) string {
	s.t.Helper()
	lines, stop := s.start(append(args, "--follow")...)
	var out strings.Builder
	for range n {
		out.WriteString(lines())
	}
	stop()
	return out.String()
}

// start runs a command in the background. It returns a function that waits for
// the next line of its output, and one that interrupts it and demands that it
// ends well.
func (s *shell) start(args ...string) (next func() string, stop func()) {
	s.t.Helper()
	ctx, interrupt := context.WithCancel(s.t.Context())
	stdout, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, s.args(args), strings.NewReader(""), in, &stderr)
		in.Close()
	}()
	lines := bufio.NewReader(stdout)
	next = func() string {
		s.t.Helper()
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v ended: %v, stderr: %s", args, err, stderr.String())
		}
		return line
	}
	stop = func() {
		s.t.Helper()
		interrupt()
		if code := <-done; code != exitOK || stderr.Len() > 0 {
			s.t.Errorf("%v ended with code %d, stderr: %s", args, code, stderr.String())
		}
	}
	return next, stop
}

func TestConsumeFrom(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a", "-p", "2").ok()
	var first, second []string
	for i := range 5 {
		first = append(first, fmt.Sprintf(`{"value":"a%d","partition":0,"timestamp":%d}`, i, 1000*i))
		second = append(second, fmt.Sprintf(`{"value":"b%d","partition":1,"timestamp":%d}`, i, 1500*i))
	}
	s.pipe(strings.Join(first, "\n"), "produce", "a", "--json-lines").ok()
	s.pipe(strings.Join(second, "\n"), "produce", "a", "--json-lines").ok()
	for from, want := range map[string]string{
		"beginning":               "a0 a1 a2 a3 a4 b0 b1 b2 b3 b4",
		"0":                       "a0 a1 a2 a3 a4 b0 b1 b2 b3 b4",
		"3":                       "a3 a4 b3 b4",
		"5":                       "",
		"-1":                      "a4 b4",
		"-2":                      "a3 a4 b3 b4",
		"-0":                      "",
		"-99":                     "a0 a1 a2 a3 a4 b0 b1 b2 b3 b4",
		"@3000":                   "a3 a4 b2 b3 b4",
		"@4001":                   "b3 b4",
		"@1970-01-01T00:00:04Z":   "a4 b3 b4",
		"@-1h":                    "",
		"@1969-01-01T00:00:00Z":   "a0 a1 a2 a3 a4 b0 b1 b2 b3 b4",
		"@2999-01-01T00:00:00.5Z": "",
	} {
		r := s.run("consume", "a", "--from", from)
		same(t, "--from "+from, strings.Join(strings.Fields(sortLines(r.ok())), " "), want)
		same(t, "stderr of --from "+from, r.err, "")
	}
	s.run("consume", "a", "--from", "2", "--partition", "1").prints("b2\nb3\nb4\n")
	s.run("consume", "a", "--from", "2", "-p", "1", "--count", "2").prints("b2\nb3\n")
	same(t, "both partitions", sortLines(s.run("consume", "a", "--from", "4", "-p", "1", "-p", "0").ok()), "a4\nb4\n")
	r := s.run("consume", "a", "--from", "9", "-p", "1")
	same(t, "an offset that is not there", r.ok(), "")
	same(t, "its stderr", r.err, "muster: a-1 has the offsets 0 to 5: starting at 5, not 9\n")
}

func TestConsumeManyTopicsAndCount(t *testing.T) {
	s := newShell(t)
	s.pipe("1\n2\n", "produce", "a").ok()
	s.pipe("3\n", "produce", "b").ok()
	same(t, "two topics", sortLines(s.run("consume", "a", "b", "--format", `%t%v\n`).ok()), "a1\na2\nb3\n")
	s.run("consume", "a", "-n", "1").prints("1\n")
	s.run("consume", "a", "-n", "9").prints("1\n2\n")
	s.run("topics", "create", "empty").ok()
	s.run("consume", "empty").prints("")
}

func TestConsumeReportsWhatIsNotThere(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a").ok()
	same(t, "stderr", s.run("consume", "a", "nope").fails(exitFailed).err, "muster: there is no topic \"nope\"\n")
	s.run("consume", "a", "-p", "7").fails(exitFailed, "muster: topic a has no partition 7; it has 1 partition\n")
	s.run("topics", "describe", "nope").fails(exitFailed) // To consume a topic does not create it.
}

func TestConsumeFormat(t *testing.T) {
	s := newShell(t)
	s.pipe(`{"key":"k","value":"val","headers":{"h":"1"},"timestamp":1500}`, "produce", "a", "--json-lines").ok()
	s.run("consume", "a", "--format", `%t %p %o %k %v %s %K %V %S %T %D %h 100%%\t\x41\\\0\r\n`).prints(
		"a 0 0 k val val 1 3 3 1500 1970-01-01T00:00:01.500Z h=1 100%\tA\\\x00\r\n")
	s.run("consume", "a", "--format", "%v").prints("val")
	s.run("consume", "a", "--isolation", "read_committed").prints("val\n")
}

func TestConsumeFollowsUntilInterrupted(t *testing.T) {
	s := newShell(t)
	s.pipe("old\n", "produce", "a").ok()
	lines, stop := s.start("consume", "a", "-f")
	same(t, "what was there", lines(), "old\n")
	s.pipe("new\n", "produce", "a").ok()
	same(t, "what arrives", lines(), "new\n")
	stop()
}

func TestConsumeFromEndImpliesFollow(t *testing.T) {
	s := newShell(t)
	s.pipe("old\n", "produce", "a").ok()
	done := make(chan *result)
	go func() { done <- s.run("consume", "a", "--from", "end", "--count", "1") }()
	for { // No one tells when the follower has asked for the end.
		select {
		case r := <-done:
			r.prints("new\n")
			return
		default:
			s.pipe("new\n", "produce", "a").ok()
		}
	}
}

func TestConsumeEndsQuietlyWhenItsReaderHasEnough(t *testing.T) {
	s := newShell(t)
	s.pipe(strings.Repeat("some record\n", 20_000), "produce", "a").ok()
	stdout, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int)
	go func() { done <- run(t.Context(), s.args([]string{"consume", "a"}), strings.NewReader(""), in, &stderr) }()
	if _, err := io.ReadFull(stdout, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	same(t, "the exit code", <-done, exitOK)
	same(t, "stderr", stderr.String(), "")
}

func TestConsumeInterruptedBeforeTheEndSaysSo(t *testing.T) {
	s := newShell(t)
	// More than one fetch, so that the end is not there yet.
	s.pipe(strings.Repeat(strings.Repeat("x", 1000)+"\n", 3000), "produce", "a").ok()
	ctx, interrupt := context.WithCancel(t.Context())
	stdout, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, s.args([]string{"consume", "a"}), strings.NewReader(""), in, &stderr)
		in.Close()
	}()
	if _, err := io.ReadFull(stdout, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	interrupt()
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	same(t, "the exit code", <-done, exitInterrupted)
	same(t, "stderr", stderr.String(), "muster: interrupted\n")
}
