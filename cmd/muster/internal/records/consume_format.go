package records

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
)

// recordWriter prints one record.
type recordWriter func(*kgo.Record) error

func newRecordWriter(out *bufio.Writer, flags *consumeFlags) (recordWriter, error) {
	if flags.JSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return func(r *kgo.Record) error { return e.Encode(newConsumedRecord(r)) }, nil
	}
	pieces, err := parseFormat(flags.format, flags.nullText)
	if err != nil {
		return nil, err
	}
	var line []byte
	return func(r *kgo.Record) error {
		line = line[:0]
		for _, piece := range pieces {
			line = piece(line, r)
		}
		_, err := out.Write(line)
		return err
	}, nil
}

// piece appends its part of a record to a line.
type piece func(line []byte, r *kgo.Record) []byte

func parseFormat(format, nullText string) ([]piece, error) {
	var pieces []piece
	for format != "" {
		text, rest, found := strings.Cut(format, "%")
		literal, err := unescape(text)
		if err != nil {
			return nil, cli.Usagef("--format: %s", err)
		}
		pieces = append(pieces, func(line []byte, _ *kgo.Record) []byte { return append(line, literal...) })
		if !found {
			break
		}
		if rest == "" {
			return nil, cli.Usagef("--format ends in a single %%; %%%% is a percent sign")
		}
		p, ok := formatPieces(nullText)[rest[0]]
		if !ok {
			return nil, cli.Usagef("--format has no %%%c; muster consume --help lists what it has", rest[0])
		}
		pieces = append(pieces, p)
		format = rest[1:]
	}
	return pieces, nil
}

func formatPieces(nullText string) map[byte]piece {
	orNull := func(line, text []byte) []byte {
		if text == nil {
			return append(line, nullText...)
		}
		return append(line, text...)
	}
	number := func(of func(*kgo.Record) int64) piece {
		return func(line []byte, r *kgo.Record) []byte { return strconv.AppendInt(line, of(r), 10) }
	}
	value := func(line []byte, r *kgo.Record) []byte { return orNull(line, r.Value) }
	valueLength := number(func(r *kgo.Record) int64 { return length(r.Value) })
	return map[byte]piece{
		'v': value, 's': value,
		'V': valueLength, 'S': valueLength,
		'k': func(line []byte, r *kgo.Record) []byte { return orNull(line, r.Key) },
		'K': number(func(r *kgo.Record) int64 { return length(r.Key) }),
		't': func(line []byte, r *kgo.Record) []byte { return append(line, r.Topic...) },
		'p': number(func(r *kgo.Record) int64 { return int64(r.Partition) }),
		'o': number(func(r *kgo.Record) int64 { return r.Offset }),
		'T': number(func(r *kgo.Record) int64 { return r.Timestamp.UnixMilli() }),
		'D': func(line []byte, r *kgo.Record) []byte {
			return r.Timestamp.UTC().AppendFormat(line, "2006-01-02T15:04:05.000Z07:00")
		},
		'h': appendHeaders,
		'%': func(line []byte, _ *kgo.Record) []byte { return append(line, '%') },
	}
}

// length is that of a text, -1 for null as in kcat.
func length(text []byte) int64 {
	if text == nil {
		return -1
	}
	return int64(len(text))
}

func appendHeaders(line []byte, r *kgo.Record) []byte {
	for i, h := range r.Headers {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(append(append(line, h.Key...), '='), h.Value...)
	}
	return line
}

// unescape replaces the escapes that --format and --key-separator know.
func unescape(text string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) {
			return "", fmt.Errorf(`%q ends in a single \; \\ is a backslash`, text)
		}
		at := strings.IndexByte(`ntr0\`, text[i])
		switch {
		case at >= 0:
			out.WriteByte("\n\t\r\x00\\"[at])
		case text[i] == 'x' && i+2 < len(text):
			n, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
			if err != nil {
				return "", fmt.Errorf(`\x needs two hexadecimal digits, not %q`, text[i+1:i+3])
			}
			out.WriteByte(byte(n))
			i += 2
		default:
			return "", fmt.Errorf(`there is no escape \%c; \\ is a backslash`, text[i])
		}
	}
	return out.String(), nil
}

// consumedRecord has the fields of muster consume --json.
type consumedRecord struct {
	Topic     string           `json:"topic"`
	Partition int32            `json:"partition"`
	Offset    int64            `json:"offset"`
	Timestamp int64            `json:"timestamp"`
	Key       *string          `json:"key"`
	Value     *string          `json:"value"`
	Headers   []consumedHeader `json:"headers,omitempty"`
	Encoding  string           `json:"encoding,omitempty"`
}

type consumedHeader struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
}

// newConsumedRecord makes the JSON form of a record. JSON holds only UTF-8, so
// a record with other bytes is in base64 throughout.
func newConsumedRecord(r *kgo.Record) consumedRecord {
	text := func(b []byte) string { return string(b) }
	out := consumedRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli()}
	if !isText(r) {
		text, out.Encoding = base64.StdEncoding.EncodeToString, "base64"
	}
	orNull := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := text(b)
		return &s
	}
	out.Key, out.Value = orNull(r.Key), orNull(r.Value)
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, consumedHeader{h.Key, orNull(h.Value)})
	}
	return out
}

func isText(r *kgo.Record) bool {
	for _, h := range r.Headers {
		if !utf8.Valid(h.Value) {
			return false
		}
	}
	return utf8.Valid(r.Key) && utf8.Valid(r.Value)
}
