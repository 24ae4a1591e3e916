package sasl

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// maxScram bounds a SCRAM message. Kafka's names are short; the rest of a message
// takes a few hundred bytes.
const maxScram = 4096

// A clientFirst is the first message of a SCRAM client (RFC 5802, section 7).
type clientFirst struct {
	header    string // The GS2 header, which the client repeats under its proof.
	authzid   string
	name      string
	nonce     string
	bare      string // All after the header.
	tokenAuth bool   // Kafka's extension for delegation tokens.
}

// parseClientFirst reads gs2-header, name, nonce and extensions. A client that
// demands channel binding is refused, because we offer none; so is the
// attribute m, as RFC 5802 demands.
func parseClientFirst(message []byte) (clientFirst, error) {
	var m clientFirst
	if len(message) > maxScram {
		return m, errTooLong
	}
	text := string(message)
	header, authzid, bare, ok := cutHeader(text)
	if !ok {
		return m, errMessage
	}
	m.header, m.authzid, m.bare = header, authzid, bare

	attributes := strings.Split(bare, ",")
	if len(attributes) < 2 {
		return m, errMessage
	}
	name, isName := strings.CutPrefix(attributes[0], "n=")
	nonce, isNonce := strings.CutPrefix(attributes[1], "r=")
	if !isName || !isNonce || !isPrintable(nonce) {
		return m, errMessage
	}
	if m.name, ok = decodeName(name); !ok {
		return m, errMessage
	}
	m.nonce = nonce
	for _, attribute := range attributes[2:] {
		key, value, ok := cutExtension(attribute)
		if !ok {
			return m, errMessage
		}
		if key == "tokenauth" && strings.EqualFold(value, "true") {
			m.tokenAuth = true
		}
	}
	return m, nil
}

// cutHeader takes the GS2 header from a message: the flag of channel binding and
// the authorization id. The flag is n, or y from a client that could bind to a
// channel and saw that we do not offer it.
func cutHeader(text string) (header, authzid, rest string, ok bool) {
	flag, after, _ := strings.Cut(text, ",")
	id, rest, found := strings.Cut(after, ",")
	if !found || flag != "n" && flag != "y" {
		return "", "", "", false
	}
	if id != "" {
		name, isID := strings.CutPrefix(id, "a=")
		if authzid, ok = decodeName(name); !isID || !ok {
			return "", "", "", false
		}
	}
	return text[:len(text)-len(rest)], authzid, rest, true
}

// A clientFinal is the second message of a SCRAM client.
type clientFinal struct {
	binding      []byte
	nonce        string
	proof        []byte
	withoutProof string
}

func parseClientFinal(message []byte) (clientFinal, error) {
	var m clientFinal
	if len(message) > maxScram {
		return m, errTooLong
	}
	text := string(message)
	end := strings.LastIndex(text, ",p=")
	if end < 0 {
		return m, errMessage
	}
	m.withoutProof = text[:end]
	var ok bool
	if m.proof, ok = decodeBase64(text[end+len(",p="):]); !ok {
		return m, errMessage
	}
	attributes := strings.Split(m.withoutProof, ",")
	if len(attributes) < 2 {
		return m, errMessage
	}
	binding, isBinding := strings.CutPrefix(attributes[0], "c=")
	nonce, isNonce := strings.CutPrefix(attributes[1], "r=")
	if !isBinding || !isNonce || !isPrintable(nonce) {
		return m, errMessage
	}
	if m.binding, ok = decodeBase64(binding); !ok {
		return m, errMessage
	}
	for _, attribute := range attributes[2:] {
		if _, _, ok := cutExtension(attribute); !ok {
			return m, errMessage
		}
	}
	m.nonce = nonce
	return m, nil
}

// binds says whether the client repeated the header of its first message.
// franz-go and others repeat "n,," even where they sent an authorization id; that
// is harmless, since the id must be the user's own, and Kafka does not look.
func (m clientFinal) binds(header string) bool {
	return string(m.binding) == header || header[0] == 'n' && bytes.Equal(m.binding, []byte("n,,"))
}

// decodeName undoes the escapes of a saslname: =2C is a comma and =3D an equals
// sign, and no other equals sign may stand there.
func decodeName(s string) (string, bool) {
	if s == "" || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00,") {
		return "", false
	}
	var out strings.Builder
	for {
		plain, escaped, found := strings.Cut(s, "=")
		out.WriteString(plain)
		if !found {
			return out.String(), true
		}
		switch {
		case strings.HasPrefix(escaped, "2C"):
			out.WriteByte(',')
		case strings.HasPrefix(escaped, "3D"):
			out.WriteByte('=')
		default:
			return "", false
		}
		s = escaped[2:]
	}
}

// cutExtension splits an attribute of letters, "=" and a value. The attribute m
// is reserved for extensions that must be understood, and we know none.
func cutExtension(s string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(s, "=")
	if !ok || key == "m" || !isLetters(key) || value == "" || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		return "", "", false
	}
	return key, value, true
}

func isLetters(s string) bool {
	for _, c := range []byte(s) {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return s != ""
}

// isPrintable says whether s may be a nonce: printable ASCII without a comma.
func isPrintable(s string) bool {
	for _, c := range []byte(s) {
		if c < 0x21 || c > 0x7e || c == ',' {
			return false
		}
	}
	return s != ""
}

// decodeBase64 is strict: no line ends, and no two spellings of the same bytes.
func decodeBase64(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	out, err := base64.StdEncoding.Strict().DecodeString(s)
	return out, err == nil
}
