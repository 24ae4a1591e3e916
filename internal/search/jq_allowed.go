package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// allowed are the functions that an expression may call, by name, with how many
// arguments. They are those of gojq that take no more for a value than to look at it
// once, and not into it; those that are defined by such ones; and ours.
var allowed = map[string][]int{
	"empty": {0}, "not": {0}, "select": {1}, "map": {1}, "any": {0, 1, 2}, "all": {0, 1, 2},
	"first": {0, 1}, "last": {0, 1}, "limit": {2}, "isempty": {1}, "range": {1, 2, 3}, "repeat": {1}, "recurse": {0, 1}, "until": {2}, "while": {2},
	"length": {0}, "utf8bytelength": {0}, "keys": {0}, "has": {1}, "type": {0}, "to_entries": {0},
	"values": {0}, "nulls": {0}, "booleans": {0}, "numbers": {0}, "strings": {0}, "arrays": {0}, "objects": {0}, "iterables": {0}, "scalars": {0},
	"startswith": {1}, "endswith": {1}, "ltrimstr": {1}, "rtrimstr": {1}, "ascii_downcase": {0}, "ascii_upcase": {0}, "trim": {0}, "ltrim": {0}, "rtrim": {0}, "split": {1},
	"floor": {0}, "ceil": {0}, "round": {0}, "fabs": {0}, "sqrt": {0}, "now": {0}, "todate": {0}, "fromdate": {0},
	"test": {1, 2}, "contains": {1}, "inside": {1}, "tonumber": {0}, "tostring": {0}, "tojson": {0}, "fromjson": {0}, "add": {0}, "min": {0}, "max": {0},
}

// ours are the functions that stand for those of the same name.
var ours = []string{"test", "contains", "inside", "tonumber", "tostring", "tojson", "fromjson", "add", "min", "max", "ascii_downcase", "ascii_upcase", "split", "keys"}

// definitions are those of gojq that go through values, with our each in the place of .[].
const definitions = `
def map(f): [_muster_each | f];
def recurse: recurse(_muster_each?);
def any(y): any(_muster_each; y);
def any: any(.);
def all(y): all(_muster_each; y);
def all: all(.);
def to_entries: [(_muster_keys | _muster_each) as $k | {key: $k, value: .[$k]}];
.`

// define has an expression that is allowed use our definitions.
func define(q *gojq.Query) {
	d, err := gojq.Parse(definitions)
	if err != nil {
		panic("definitions of jq: " + err.Error())
	}
	q.FuncDefs = d.FuncDefs
}

// prefix is before the names of our functions, so that none is taken for one of gojq.
const prefix = "_muster_"

// operators are our functions that stand for operators.
var operators = map[gojq.Operator]string{
	gojq.OpAdd: "plus", gojq.OpSub: "minus", gojq.OpMul: "times", gojq.OpDiv: "over", gojq.OpMod: "modulo",
	gojq.OpEq: "equal", gojq.OpNe: "notequal", gojq.OpGt: "greater", gojq.OpLt: "less", gojq.OpGe: "greatereq", gojq.OpLe: "lesseq",
}

var (
	errStatements = errors.New("def, reduce, foreach, label, import and formats are not to be had here")
	errText       = errors.New(`text is made of text with +; "\( )" is not to be had here`)
	errIndex      = errors.New("in brackets stand numbers and texts, nothing that is computed")
	errPattern    = errors.New("as takes one variable at a time")
)

// allow says whether an expression has only what may be, and puts our functions into
// the places of those that take without bound.
func allow(q *gojq.Query) error {
	switch {
	case q == nil:
		return nil
	case q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0:
		return errStatements
	case q.Term != nil:
		return allowTerm(q.Term)
	}
	for _, p := range q.Patterns {
		if p.Name == "" || len(q.Patterns) > 1 {
			return errPattern
		}
	}
	if err := errors.Join(allow(q.Left), allow(q.Right)); err != nil {
		return err
	}
	switch q.Op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpAnd, gojq.OpOr, gojq.OpAlt:
		return nil
	}
	name, ok := operators[q.Op]
	if !ok {
		return fmt.Errorf("%s changes something, and nothing is changed here", q.Op)
	}
	*q = gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: prefix + name, Args: []*gojq.Query{q.Left, q.Right}}}}
	return nil
}

