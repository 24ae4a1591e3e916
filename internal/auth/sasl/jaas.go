package sasl

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxJAAS bounds a JAAS line. It is a setting of ours and no client sends it, but
// a file named by mistake should fail soon.
const maxJAAS = 1 << 20

// A LoginModule is one entry of sasl.jaas.config:
//
//	org.apache.kafka.common.security.plain.PlainLoginModule required
//	    username="admin" password="x" user_alice="y";
type LoginModule struct {
	Name    string
	Flag    string // required, requisite, sufficient or optional.
	Options map[string]string
}

// Passwords returns what PLAIN takes from a module: the passwords of its
// user_<name> options by name.
func (m LoginModule) Passwords() map[string]string {
	passwords := make(map[string]string)
	for option, value := range m.Options {
		if name, ok := strings.CutPrefix(option, "user_"); ok && name != "" {
			passwords[name] = value
		}
	}
	return passwords
}

// ParseJAAS reads the value of sasl.jaas.config as Kafka does: modules end with a
// semicolon, values stand in quotes or are words, and comments are Java's. Errors
// say where something is wrong and never repeat it, because it may be a password.
func ParseJAAS(text string) ([]LoginModule, error) {
	if len(text) > maxJAAS || !utf8.ValidString(text) {
		return nil, errors.New("the JAAS line is too long or no UTF-8")
	}
	p := &jaasParser{text: text}
	var modules []LoginModule
	for {
		token, err := p.next()
		if err != nil {
			return nil, err
		}
		if token.kind == jaasEnd {
			return modules, nil
		}
		module, err := p.module(token)
		if err != nil {
			return nil, err
		}
		modules = append(modules, module)
	}
}

type jaasKind int8

const (
	jaasEnd jaasKind = iota
	jaasWord
	jaasQuoted
	jaasSign // "=" or ";".
)

type jaasToken struct {
	kind jaasKind
	text string
	at   int // The byte it begins at.
}

func (t jaasToken) isSign(sign string) bool { return t.kind == jaasSign && t.text == sign }

type jaasParser struct {
	text string
	at   int
}

func wrongAt(at int, what string) error {
	return fmt.Errorf("JAAS line, byte %d: %s", at+1, what)
}

// module reads an entry whose first token is given.
func (p *jaasParser) module(name jaasToken) (LoginModule, error) {
	m := LoginModule{Name: name.text, Options: make(map[string]string)}
	if name.kind != jaasWord {
		return m, wrongAt(name.at, "the name of a login module is expected")
	}
	flag, err := p.next()
	if err != nil {
		return m, err
	}
	m.Flag = strings.ToLower(flag.text)
	switch m.Flag {
	case "required", "requisite", "sufficient", "optional":
	default:
		return m, wrongAt(flag.at, "required, requisite, sufficient or optional is expected")
	}
	for {
		key, err := p.next()
		if err != nil {
			return m, err
		}
		if key.isSign(";") {
			return m, nil
		}
		value, err := p.value(key)
		if err != nil {
			return m, err
		}
		if _, twice := m.Options[key.text]; twice {
			return m, wrongAt(key.at, "an option is given twice")
		}
		m.Options[key.text] = value
	}
}

// value reads "=" and the value of an option.
func (p *jaasParser) value(key jaasToken) (string, error) {
	if key.kind == jaasEnd {
		return "", wrongAt(key.at, "a semicolon is missing at the end")
	}
	if key.kind != jaasWord && key.kind != jaasQuoted {
		return "", wrongAt(key.at, "the name of an option is expected")
	}
	sign, err := p.next()
	if err != nil {
		return "", err
	}
	if !sign.isSign("=") {
		return "", wrongAt(sign.at, "= is expected after the name of an option")
	}
	value, err := p.next()
	if err != nil {
		return "", err
	}
	if value.kind != jaasWord && value.kind != jaasQuoted {
		return "", wrongAt(value.at, "a value is expected")
	}
	return value.text, nil
}

// next reads a token, and the spaces and comments before it.
func (p *jaasParser) next() (jaasToken, error) {
	if err := p.skip(); err != nil {
		return jaasToken{}, err
	}
	start := p.at
	if start == len(p.text) {
		return jaasToken{kind: jaasEnd, at: start}, nil
	}
	switch c := p.text[start]; {
	case c == '=' || c == ';':
		p.at++
		return jaasToken{jaasSign, string(c), start}, nil
	case c == '"' || c == '\'':
		text, err := p.quoted(c)
		return jaasToken{jaasQuoted, text, start}, err
	case isWordByte(c):
		for p.at < len(p.text) && isWordByte(p.text[p.at]) {
			p.at++
		}
		return jaasToken{jaasWord, p.text[start:p.at], start}, nil
	default:
		return jaasToken{}, wrongAt(start, "a sign that must stand in quotes")
	}
}

func (p *jaasParser) skip() error {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case rest[0] <= ' ':
			p.at++
		case strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			p.at += len(line)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return wrongAt(p.at, "a comment does not end")
			}
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// quoted reads a string with the escapes of Java's StreamTokenizer, octal ones
// left out, which no one writes on purpose: they are refused, not misread.
func (p *jaasParser) quoted(quote byte) (string, error) {
	start := p.at
	var out strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == quote:
			p.at++
			return out.String(), nil
		case c == '\n' || c == '\r':
			return "", wrongAt(start, "a quoted string does not end on its line")
		case c == '\\':
			p.at++
			if p.at == len(p.text) {
				return "", wrongAt(start, "a quoted string does not end")
			}
			escaped, ok := unescape(p.text[p.at])
			if !ok {
				return "", wrongAt(p.at, "an octal escape, which is not supported")
			}
			out.WriteByte(escaped)
		default:
			out.WriteByte(c)
		}
	}
	return "", wrongAt(start, "a quoted string does not end")
}

func unescape(c byte) (byte, bool) {
	if c >= '0' && c <= '7' {
		return 0, false
	}
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		return "\a\b\f\n\r\t\v"[i], true
	}
	return c, true
}

func isWordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._-$", c) >= 0 || c >= 0x80
}
