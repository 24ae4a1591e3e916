package words

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Command words a command of muster that a person may paste into a shell: what to do, with
// what, and flags. Names are anybody's choice: they are quoted, and one that would be
// taken for a flag stands at the end, after --.
func Command(verb, name string, flags ...string) string {
	args := append([]string{"muster", verb}, quoteAll(flags)...)
	if strings.HasPrefix(name, "-") {
		return strings.Join(append(args, "--", Shell(name)), " ")
	}
	return strings.Join(append([]string{"muster", verb, Shell(name)}, args[2:]...), " ")
}

func quoteAll(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = Shell(a)
	}
	return out
}

// Shell writes a word for any POSIX shell. What a terminal would act upon is written by
// printf, and never stands there as it is. There is no way to give a command a NUL.
func Shell(word string) string {
	if plainWord(word) {
		return word
	}
	rest := strings.TrimRight(word, "\n")
	quoted := "'" + strings.ReplaceAll(rest, "'", `'\''`) + "'"
	if !utf8.ValidString(rest) || strings.ContainsFunc(rest, func(r rune) bool { return !strconv.IsPrint(r) }) {
		quoted = `"$(printf ` + escaped(rest) + `)"`
	}
	if n := len(word) - len(rest); n > 0 { // Which $() would cut off.
		quoted += "'" + strings.Repeat("\n", n) + "'"
	}
	return quoted
}

// escaped is a word as printf takes it.
func escaped(word string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for len(word) > 0 {
		r, size := utf8.DecodeRuneInString(word)
		bytes := word[:size]
		word = word[size:]
		switch {
		case r == '\'':
			b.WriteString(`'\''`)
		case r == '%':
			b.WriteString("%%")
		case r == '\\':
			b.WriteString(`\\`)
		case strconv.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(bytes) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// plainWord says whether a shell takes a word for itself. An ellipsis, where someone is to
// fill something in, is a letter to it.
func plainWord(word string) bool {
	word = strings.ReplaceAll(word, "…", "x")
	for i := range len(word) {
		c := word[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_-./:@%+=,", rune(c)) {
			return false
		}
	}
	return word != ""
}