func allowTerm(t *gojq.Term) error {
	for _, s := range t.SuffixList {
		if err := allowIndex(s.Index); err != nil {
			return err
		}
	}
	err := allowBare(t)
	goThrough(t)
	return err
}

// goThrough puts our each into the places of .[]: that makes a list of all that it goes
// through, four times as large as what is there, and keeps it until it is through.
func goThrough(t *gojq.Term) {
	i := slices.IndexFunc(t.SuffixList, func(s *gojq.Suffix) bool { return s.Iter })
	if i < 0 {
		return
	}
	of, rest := *t, t.SuffixList[i+1:]
	of.SuffixList = t.SuffixList[:i]
	each := &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: prefix + "each"}}
	if len(rest) > 0 && rest[0].Optional {
		each.SuffixList, rest = rest[:1], rest[1:] // The question mark is about .[] alone.
	}
	pipe := &gojq.Query{Left: &gojq.Query{Term: &of}, Op: gojq.OpPipe, Right: &gojq.Query{Term: each}}
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: pipe, SuffixList: rest}
	goThrough(t)
}

// allowBare is allowTerm without what follows the term in dots and brackets.
func allowBare(t *gojq.Term) error {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse:
		return nil
	case gojq.TermTypeIndex:
		return allowIndex(t.Index)
	case gojq.TermTypeFunc:
		return allowFunc(t.Func)
	case gojq.TermTypeObject:
		return allowObject(t.Object)
	case gojq.TermTypeArray:
		return allow(t.Array.Query)
	case gojq.TermTypeNumber:
		if len(t.Number) > 20 {
			return errors.New("a number is longer than any")
		}
		return nil
	case gojq.TermTypeUnary:
		return allowTerm(t.Unary.Term)
	case gojq.TermTypeString:
		return allowText(t.Str)
	case gojq.TermTypeIf:
		return allowIf(t.If)
	case gojq.TermTypeTry:
		return errors.Join(allow(t.Try.Body), allow(t.Try.Catch))
	case gojq.TermTypeQuery:
		return allow(t.Query)
	}
	return errStatements
}

func allowFunc(f *gojq.Func) error {
	if strings.HasPrefix(f.Name, "$") {
		if f.Name == "$ENV" || f.Name == "$__loc__" {
			return fmt.Errorf("%s is not to be had here", f.Name)
		}
		return nil
	}
	if !slices.Contains(allowed[f.Name], len(f.Args)) {
		return fmt.Errorf("%s/%d is not to be had here", cutText(f.Name, 40), len(f.Args))
	}
	if slices.Contains(ours, f.Name) {
		f.Name = prefix + f.Name
	}
	for _, arg := range f.Args {
		if err := allow(arg); err != nil {
			return err
		}
	}
	return nil
}

func allowIndex(i *gojq.Index) error {
	if i == nil {
		return nil
	}
	for _, q := range []*gojq.Query{i.Start, i.End} {
		if q == nil {
			continue
		}
		t := q.Term
		if t != nil && t.Type == gojq.TermTypeUnary {
			t = t.Unary.Term
		}
		if t == nil || len(t.SuffixList) > 0 || t.Type != gojq.TermTypeNumber && t.Type != gojq.TermTypeString || allowTerm(t) != nil {
			return errIndex
		}
	}
	return allowText(i.Str)
}

func allowObject(o *gojq.Object) error {
	for _, kv := range o.KeyVals {
		if strings.HasPrefix(kv.Key, "$ENV") || strings.HasPrefix(kv.Key, "$__loc__") {
			return fmt.Errorf("%s is not to be had here", kv.Key)
		}
		if err := errors.Join(allowText(kv.KeyString), allow(kv.KeyQuery), allow(kv.Val)); err != nil {
			return err
		}
	}
	return nil
}

func allowText(s *gojq.String) error {
	if s != nil && s.Queries != nil {
		return errText
	}
	return nil
}

func allowIf(i *gojq.If) error {
	err := errors.Join(allow(i.Cond), allow(i.Then), allow(i.Else))
	for _, e := range i.Elif {
		err = errors.Join(err, allow(e.Cond), allow(e.Then))
	}
	return err
}
