package main

import (
	"regexp"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/demo"
)

func TestDemoSaysWhereToLookAndEnds(t *testing.T) {
	const anyPort = "127.0.0.1:0"
	out := (&shell{t: t}).run("demo", "--for", "1ms", "--listen", anyPort, "--http", anyPort).ok()
	where := regexp.MustCompile(`console  http://127\.0\.0\.1:[1-9]\d*\n  broker   (127\.0\.0\.1:[1-9]\d*)\n`).FindStringSubmatch(out)
	assert.MustTrue(t, where != nil, "it does not say where it is:\n%s", out)
	says(t, out, "muster top --broker "+where[1], "muster groups explain email-sender --broker "+where[1], "It ends in 1ms")
	for _, g := range demo.Groups() {
		says(t, out, g.Name, g.Look)
	}
	assert.False(t, strings.Contains(out, "something else has"), "it got what it asked for, and says\n%s", out)
	(&shell{t: t}).run("demo", "--for", "-1s").fails(exitUsage, "--for is a time")
	s := newShell(t)
	(&shell{t: t}).run("demo", "--for", "1ms", "--listen", s.broker, "--http", anyPort).fails(exitFailed, "port in use")
	(&shell{t: t}).run("demo", "--for", "1ms", "--listen", anyPort, "--http", s.broker).fails(exitFailed, "port in use")
}
