// Package config knows every setting: its Kafka name, type, default and bounds.
//
// There is one table for the broker, one for topics and one for groups. Settings are kept as
// text under Kafka's names, as DescribeConfigs shows them; Broker and Topic
// give them typed. A topic setting that is not set falls back to the broker
// setting that Kafka names as its synonym, then to the default. Unknown names
// are refused with the nearest known one. The package does no I/O.
package config

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"muster/internal/words"
)

// Type is a setting's type, numbered as in DescribeConfigs.
type Type int8

// The types.
const (
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

// Def defines one setting.
type Def struct {
	Name    string
	Type    Type
	Default string
	Doc     string
	// Min and Max bound numbers; a Max of zero is none, and both zero are none.
	Min, Max float64
	// OneOf lists the allowed values, of each element if Type is List.
	OneOf []string
	// Synonym is the broker setting that a topic setting falls back to.
	Synonym string
	// Fallbacks are broker settings consulted, in order, when this one is not
	// set, each with the factor to this one's unit (hours to milliseconds).
	Fallbacks []Fallback
	// Static settings are read at start and cannot be altered.
	Static bool
	// Scope says for what else than the broker it can be set.
	Scope Scope
	// check, if there is one, says whether it allows a value.
	check func(value string) error
	// Inert settings are Kafka's and accepted, but mean nothing here.
	Inert bool
}

// Fallback is an older or coarser name of a setting.
type Fallback struct {
	Name   string
	Factor int64
}

// ErrInvalid is the error of a value that its setting does not allow.
type ErrInvalid struct{ Msg string }

func (e *ErrInvalid) Error() string { return e.Msg }

func invalid(format string, args ...any) error { return &ErrInvalid{Msg: fmt.Sprintf(format, args...)} }

// Check says whether value is allowed.
func (d *Def) Check(value string) error {
	if d.check != nil {
		return d.check(value)
	}
	switch d.Type {
	case Boolean:
		if value != "true" && value != "false" {
			return invalid("%s must be true or false, not %q", d.Name, value)
		}
	case Int, Short, Long:
		return d.checkInteger(value)
	case Double:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) {
			return invalid("%s must be a number, not %q", d.Name, value)
		}
		return d.checkBounds(f)
	case List:
		for _, e := range SplitList(value) {
			if err := d.checkOneOf(e); err != nil {
				return err
			}
		}
	default:
		return d.checkOneOf(value)
	}
	return nil
}

func (d *Def) checkInteger(value string) error {
	bits := map[Type]int{Int: 32, Short: 16, Long: 64}[d.Type]
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, bits)
	if err != nil {
		return invalid("%s must be a whole number of %d bits, not %q", d.Name, bits, value)
	}
	if err := d.checkOneOf(strconv.FormatInt(n, 10)); err != nil {
		return err
	}
	return d.checkBounds(float64(n))
}

func (d *Def) checkBounds(n float64) error {
	if d.Min == 0 && d.Max == 0 && d.Type != Double {
		return nil
	}
	if n < d.Min {
		return invalid("%s must be at least %v, not %v", d.Name, d.Min, n)
	}
	if d.Max != 0 && n > d.Max {
		return invalid("%s must be at most %v, not %v", d.Name, d.Max, n)
	}
	return nil
}

func (d *Def) checkOneOf(value string) error {
	if len(d.OneOf) == 0 || slices.Contains(d.OneOf, value) {
		return nil
	}
	known := slices.DeleteFunc(slices.Clone(d.OneOf), func(v string) bool { return v == "" })
	if len(known) < len(d.OneOf) {
		known = append(known, "empty")
	}
	return invalid("%s must be one of %s, not %q", d.Name, strings.Join(known, ", "), value)
}

// SplitList splits a setting of type List.
func SplitList(value string) []string {
	var out []string
	for e := range strings.SplitSeq(value, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// table is a list of definitions with its index.
type table struct {
	defs   []Def
	byName map[string]*Def
}

func newTable(defs []Def) *table {
	sort.Slice(defs, func(i, j int) bool { return defs[i].Name < defs[j].Name })
	t := &table{defs: defs, byName: make(map[string]*Def, len(defs))}
	for i := range defs {
		if t.byName[defs[i].Name] != nil {
			panic("two definitions of the setting " + defs[i].Name)
		}
		t.byName[defs[i].Name] = &defs[i]
	}
	return t
}

// check refuses unknown names and values that are not allowed.
func (t *table) check(kind, name, value string) error {
	d := t.byName[name]
	if d == nil {
		return t.unknown(kind, name)
	}
	return d.Check(value)
}

func (t *table) unknown(kind, name string) error {
	names := make([]string, len(t.defs))
	for i := range t.defs {
		names[i] = t.defs[i].Name
	}
	return invalid("unknown %s setting %q%s", kind, name, words.DidYouMean(name, names))
}
