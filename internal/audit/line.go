package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"muster/internal/words"
)

// did says what each kind of entry tells, before the resources.
var did = map[Kind]string{
	Login: "logged in", LoginFailed: "failed to log in", Logout: "logged out", Denied: "was denied",
	TopicCreated: "created", TopicDeleted: "deleted", PartitionsAdded: "added partitions to", PartitionsReassigned: "reassigned", RecordsDeleted: "deleted records of",
	SettingsChanged: "changed settings of", GroupDeleted: "deleted", OffsetsDeleted: "deleted committed offsets of",
	OffsetsSet: "set committed offsets of", MemberRemoved: "removed a member of", RecordProduced: "produced a record to", TransactionEnded: "ended the transaction of", RuleAdded: "added a rule for", RuleRemoved: "removed a rule for",
	UserSet: "set the password of", UserDeleted: "deleted the password of", QuotaChanged: "changed", SecretRotated: "rotated the secret of",
}

// Line tells the entry in one line, without its time.
func (e *Entry) Line() string {
	var out strings.Builder
	what, known := did[e.Kind]
	switch {
	case e.Principal == "" && e.Host == "":
		out.WriteString("more clients than can be named: ")
		what = word(string(e.Kind))
	case !known: // It is of a later version.
		what = word(string(e.Kind))
		fallthrough
	default:
		out.WriteString(e.who() + " ")
	}
	out.WriteString(what)
	if e.Operation != "" {
		out.WriteString(" " + word(e.Operation) + " on")
	}
	if len(e.Resources) > 0 {
		out.WriteString(" " + e.resources())
	}
	if e.Mechanism != "" {
		out.WriteString(" by " + word(e.Mechanism))
	}
	if e.Request != "" && e.Kind != Login && e.Kind != LoginFailed {
		out.WriteString(" by " + word(e.Request))
	}
	if e.Reason != "" {
		out.WriteString(": " + word(e.Reason))
	}
	if e.Count > 0 {
		fmt.Fprintf(&out, "; %s in %s", words.Times(e.Count), words.Duration(max(e.Time.Sub(e.Since), time.Second)))
	}
	if e.LeftOut > 0 {
		fmt.Fprintf(&out, " (%s before this one %s missing)", entries(e.LeftOut), words.Verb(e.LeftOut, "is", "are"))
	}
	return out.String()
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}

// who words someone by name, address and client id, as far as they are known.
func (e *Entry) who() string {
	name := "an unknown client"
	if e.Principal != "" {
		name = word(e.Principal)
	}
	if e.Host != "" {
		name += " at " + word(e.Host)
	}
	if e.ClientID != "" {
		name += " (" + word(e.ClientID) + ")"
	}
	return name
}

// resources words the first few resources.
func (e *Entry) resources() string {
	names := make([]string, len(e.Resources))
	for i, r := range e.Resources {
		names[i] = strings.ReplaceAll(word(r.Type), "_", " ")
		if r.Name != "" {
			names[i] += " " + word(r.Name)
		}
		if r.Detail != "" {
			names[i] += " (" + word(r.Detail) + ")"
		}
	}
	return words.ListSome(names, e.ResourceN)
}

// word writes a text of a client's into a line. What could be taken for another line,
// or could steer a terminal, is quoted.
func word(s string) string {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}
