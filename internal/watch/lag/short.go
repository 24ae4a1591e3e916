package lag

import "math/bits"

// short is a number that is not negative in 16 bits: 6 for the exponent and 10 for
// the fraction, as a float. Numbers below 2,048 are exact, others are off by less than
// 0.05 %. Larger numbers have larger codes, so that codes can be compared.
type short uint16

// gap is no number: nothing was seen at that time.
const gap short = 1<<16 - 1

const (
	fractionBits = 10
	fraction     = 1 << fractionBits
)

// shorten returns the nearest number that there is. What is negative becomes 0.
func shorten(n int64) short {
	if n < fraction {
		return short(max(n, 0))
	}
	u := uint64(n)
	shift := bits.Len64(u) - fractionBits - 1
	if shift > 0 {
		u = (u>>(shift-1) + 1) >> 1 // Rounded; it may become the next power of two.
	}
	if u == 2*fraction {
		u, shift = fraction, shift+1
	}
	return short((shift+1)<<fractionBits | int(u-fraction))
}

// value returns the number, which is not a gap. The largest may have been rounded
// beyond what an int64 holds.
func (s short) value() int64 {
	exponent, f := int(s>>fractionBits), uint64(s&(fraction-1))
	if exponent == 0 {
		return int64(f)
	}
	u := (fraction + f) << (exponent - 1)
	if exponent > 63-fractionBits {
		return 1<<63 - 1
	}
	return int64(u)
}

// seconds returns an age. In rings they are in milliseconds, from one to centuries.
func seconds(s short) float64 { return float64(s.value()) / 1000 }
