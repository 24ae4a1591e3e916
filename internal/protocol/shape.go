package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// shape is how a request of one key and version is laid out on the wire. It is
// used to look over a request before kmsg decodes it: kmsg allocates what an
// array's length claims and loops as often as a tag count claims, which a
// hostile client could make as large as it likes. The look costs no allocation,
// and tells how much memory the decoded request will take.
//
// Shapes are not written by hand but found out: the fields of kmsg's structs
// stand in wire order, and whether a version has a field shows when the field
// is changed and the request encoded.
type shape struct {
	kind     kind
	size     int     // of fixed
	elem     *shape  // of array
	fields   []shape // of structure
	flexible bool
	// minSize is the smallest encoding, which bounds how many elements of an
	// array there can be in the bytes that are left.
	minSize int
	// memory is the size of the element of an array when it is decoded.
	memory int
}

// Sizes of decoded things besides the bytes in them: a text, which is allocated
// by itself, and the map of tagged fields with one of its elements.
const (
	textMemory = 16
	tagsMemory = 352
	tagMemory  = 96
)

type kind int8

const (
	fixed kind = iota
	text       // string or bytes, nullable or not
	array
	structure
	nullable // a structure with a byte before it that says whether it is there
)

// tagged lists the fields that are not in the layout but among the tags, where
// they are looked over as opaque bytes.
var tagged = map[string]bool{
	"FetchRequest.ClusterID":                        true,
	"FetchRequest.ReplicaState":                     true,
	"FetchRequestTopicPartition.ReplicaDirectoryID": true,
	"FetchRequestTopicPartition.HighWatermark":      true,
}

// shapes has the shapes that were found out, by API key and version.
var shapes [128][32]atomic.Pointer[shape]

func shapeOf(key, version int16) *shape {
	if uint16(key) >= uint16(len(shapes)) || uint16(version) >= uint16(len(shapes[0])) {
		return probe(key, version) // There is no such request yet.
	}
	place := &shapes[key][version]
	s := place.Load()
	if s == nil {
		s = probe(key, version)
		place.Store(s)
	}
	return s
}

// prober finds out the shape of one request. root is the request, in which the
// path to the structure under examination is filled in.
type prober struct{ root kmsg.Request }

func probe(key, version int16) *shape {
	req := NewRequest(key)
	req.SetVersion(version)
	req.(interface{ Default() }).Default()
	p := prober{root: req}
	s := p.structure(reflect.ValueOf(req).Elem())
	return &s
}

func (p *prober) encoded() []byte { return p.root.AppendTo(nil) }

// structure examines a struct that is part of root.
func (p *prober) structure(v reflect.Value) shape {
	out := shape{kind: structure, flexible: p.root.IsFlexible()}
	if out.flexible {
		out.minSize = 1
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "Version" && v.Addr().Interface() == p.root || name == "UnknownTags" || tagged[v.Type().Name()+"."+name] {
			continue
		}
		if f, ok := p.field(v.Field(i)); ok {
			out.fields = append(out.fields, f)
			out.minSize += f.minSize
		}
	}
	return out
}

// field examines one field; false says that the version does not have it.
func (p *prober) field(v reflect.Value) (shape, bool) {
	before := p.encoded()
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	defer v.Set(old)
	out := shape{flexible: p.root.IsFlexible()}
	switch v.Kind() {
	case reflect.Bool:
		out.kind, out.size = fixed, 1
		v.SetBool(!v.Bool())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		out.kind, out.size = fixed, v.Type().Bits()/8
		v.SetInt(v.Int() ^ 1)
	case reflect.Uint16, reflect.Uint32:
		out.kind, out.size = fixed, v.Type().Bits()/8
		v.SetUint(v.Uint() ^ 1)
	case reflect.Float64:
		out.kind, out.size = fixed, 8
		v.SetFloat(v.Float() + 1)
	case reflect.Array:
		out.kind, out.size = fixed, v.Len()
		v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	case reflect.String:
		out.kind = text
		v.SetString(v.String() + "x")
	case reflect.Slice, reflect.Pointer:
		return p.indirect(v, before)
	case reflect.Struct:
		s := p.structure(v)
		return s, len(s.fields) > 0
	default:
		panic(fmt.Sprintf("kmsg field of unknown kind %s", v.Kind()))
	}
	out.minSize = out.size
	if out.kind == text {
		out.minSize = textMin(out.flexible, false)
	}
	return out, !bytes.Equal(before, p.encoded())
}

func textMin(flexible, isBytes bool) int {
	switch {
	case flexible:
		return 1
	case isBytes:
		return 4
	}
	return 2
}

