package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// commandLine is a line of a help that names a command.
var commandLine = regexp.MustCompile(`(?m)^  ([a-z-]+) +\S`)

// manual makes the man page muster(1) of what the program says of its commands.
func manual(ctx context.Context, program, version string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, ".TH MUSTER 1 %s \"muster %s\" \"User Commands\"\n", at.Format(time.DateOnly), version)
	fmt.Fprint(&out, ".SH NAME\nmuster \\- a Kafka-compatible broker in one binary\n.SH SYNOPSIS\n.B muster\n.I command\n[\\fIflags\\fR]\n")
	err := describeCommand(ctx, &out, program, nil)
	return out.Bytes(), err
}

// describeCommand writes the help of a command, and of those below it.
func describeCommand(ctx context.Context, out *bytes.Buffer, program string, path []string) error {
	help, err := output(ctx, ".", program, append(path, "--help")...)
	if err != nil {
		return err
	}
	title := "DESCRIPTION"
	if len(path) > 0 {
		title = "muster " + strings.Join(path, " ")
	}
	fmt.Fprintf(out, ".SH %s\n.nf\n%s\n.fi\n", strings.ToUpper(title), roff(help))
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, found := range commandLine.FindAllStringSubmatch(list, -1) {
		if found[1] == "help" || len(path) > 0 && path[0] == "completion" {
			continue
		}
		if err := describeCommand(ctx, out, program, append(path[:len(path):len(path)], found[1])); err != nil {
			return err
		}
	}
	return nil
}

// roff has troff print a text as it is: a point or a quote that begins a line would be a
// request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
