package auth

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// expression is a regular expression that was written for Java.
type expression struct {
	whole *regexp.Regexp // matches a whole text
	first *regexp.Regexp // finds the first match
	// after finds the next match after the first character of a text, which is
	// there so that ^ and \b know what precedes. Its groups come one later.
	after *regexp.Regexp
}

// compile translates an expression and compiles it.
func compile(java string) (e expression, err error) {
	pattern, err := translate(java)
	if err != nil {
		return e, fmt.Errorf("the pattern %q: %w", shorten(java), err)
	}
	// Alone first, so that no unbalanced parenthesis is balanced by what is around.
	if e.first, err = regexp.Compile(pattern); err != nil {
		return e, fmt.Errorf("the pattern %q: %w (there are no possessive quantifiers here, nor look-around or back-references)", shorten(java), err)
	}
	if e.whole, err = regexp.Compile(`\A(?:` + pattern + `)\z`); err != nil {
		return e, fmt.Errorf("the pattern %q: %w", shorten(java), err)
	}
	if e.after, err = regexp.Compile(`\A(?s:.)(?s:.*?)(` + pattern + `)`); err != nil {
		return e, fmt.Errorf("the pattern %q: %w", shorten(java), err)
	}
	return e, nil
}

// replaceAll replaces what matches, one match after the other, as Java does: right
// after a match there may be an empty one, which package regexp leaves out.
func (e *expression) replaceAll(s string, replacement []piece) string {
	var out strings.Builder
	for from, copied := 0, 0; ; {
		m := e.find(s, from)
		if m == nil {
			out.WriteString(s[copied:])
			return out.String()
		}
		out.WriteString(s[copied:m[0]])
		for _, p := range replacement {
			switch {
			case p.group == none:
				out.WriteString(p.text)
			case m[2*p.group] >= 0:
				out.WriteString(s[m[2*p.group]:m[2*p.group+1]])
			}
		}
		copied, from = m[1], m[1]
		if m[0] == m[1] {
			_, size := utf8.DecodeRuneInString(s[from:])
			from += max(size, 1)
		}
	}
}

// find returns the first match at or after an offset, nil if there is none.
func (e *expression) find(s string, from int) []int {
	if from == 0 {
		return e.first.FindStringSubmatchIndex(s)
	}
	if from > len(s) {
		return nil
	}
	_, size := utf8.DecodeLastRuneInString(s[:from])
	start := from - size
	m := e.after.FindStringSubmatchIndex(s[start:])
	if m == nil {
		return nil
	}
	m = m[2:]
	for i := range m {
		if m[i] >= 0 {
			m[i] += start
		}
	}
	return m
}

// anyInLine is what a dot is to Java, which knows more ends of lines than Go.
const anyInLine = `[^\n\r\x{85}\x{2028}\x{2029}]`

// translate makes of an expression for Java one for Go that means the same, or
// says why it cannot. What neither knows is left for the compiler to refuse.
func translate(java string) (string, error) {
	var out strings.Builder
	inClass := false
	for i := 0; i < len(java); {
		n, text, err := 1, "", error(nil)
		switch c := java[i]; {
		case c == '\\':
			n, text, err = translateEscape(java[i:], inClass)
		case inClass:
			err = checkInClass(java[i:])
			inClass = c != ']'
		case c == '[':
			inClass = true
			if first := strings.TrimPrefix(java[i+1:], "^"); strings.HasPrefix(first, "]") {
				err = errors.New(`a class that begins with ] is unclear: write \]`)
			}
		case c == '(':
			err = checkGroup(java[i:])
		case c == '.':
			text = anyInLine
		}
		if err != nil {
			return "", err
		}
		if text == "" {
			text = java[i : i+n]
		}
		out.WriteString(text)
		i += n
	}
	return out.String(), nil
}

// translateEscape looks at what begins with a backslash. It returns how long that
// is and its translation, which is empty if it stays.
func translateEscape(s string, inClass bool) (int, string, error) {
	if len(s) < 2 {
		return 0, "", errors.New("it ends with a backslash")
	}
	c := s[1]
	switch {
	case c == 'Q' && !inClass:
		end := strings.Index(s, `\E`)
		if end < 0 {
			return len(s), "", nil
		}
		return end + 2, "", nil
	case c == 's' && inClass:
		return 2, `\s\x0B`, nil
	case c == 's':
		return 2, `[\s\x0B]`, nil
	case c == 'S' && !inClass:
		return 2, `[^\s\x0B]`, nil
	case c >= '0' && c <= '9':
		return 0, "", fmt.Errorf(`\%c is a back-reference or an octal number, which there is not`, c)
	case strings.IndexByte("dDwWbBAztnrfaxpP", c) >= 0:
		return 2, "", nil
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return 0, "", fmt.Errorf(`\%c there is not, or it has another meaning than in Java`, c)
	}
	_, size := utf8.DecodeRuneInString(s[1:])
	return 1 + size, "", nil
}

// checkInClass refuses what Java reads as a class in a class, and Go as letters.
func checkInClass(s string) error {
	if s[0] == '[' || strings.HasPrefix(s, "&&") {
		return errors.New(`classes have no classes within, and no intersections: write \[ and \& for the signs`)
	}
	return nil
}

// checkGroup refuses what is not a group, a group without number or a named one.
func checkGroup(s string) error {
	switch {
	case !strings.HasPrefix(s, "(?"), strings.HasPrefix(s, "(?:"):
		return nil
	case strings.HasPrefix(s, "(?="), strings.HasPrefix(s, "(?!"), strings.HasPrefix(s, "(?<="), strings.HasPrefix(s, "(?<!"):
		return errors.New("there is no look-ahead or look-behind")
	case strings.HasPrefix(s, "(?<"):
		return nil
	case strings.HasPrefix(s, "(?>"):
		return errors.New("there are no groups without backtracking")
	}
	return errors.New("there are no flags, which mean other things than in Java: write [Aa] for either case, or use L or U")
}
