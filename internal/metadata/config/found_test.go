package config

import "testing"

func TestWhatWasFoundIsADefault(t *testing.T) {
	const name = "muster.http.advertised"
	b, err := NewBroker(map[string]string{"muster.http.listener": "x"})
	if err != nil {
		t.Fatal(err)
	}
	found := b.Found(name, "http://x")
	if b.Get(name) != "" || found.Get(name) != "http://x" || found.IsSet(name) || found.Get("muster.http.listener") != "x" {
		t.Errorf("%q, %q", b.Get(name), found.Get(name))
	}
	if again := found.Found("node.id", "7").With(map[string]string{"num.partitions": "3"}); again.Get(name) != "http://x" || again.Int("node.id") != 7 || again.Int("num.partitions") != 3 {
		t.Error("it is forgotten")
	}
	if b, err = NewBroker(map[string]string{name: ""}); err != nil || b.Found(name, "http://x").Get(name) != "" {
		t.Error("what was set does not count")
	}
}
