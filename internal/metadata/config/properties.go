package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// maxPropertiesLine bounds a line of a properties file.
const maxPropertiesLine = 1 << 20

// ParseProperties reads a file in the form of Kafka's server.properties: one
// setting per line, name and value parted by '=', ':' or white space; '#' and
// '!' start comments; a backslash at the end of a line continues it. A setting
// given twice has its last value.
func ParseProperties(r io.Reader) (map[string]string, error) {
	out := map[string]string{}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4096), maxPropertiesLine)
	var line string
	for number := 1; in.Scan(); number++ {
		text := strings.TrimLeft(in.Text(), " \t\f")
		if line == "" && (text == "" || text[0] == '#' || text[0] == '!') {
			continue
		}
		line += text
		if continued(line) {
			line = line[:len(line)-1]
			continue
		}
		name, value := splitProperty(line)
		if name == "" {
			return nil, fmt.Errorf("line %d: no name before %q", number, line)
		}
		out[name] = value
		line = ""
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if name, value := splitProperty(line); name != "" {
		out[name] = value
	}
	return out, nil
}

// continued says whether a line ends in an odd number of backslashes.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

func splitProperty(line string) (name, value string) {
	i := strings.IndexAny(line, "=: \t")
	if i < 0 {
		return strings.TrimSpace(line), ""
	}
	name, value = line[:i], strings.TrimLeft(line[i:], " \t")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = value[1:]
	}
	return name, strings.ReplaceAll(strings.TrimSpace(value), `\\`, `\`)
}
