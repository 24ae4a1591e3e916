package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Do sends one command to this very node over a connection of its own. A reply
// is a string, an int64, nil, or a []any of these; an error reply is an error.
func (n *Node) Do(args ...string) (any, error) {
	if n.isPaused() {
		return nil, errors.New("the server is paused")
	}
	conn, err := net.DialTimeout("tcp", n.Addr(), time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return nil, err
	}
	return reply(bufio.NewReader(conn))
}

// ErrorReply is what a server answered instead of doing what it was told.
type ErrorReply string

func (e ErrorReply) Error() string { return string(e) }

// Text sends a command whose reply is a string.
func (n *Node) Text(args ...string) (string, error) {
	v, err := n.Do(args...)
	if err != nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s: the reply is no string: %v", args[0], v)
	}
	return text, nil
}

// Info returns one field of INFO, or nothing.
func (n *Node) Info(section, field string) string {
	text, err := n.Text("INFO", section)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}

// IsPrimary says whether the node takes writes.
func (n *Node) IsPrimary() bool { return n.Info("replication", "role") == "master" }

// reply reads one RESP2 value.
func reply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line is no reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, ErrorReply(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q: %w", line, err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		return string(text[:n]), nil
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = reply(r); err != nil {
				list[i] = err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("reply %q is of no known type", line)
}
