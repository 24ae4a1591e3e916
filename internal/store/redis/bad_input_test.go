package redis

import (
	"slices"
	"strings"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store/redis/conn"
)

// wantText wants an error that says all of some things.
func wantText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, which does not say %q", err, text)
		}
	}
}

// A key that another program has taken is named, and so is the way out; nothing else is lost by it.
func TestAKeyOfAnotherTypeIsNamed(t *testing.T) {
	for name, key := range map[string]func(keys) string{
		"data": func(k keys) string { return k.stream }, "index": func(k keys) string { return k.index }, "meta": func(k keys) string { return k.meta },
		"producers": func(k keys) string { return k.producers }, "aborted": func(k keys) string { return k.aborted },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inIndex)
			key := key(b.keys())
			l := b.open(1)
			b.append(l, b.valued("before"))
			b.do("DEL", key)
			b.do("SET", key, "x")
			_, err := l.Append(b.ctx, b.valued("refused"))
			if name == "data" || name == "index" {
				wantText(t, err, key, "WRONGTYPE", "RENAME")
			}
			_, err = b.store.Open(b.ctx, b.at, 2, b.cfg)
			wantText(t, err, key, "string", "RENAME")
			if b.do("GET", key) != "x" {
				t.Error("the key was changed")
			}
			b.do("RENAME", key, key+":theirs")
			again := b.open(3)
			b.append(again, b.valued("after"))
			want := []string{"before", "after"}
			switch name {
			case "data":
				want = want[1:]
			case "producers", "aborted": // The append does not need them.
				want = []string{"before", "refused", "after"}
			}
			if got := b.values(again); !slices.Equal(got, want) {
				t.Errorf("it holds %q, not %q", got, want)
			}
			b.wantSound()
		})
	}
}

// What Redis refuses for good says what to do, and nothing of a refused append is there.
func TestARefusalSaysWhatToDo(t *testing.T) {
	server := redistest.Single(t, "user ann on >secret ~* &* +@all", "maxmemory-policy noeviction")
	b := newBedAt(t, "redis://ann:secret@"+server.Nodes[0].Addr(), inIndex)
	admin := server.Nodes[0]
	epoch := int32(0)
	for _, c := range []struct {
		name         string
		breaks, back []string
		says         []string
	}{
		{"out of memory", []string{"CONFIG", "SET", "maxmemory", "1kb"}, []string{"CONFIG", "SET", "maxmemory", "0"}, []string{"OOM", "raise its maxmemory"}},
		{"no MULTI", []string{"ACL", "SETUSER", "ann", "-multi"}, []string{"ACL", "SETUSER", "ann", "+multi"}, []string{"NOPERM", "multi", "ACL SETUSER"}},
		{"no XADD", []string{"ACL", "SETUSER", "ann", "-xadd"}, []string{"ACL", "SETUSER", "ann", "+xadd"}, []string{b.keys().stream, "ACL SETUSER"}},
		{"no XSETID", []string{"ACL", "SETUSER", "ann", "-xsetid"}, []string{"ACL", "SETUSER", "ann", "+xsetid"}, []string{b.keys().stream, "ACL SETUSER"}},
		{"no right to the key", []string{"ACL", "SETUSER", "ann", "resetkeys", "~other*"}, []string{"ACL", "SETUSER", "ann", "~*"}, []string{b.keys().stream, "ACL SETUSER"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			epoch++
			l := b.open(epoch)
			b.append(l, b.valued(c.name))
			if _, err := admin.Do(c.breaks...); err != nil {
				t.Fatal(err)
			}
			_, err := l.Append(b.ctx, b.valued("refused"))
			wantText(t, err, c.says...)
			if _, err := admin.Do(c.back...); err != nil {
				t.Fatal(err)
			}
			epoch++
			l = b.open(epoch)
			b.append(l, b.valued("again"))
			got := b.values(l)
			if c.name == "no MULTI" { // All was done, though not at once, and no one was told so.
				got = slices.DeleteFunc(got, func(v string) bool { return v == "refused" })
			}
			if n := len(got); slices.Contains(got[n-2:], "refused") || got[len(got)-2] != c.name || got[len(got)-1] != "again" {
				t.Errorf("it holds %q", got)
			}
			b.wantSound()
		})
	}
}

func TestWaysOut(t *testing.T) {
	for refusal, want := range map[string]string{
		"OOM command not allowed when used memory > 'maxmemory'.": "maxmemory", "k: WRONGTYPE Operation": "RENAME", "ERR syntax": "",
	} {
		if got := conn.WayOut(refusal); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", refusal, got)
		}
	}
}
