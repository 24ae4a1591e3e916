package auth

import (
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The parts of a name that RFC 2253 gives a keyword. All others are written as
// the number of their type and the bytes of their value.
var keywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

// The types of strings that Java takes for text, which asn1 does not all name.
const tagGeneralString = 27

type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// attributeSET has the name by which package asn1 knows a set.
type attributeSET []attribute

// maxSubject bounds the encoded name of a certificate. Real ones have hundreds of
// bytes; a certificate may have as many as the handshake lets through.
const maxSubject = 16 << 10

// SubjectName returns the name of a certificate, from its RawSubject, as Java's
// X500Principal.getName() writes it: RFC 2253, with Java's choice where the RFC
// leaves one. Kafka's rules and mapping rules are written for these names, and
// crypto/x509 writes others.
//
// Where Java would put a replacement character for bytes that are no UTF-8, the
// name is refused: two certificates would have one name.
func SubjectName(raw []byte) (string, error) {
	if len(raw) > maxSubject {
		return "", fmt.Errorf("the certificate's subject has %d bytes, more than %d", len(raw), maxSubject)
	}
	var parts []attributeSET
	rest, err := asn1.Unmarshal(raw, &parts)
	if err == nil && len(rest) > 0 {
		err = errors.New("bytes follow it")
	}
	if err != nil {
		return "", fmt.Errorf("the certificate's subject: %w", err)
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		if len(parts[i]) == 0 {
			return "", errors.New("the certificate's subject has a part without a value")
		}
		for n, a := range parts[i] {
			switch {
			case n > 0:
				b.WriteByte('+')
			case b.Len() > 0:
				b.WriteByte(',')
			}
			if err := a.write(&b); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

func (a attribute) write(b *strings.Builder) error {
	keyword, known := keywords[a.Type.String()]
	if !known || !isText(a.Value) {
		if !known {
			keyword = a.Type.String()
		}
		b.WriteString(keyword + "=#" + hex.EncodeToString(a.Value.FullBytes))
		return nil
	}
	if !utf8.Valid(a.Value.Bytes) {
		return fmt.Errorf("the certificate's subject has a %s that is not UTF-8: %q", keyword, a.Value.Bytes)
	}
	b.WriteString(keyword + "=")
	writeEscaped(b, string(a.Value.Bytes))
	return nil
}

func isText(v asn1.RawValue) bool {
	if v.Class != asn1.ClassUniversal || v.IsCompound {
		return false
	}
	switch v.Tag {
	case asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String, tagGeneralString, asn1.TagBMPString, asn1.TagUTF8String:
		return true
	}
	return false
}

// writeEscaped escapes what RFC 2253 uses itself, wherever it stands, and spaces
// at both ends.
func writeEscaped(b *strings.Builder, s string) {
	first := len(s) - len(strings.TrimLeft(s, " "))
	last := len(strings.TrimRight(s, " "))
	for i, c := range s {
		switch {
		case c == 0:
			b.WriteString(`\00`)
			continue
		case strings.ContainsRune(`,=+<>#;"\`, c), c == ' ' && (i < first || i >= last):
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
}
