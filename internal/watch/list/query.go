package list

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// Limits of a query: whoever asks, an answer takes milliseconds and no more than a page.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
	MaxText      = 256   // Bytes to look for in names.
	MaxValues    = 32    // Of a filter.
	maxCursor    = 48000 // The longest name has 32,767 bytes.
)

// Query is what someone asks for. Filters that are empty let all pass; of several
// values one must fit, and all filters must.
type Query struct {
	Text     string // A part of the name, in large or small letters.
	States   []string
	Types    []string
	Findings []string
	Found    bool // Only groups with findings.
	Topic    string
	Sees     func(name string) bool // Says which groups may be shown; nil for all.
	Sort     Sort
	Reverse  bool
	Limit    int    // 0 is DefaultLimit.
	After    string // The cursor of the page before.
}

// Page is an answer.
type Page struct {
	Groups  []*GroupRow // They are the index's: do not change them.
	Next    string      // The cursor of the next page; empty if this is the last.
	Matched int         // How many groups the filters let pass. Only of the first page, else -1.
	Total   int         // How many groups there are; -1 if not all may be shown.
}

// What is wrong with a query.
var (
	ErrCursor = errors.New("the cursor is not one that this list gave")
	ErrQuery  = errors.New("the query is too long or its limit out of range")
)

// Find answers a query.
func (x *Index) Find(q *Query) (*Page, error) {
	limit := cmp.Or(q.Limit, DefaultLimit)
	if limit < 0 || limit > MaxLimit || q.Sort >= sorts || len(q.Text) > MaxText || max(len(q.States), len(q.Types), len(q.Findings)) > MaxValues {
		return nil, ErrQuery
	}
	order := x.order(q.Sort)
	from := 0
	page := &Page{Groups: make([]*GroupRow, 0, limit), Matched: -1, Total: len(x.groups)}
	if q.Sees != nil {
		page.Total = -1
	}
	if q.After != "" {
		value, name, err := q.cursor()
		if err != nil {
			return nil, err
		}
		from = x.after(q, value, name)
	}
	matches, matched := x.matching(q)
	if q.After == "" {
		page.Matched = matched
	}
	for i := from; i < len(order) && page.Next == ""; i++ {
		at := order[i]
		if q.Reverse {
			at = order[len(order)-1-i]
		}
		switch {
		case len(matches) > 0 && !matches[at]:
		case len(page.Groups) < limit:
			page.Groups = append(page.Groups, x.groups[at])
		default:
			page.Next = q.next(page.Groups[limit-1])
		}
	}
	return page, nil
}

// matching says which groups the filters let pass, and how many; nil is all. Groups are
// visited as they lie in memory: in the order of the list that takes several times as
// long.
func (x *Index) matching(q *Query) ([]bool, int) {
	if q.Text == "" && len(q.States)+len(q.Types)+len(q.Findings) == 0 && !q.Found && q.Topic == "" && q.Sees == nil {
		return nil, len(x.groups)
	}
	out, n := make([]bool, len(x.groups)), 0
	if q.Text != "" {
		x.fold()
	}
	text := strings.ToLower(q.Text)
	for i := range x.groups {
		if (text == "" || strings.Contains(x.folded[i], text)) && x.matches(q, i) {
			out[i] = true
			n++
		}
	}
	return out, n
}

// after returns the first place after a sort value and name.
func (x *Index) after(q *Query, value uint64, name string) int {
	i, _ := slices.BinarySearchFunc(x.order(q.Sort), 0, func(at int32, _ int) int {
		s := x.groups[at]
		c := cmp.Or(cmp.Compare(s.value(q.Sort), value), cmp.Compare(s.Name, name))
		if c == 0 && !q.Reverse {
			return -1 // It was on the page before.
		}
		return cmp.Or(c, 1)
	})
	if q.Reverse {
		return len(x.groups) - i
	}
	return i
}

func (x *Index) matches(q *Query, at int) bool {
	s := x.groups[at]
	has := func(wanted []string, value string) bool { return len(wanted) == 0 || slices.Contains(wanted, value) }
	if !has(q.States, s.State) || !has(q.Types, s.Type) || q.Found && len(s.Findings) == 0 {
		return false
	}
	if q.Topic != "" && !slices.Contains(s.Topics, q.Topic) {
		return false
	}
	if len(q.Findings) > 0 && !slices.ContainsFunc(s.Findings, func(id string) bool { return slices.Contains(q.Findings, id) }) {
		return false
	}
	return q.Sees == nil || q.Sees(s.Name)
}

// next is the cursor after a group: what the list is sorted by, its value and its name.
func (q *Query) next(s *GroupRow) string {
	b := append([]byte{byte(q.Sort)}, make([]byte, 8)...)
	binary.BigEndian.PutUint64(b[1:], s.value(q.Sort))
	return base64.RawURLEncoding.EncodeToString(append(b, s.Name...))
}

func (q *Query) cursor() (value uint64, name string, err error) {
	if len(q.After) > maxCursor {
		return 0, "", ErrCursor
	}
	b, err := base64.RawURLEncoding.DecodeString(q.After)
	if err != nil || len(b) < 9 || b[0] != byte(q.Sort) {
		return 0, "", ErrCursor
	}
	return binary.BigEndian.Uint64(b[1:]), string(b[9:]), nil
}

// Cursor is the cursor after a group. Its bytes, decoded, are in the order of the list, so
// that pages of several indexes can be merged by their cursors.
func (q *Query) Cursor(s *GroupRow) string { return q.next(s) }
