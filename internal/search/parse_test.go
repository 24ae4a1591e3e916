package search

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPathsLeadToValues(t *testing.T) {
	const value = `{"order":{"lines":[{"sku":"a","n":1},{"sku":"b","n":2.50}],"product id":"x","it's":true},"list":[[1],[2,3]],"none":null}`
	for _, c := range []struct {
		path, is, text string
		want           bool
	}{
		{"$.order.lines[0].sku", "", "a", true}, {"order.lines[-1].sku", "", "b", true}, {"$.order.lines[2].sku", "", "a", false}, {"$.order.lines[*].sku", "", "b", true},
		{"$.order['product id']", "", "x", true}, {`$.order["it's"]`, "", "true", true}, {`$.order['it\'s']`, "", "true", true}, {"$.list[*][*]", "", "3", true}, {"$.list.*", "", "3", false},
		{"$.order.lines[1].n", "", "2.5", true}, {"$.order.lines[1].n", "contains", "2.5", true}, {"$.order.lines[*].n", "regexp", "^1$", true}, {"$.none", "null", "", true}, {"$.order", "exists", "", true}, {"$.nothing", "exists", "", false},
		{"$.nothing", "", "", false}, {"$", "", "", true}, {"$.order", "", "x", false},
	} {
		f := aFilter(t, Spec{Path: c.path, PathIs: c.is, PathValue: c.text})
		if found, _, err := f.match(&Record{Value: []byte(value)}, time.Now().Add(time.Hour)); found != c.want || err != nil {
			t.Errorf("%s %s %q: %v, %v", c.path, c.is, c.text, found, err)
		}
	}
	for _, text := range []string{"$..a", "$.", "$[", "$[a]", "$['a", "$['a'", "$['a'x", "$a]", "$[99999999999]", strings.Repeat("[0]", 65), strings.Repeat("a", 2000)} {
		if _, err := NewFilter(&Spec{Path: text}, time.Now); err == nil && text != "$a]" {
			t.Errorf("%.40q is taken", text)
		}
	}
}

func TestConditionsTellNullFromEmpty(t *testing.T) {
	for _, c := range []struct {
		is, text string
		of       []byte
		want     bool
	}{
		{Null, "", nil, true}, {Null, "", []byte{}, false}, {Exists, "", []byte{}, true}, {Exists, "", nil, false}, {Equals, "", []byte{}, true}, {Equals, "", nil, false},
		{Contains, "b", []byte("abc"), true}, {Contains, "B", []byte("abc"), false}, {Regexp, "(?i)B", []byte("abc"), true}, {Regexp, "", nil, false},
	} {
		f := aFilter(t, Spec{KeyIs: c.is, Key: c.text})
		if found, _, _ := f.match(&Record{Key: c.of}, time.Now().Add(time.Hour)); found != c.want {
			t.Errorf("%s %q of %q: %v", c.is, c.text, c.of, found)
		}
	}
	for _, s := range []Spec{{KeyIs: "like"}, {KeyIs: Regexp, Key: "("}, {KeyIs: Regexp, Key: strings.Repeat("a", 1<<20)}, {KeyIs: Null, Key: "x"}, {HeaderValue: "x"}, {PathValue: "x"}, {Header: strings.Repeat("a", 2000)}, {ValueIs: Regexp, Value: "a{1000}{1000}"}} {
		if _, err := NewFilter(&s, time.Now); err == nil {
			t.Errorf("%.60v is taken", s)
		}
	}
}

// A long pattern in a long text ends with the time that it has.
func TestALongPatternInALongTextEndsInTime(t *testing.T) {
	f := aFilter(t, Spec{ValueIs: Regexp, Value: strings.Repeat("(x*y?)*", 100) + "z"})
	value := []byte(strings.Repeat("xy", 8<<20))
	looked := 0
	f.now = func() time.Time { looked++; return time.Now() }
	if found, _, _ := f.match(&Record{Value: value}, time.Now()); found || looked == 0 || looked > 10 {
		t.Errorf("found %v after %d looks at the clock", found, looked)
	}
}

func TestHashesAreThoseOfProducers(t *testing.T) {
	p := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for i := range 500 {
		key := []byte(strings.Repeat("k", i%13) + fmt.Sprint(i))
		if got, want := PartitionOf(key, 7), p.Partition(&kgo.Record{Key: key}, 7); int(got) != want {
			t.Errorf("%s goes to %d, not %d", key, want, got)
		}
	}
}

func TestPartitionsAreNamed(t *testing.T) {
	for text, want := range map[string]string{"": "[0 1 2]", "1": "[1]", "0,2": "[0 2]", "1-2,1": "[1 2]", "3": "", "-1": "", "2-1": "", "a": "", "0-4000000000": ""} {
		var list []string
		if text != "" {
			list = strings.Split(text, ",")
		}
		got, err := ParsePartitions(list, 3)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	if _, err := ParsePartitions(nil, 1000); err == nil {
		t.Error("all of a thousand are taken")
	}
}

func TestCursorsGoOnWhereTheyWere(t *testing.T) {
	c := &Cursor{Question: 1 << 63, Newest: true, Searched: 5, Found: 3, Total: 1 << 40}
	for p := range int32(MaxPartitions) {
		c.Spans = append(c.Spans, Span{p * 3, 1 << 61, 1<<62 + int64(p)})
	}
	text := c.String()
	got, err := ParseCursor(text)
	if err != nil || !reflect.DeepEqual(got, c) || len(text) > 5000 {
		t.Errorf("%d bytes are %+v, %v", len(text), got, err)
	}
	for i := range text {
		if _, err := ParseCursor(text[:i]); err == nil {
			t.Fatalf("the first %d bytes are a cursor", i)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add((&Cursor{Total: -1, Spans: []Span{{0, 0, 10}, {5, 1 << 40, 1 << 41}}}).String())
	f.Add("AQEAAAAAAAAAAMgBQAEABJYCAAJIAADFArI67EI")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor(text)
		if err != nil {
			return
		}
		last := int32(-1)
		for _, s := range c.Spans {
			if s.Low < 0 || s.High < s.Low || s.Partition <= last {
				t.Fatalf("the span %+v", s)
			}
			last = s.Partition
		}
		if again, err := ParseCursor(c.String()); err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, text := range []string{"$.a.b[0]['x']", "a", "$", "$..a", "[*].*"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		p, err := parsePath(text)
		if err == nil {
			p.any(map[string]any{"a": []any{1, map[string]any{"x": nil}}}, func(any) bool { return false })
		}
	})
}

func FuzzFilter(f *testing.F) {
	f.Add("regexp", "a+", []byte("aaa"))
	f.Add("contains", "", []byte(nil))
	f.Fuzz(func(_ *testing.T, is, text string, value []byte) {
		filter, err := NewFilter(&Spec{ValueIs: is, Value: text, Path: text}, time.Now)
		if err == nil {
			_, _, _ = filter.match(&Record{Value: value}, time.Now().Add(time.Second))
		}
		_, _ = ParsePlace(text, Beginning, time.Unix(0, 0))
		_, _ = ParsePartitions([]string{text}, 5)
	})
}
