package auth

import (
	"fmt"
	"strings"
	"unicode"
)

// The letters whose other case, to Java, is several letters or depends on what is
// around, such as the German sharp s. Where Java writes SS, a letter for a letter
// would be another user.
var (
	noSimpleUpper = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x00df, Hi: 0x00df, Stride: 1}, {Lo: 0x0149, Hi: 0x0149, Stride: 1}, {Lo: 0x01f0, Hi: 0x01f0, Stride: 1},
		{Lo: 0x0390, Hi: 0x0390, Stride: 1}, {Lo: 0x03b0, Hi: 0x03b0, Stride: 1}, {Lo: 0x0587, Hi: 0x0587, Stride: 1},
		{Lo: 0x1e96, Hi: 0x1e9a, Stride: 1}, {Lo: 0x1f50, Hi: 0x1fff, Stride: 1}, {Lo: 0xfb00, Hi: 0xfb17, Stride: 1},
	}}
	noSimpleLower = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x0130, Hi: 0x0130, Stride: 1}, {Lo: 0x03a3, Hi: 0x03a3, Stride: 1},
	}}
)

// changed returns a name in another case, or an error if it has a letter for which
// that would not be what Java makes of it.
func changed(name string, to func(string) string, not *unicode.RangeTable) (string, bool, error) {
	if i := strings.IndexFunc(name, func(c rune) bool { return unicode.Is(not, c) }); i >= 0 {
		return "", false, fmt.Errorf("the name %q has letters that have no simple other case", shorten(name))
	}
	return to(name), true, nil
}
