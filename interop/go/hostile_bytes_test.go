package interop

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("attacker"))

func pick[T any](from []T) T { return from[rand.IntN(len(from))] }

// request makes a frame of some version of an API, with any fields.
func request(api kmsg.ApiVersionsResponseApiKey) []byte {
	return requestOf(api.ApiKey, api.MinVersion+int16(rand.IntN(int(api.MaxVersion-api.MinVersion)+1)))
}

func requestOf(key, version int16) []byte {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	fill(reflect.ValueOf(req).Elem())
	return formatter.AppendRequest(nil, req, rand.Int32())
}

var (
	oddInts  = []int64{0, 0, 1, 1, 2, -1, -2, 100, math.MaxInt8, math.MaxInt16, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	oddTexts = []string{"prey", "prey", "prey", "", "x", "..", "__cluster_metadata", "ünïcödé", "max.message.bytes", strings.Repeat("long", 100)}
)

// fill sets all fields of a request to odd but encodable values.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(chance(2))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(pick(oddInts))
	case reflect.String:
		v.SetString(pick(oddTexts))
	case reflect.Pointer:
		if chance(2) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(rand.IntN(256)))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(batch{values: values("filled", 1+rand.IntN(3))}.encode())
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), rand.IntN(3), 3))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name != "Version" && f.Name != "UnknownTags" && f.IsExported() {
				fill(v.Field(i))
			}
		}
	default: // There are no others in requests, but for floats, which may stay 0.
	}
}

// mutate changes a frame's bytes behind key and version, keeping its length
// prefix right.
func mutate(frame []byte) []byte {
	const head = 12 // length, key, version, correlation id
	return framed(append(bytes.Clone(frame[4:head]), mutateBody(frame[head:])...))
}

// mutateBody changes, takes out, doubles or adds some bytes, or does nothing.
func mutateBody(b []byte) []byte {
	b = bytes.Clone(b)
	for range rand.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := rand.IntN(len(b))
		switch rand.IntN(6) {
		case 0:
			b[at] = byte(rand.Uint32())
		case 1:
			b[at] ^= 1 << rand.IntN(8)
		case 2:
			b = b[:at]
		case 3:
			b = append(b[:at], append(randomBytes(1+rand.IntN(8)), b[at:]...)...)
		case 4: // A huge number of four bytes.
			if at+4 <= len(b) {
				binary.BigEndian.PutUint32(b[at:], math.MaxInt32-rand.Uint32N(4))
			}
		case 5: // A huge varint.
			b = append(b[:at], append([]byte{0xff, 0xff, 0xff, 0xff, 0x07}, b[at:]...)...)
		}
	}
	return b
}

// bombs are batches of less than 1 MB with a record that unpacks to far more.
var bombs = sync.OnceValue(func() [][]byte {
	return [][]byte{
		bomb(1, 512<<20, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) }),
		bomb(3, 200<<20, func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil }),
		bomb(4, 1<<30, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }),
	}
})

func bomb(codec int16, size int64, compress func(io.Writer) (io.WriteCloser, error)) []byte {
	// A record with a key and a value of zeros: length, attributes, deltas, key,
	// value; the headers' count is one more zero at the end.
	body := []byte{0, 0, 0}
	body = append(binary.AppendVarint(body, 3), "key"...)
	body = binary.AppendVarint(body, size)
	start := binary.AppendVarint(nil, int64(len(body))+size+1)
	var out bytes.Buffer
	w, err := compress(&out)
	if err == nil {
		_, err = w.Write(append(start, body...))
	}
	zeros := make([]byte, 1<<20)
	for left := size + 1; left > 0 && err == nil; left -= int64(len(zeros)) {
		_, err = w.Write(zeros[:min(left, int64(len(zeros)))])
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // Compressing into memory does not fail.
	}
	b := batch{values: []string{""}, attributes: codec, timestamp: bombTime}.encodeAround(out.Bytes())
	binary.BigEndian.PutUint64(b[batchMaxTimestamp:], bombTime+1000)
	return seal(b)
}

// bombTime is the timestamp of the records in bombs. Their headers promise a
// later one.
const bombTime = 1_000_000
