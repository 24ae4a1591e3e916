// Package assert has what tests demand of values, in one line each: what was
// got comes first, then what is wanted, then, if the line alone does not tell,
// what it is about: a format and its arguments. Must and what begins with it end
// the test, the others let it go on.
package assert

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// T is a test, a benchmark, or what a property or a contract takes for one.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Must ends the test if there is an error.
func Must(t T, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s%v", prefix(about), err)
	}
}

func NoError(t T, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s%v", prefix(about), err)
	}
}

func Error(t T, err error, about ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%sno error", prefix(about))
	}
}

func MustError(t T, err error, about ...any) {
	t.Helper()
	if err == nil {
		t.Fatalf("%sno error", prefix(about))
	}
}

// True says why when it does not hold.
func True(t T, holds bool, why string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(why, args...)
	}
}

func MustTrue(t T, holds bool, why string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(why, args...)
	}
}

// False says why when it does hold.
func False(t T, holds bool, why string, args ...any) {
	t.Helper()
	if holds {
		t.Errorf(why, args...)
	}
}

func MustFalse(t T, holds bool, why string, args ...any) {
	t.Helper()
	if holds {
		t.Fatalf(why, args...)
	}
}

func Equal[V comparable](t T, got, want V, about ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s", differ(got, want, about))
	}
}

func MustEqual[V comparable](t T, got, want V, about ...any) {
	t.Helper()
	if got != want {
		t.Fatalf("%s", differ(got, want, about))
	}
}

// EqualSlices takes nil for an empty slice.
func EqualSlices[S ~[]E, E comparable](t T, got, want S, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s", differ(got, want, about))
	}
}

func MustEqualSlices[S ~[]E, E comparable](t T, got, want S, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s", differ(got, want, about))
	}
}

// EqualMaps takes nil for an empty map.
func EqualMaps[M ~map[K]V, K, V comparable](t T, got, want M, about ...any) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s", differ(got, want, about))
	}
}

func MustEqualMaps[M ~map[K]V, K, V comparable](t T, got, want M, about ...any) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("%s", differ(got, want, about))
	}
}

// DeepEqual compares as package reflect does.
func DeepEqual(t T, got, want any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", differ(got, want, about))
	}
}

func MustDeepEqual(t T, got, want any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s", differ(got, want, about))
	}
}

func ErrorIs(t T, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s", differ(err, want, about))
	}
}

func MustErrorIs(t T, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s", differ(err, want, about))
	}
}

func Contains(t T, got, part string, about ...any) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%slacks %q:\n%s", prefix(about), part, got)
	}
}

// differ says what two values are: texts of several lines below each other.
func differ(got, want any, about []any) string {
	g, w := show(got), show(want)
	if strings.Contains(g+w, "\n") {
		return fmt.Sprintf("%sgot\n%s\nwant\n%s", prefix(about), g, w)
	}
	return fmt.Sprintf("%sgot %s, want %s", prefix(about), g, w)
}

func show(v any) string {
	if s, ok := v.(string); ok && !strings.Contains(s, "\n") {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%+v", v)
}

func prefix(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return fmt.Sprintf(about[0].(string), about[1:]...) + ": "
}