// indirect examines slices and pointers.
func (p *prober) indirect(v reflect.Value, before []byte) (shape, bool) {
	out := shape{flexible: p.root.IsFlexible()}
	elem := v.Type().Elem()
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(elem))
		if d, ok := v.Interface().(interface{ Default() }); ok {
			d.Default()
		}
		if elem.Kind() == reflect.String {
			// An old version that cannot say null says "" for it.
			v.Elem().SetString("x")
		}
	} else {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	}
	there := !bytes.Equal(before, p.encoded())
	switch {
	case elem.Kind() == reflect.Uint8: // bytes
		out.kind, out.size, out.minSize = text, 4, textMin(out.flexible, true)
	case v.Kind() == reflect.Pointer && elem.Kind() == reflect.String:
		out.kind, out.minSize = text, textMin(out.flexible, false)
	case v.Kind() == reflect.Pointer && elem.Kind() == reflect.Struct:
		s := p.structure(v.Elem())
		out.kind, out.elem, out.minSize = nullable, &s, 1
	case v.Kind() == reflect.Slice:
		out.kind, out.minSize, out.memory = array, textMin(out.flexible, true), int(elem.Size())
		if there {
			s := p.element(v.Index(0))
			out.elem = &s
		}
	default:
		panic(fmt.Sprintf("kmsg field of unknown type %s", v.Type()))
	}
	return out, there
}

// element examines the element of an array.
func (p *prober) element(v reflect.Value) shape {
	if v.Kind() == reflect.Struct {
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		return p.structure(v)
	}
	s, _ := p.field(v)
	return s
}

// errMalformed says that a request does not follow its layout.
var errMalformed = fmt.Errorf("malformed request")

// walk looks over bytes laid out like s and returns what follows them. It adds to
// memory what they take when they are decoded.
func (s *shape) walk(b []byte, memory *int) ([]byte, error) {
	switch s.kind {
	case fixed:
		return skip(b, s.size)
	case text:
		return s.walkText(b, memory)
	case array:
		return s.walkArray(b, memory)
	case nullable:
		if len(b) == 0 {
			return nil, errMalformed
		}
		if int8(b[0]) < 0 {
			return b[1:], nil
		}
		return s.elem.walk(b[1:], memory)
	}
	var err error
	for i := range s.fields {
		if b, err = s.fields[i].walk(b, memory); err != nil {
			return nil, err
		}
	}
	if s.flexible {
		return walkTags(b, memory)
	}
	return b, nil
}

// uvarint reads an unsigned varint of at most 32 bits, as kmsg does; a width of
// zero or less says that there is none.
func uvarint(b []byte) (uint64, int) {
	v, w := binary.Uvarint(b)
	if w > 5 || v > math.MaxUint32 {
		return 0, 0
	}
	return v, w
}

func skip(b []byte, n int) ([]byte, error) {
	if n > len(b) || n < 0 {
		return nil, errMalformed
	}
	return b[n:], nil
}

// walkText skips a string or bytes; size 4 says that it is bytes, whose length
// has four bytes in old versions, and which stay in the frame. By Kafka's rule no
// string is longer than old versions can say, though newer ones could: records, old
// answers and other brokers have to say it too.
func (s *shape) walkText(b []byte, memory *int) ([]byte, error) {
	var n int
	switch {
	case s.flexible:
		u, w := uvarint(b)
		if w <= 0 || u > uint64(len(b))+1 {
			return nil, errMalformed
		}
		n, b = int(u)-1, b[w:]
	case s.size == 4:
		if len(b) < 4 {
			return nil, errMalformed
		}
		n, b = int(int32(binary.BigEndian.Uint32(b))), b[4:]
	default:
		if len(b) < 2 {
			return nil, errMalformed
		}
		n, b = int(int16(binary.BigEndian.Uint16(b))), b[2:]
	}
	if s.size != 4 && n > math.MaxInt16 {
		return nil, errMalformed
	}
	if s.size != 4 && n >= 0 {
		*memory += textMemory + n
	}
	return skip(b, max(n, 0))
}

func (s *shape) walkArray(b []byte, memory *int) ([]byte, error) {
	var n int64
	if s.flexible {
		u, w := uvarint(b)
		if w <= 0 || u > uint64(len(b)) {
			return nil, errMalformed
		}
		n, b = int64(u)-1, b[w:]
	} else {
		if len(b) < 4 {
			return nil, errMalformed
		}
		n, b = int64(int32(binary.BigEndian.Uint32(b))), b[4:]
	}
	if n*int64(max(s.elem.minSize, 1)) > int64(len(b)) {
		return nil, errMalformed
	}
	*memory += int(max(n, 0)) * (s.memory + s.memory/8) // The allocator rounds up.
	var err error
	for range n {
		if b, err = s.elem.walk(b, memory); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// walkTags skips tagged fields. A tag takes two bytes at least.
func walkTags(b []byte, memory *int) ([]byte, error) {
	count, w := uvarint(b)
	if w <= 0 || count > uint64(len(b))/2 {
		return nil, errMalformed
	}
	b = b[w:]
	if count > 0 {
		*memory += tagsMemory + int(count)*tagMemory
	}
	for range count {
		_, w := uvarint(b)
		if w <= 0 {
			return nil, errMalformed
		}
		size, v := uvarint(b[w:])
		if v <= 0 || size > uint64(len(b)-w-v) {
			return nil, errMalformed
		}
		b = b[w+v+int(size):]
	}
	return b, nil
}
