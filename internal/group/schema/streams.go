package schema

// Endpoint is where an instance of a streams application answers queries.
type Endpoint struct {
	Host string
	Port uint16
}

// A structure that may be null begins with a byte that says whether it is there.
const (
	absentStruct  = -1
	presentStruct = 1
)

func endpointSize(e *Endpoint) int {
	if e == nil {
		return 1
	}
	return 1 + stringSize(e.Host) + 2 + 1
}

func appendEndpoint(b []byte, e *Endpoint) []byte {
	if e == nil {
		return append(b, 0xff)
	}
	return append(appendInt16(appendString(append(b, presentStruct), e.Host), int16(e.Port)), 0)
}

func (d *decoder) endpoint() *Endpoint {
	if d.int8() == absentStruct || d.err != nil {
		return nil
	}
	e := &Endpoint{Host: d.string(), Port: uint16(d.int16())}
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		d.tagged()
	}
	return e
}

// keyValuesSize is exact, as the length of a tagged field must be.
func keyValuesSize(list []KeyValue) int { return len(appendKeyValues(nil, list)) }

func appendKeyValues(b []byte, list []KeyValue) []byte {
	b = appendLength(b, len(list))
	for i := range list {
		b = list[i].append(b)
	}
	return b
}

// keyValues reads a list, of which null is empty.
func (d *decoder) keyValues() []KeyValue {
	n := d.length(minKeyValue)
	if n <= 0 {
		return nil
	}
	out := make([]KeyValue, n)
	for i := range out {
		out[i].read(d)
	}
	return out
}

// minKeyValue is what a pair of empty strings takes.
const minKeyValue = 3

func appendInt16s(b []byte, list []int16) []byte {
	b = appendLength(b, len(list))
	for _, n := range list {
		b = appendInt16(b, n)
	}
	return b
}

func (d *decoder) int16s() []int16 {
	n := d.elements(2)
	if n == 0 {
		return nil
	}
	out := make([]int16, n)
	for i := range out {
		out[i] = d.int16()
	}
	return out
}

// check forgets epochs that cannot be told which tasks they are of.
func (v *OwnedTasks) check() {
	if len(v.Epochs) != len(v.Partitions) {
		v.Epochs = nil
	}
}
