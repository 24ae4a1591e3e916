package fair

import "testing"

// A machine with IPv6 usually has all addresses of a /64, and gets one share for them.
func TestAddressesOfOneMachineHaveOneShare(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:4711":                        "10.0.0.1",
		"10.0.0.2":                             "10.0.0.2",
		"[::ffff:10.0.0.1]:4711":               "10.0.0.1",
		"[2001:db8:1:2::1]:4711":               "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff:ffff:ffff:ffff]:1": "2001:db8:1:2::/64",
		"2001:db8:1:3::1":                      "2001:db8:1:3::/64",
		"[fe80::1%eth0]:4711":                  "fe80::/64",
		"a name":                               "a name",
	} {
		if got := Neighbourhood(addr); got != want {
			t.Errorf("%s has its share as %s, want %s", addr, got, want)
		}
	}
}

// What is given back is there for others, and for who gave it back.
func TestSharesAreBoundedInAllAndForEach(t *testing.T) {
	s := Shares[string]{Most: 5, Own: 3}
	for _, c := range []struct {
		who  string
		n    int64
		want bool
	}{{"a", 4, false}, {"a", 3, true}, {"a", 1, false}, {"b", 3, false}, {"b", 2, true}, {"c", 1, false}} {
		if got := s.Take(c.who, c.n); got != c.want {
			t.Errorf("%s takes %d more: %v", c.who, c.n, got)
		}
	}
	s.Give("a", 3)
	if !s.Take("c", 3) || s.Take("a", 1) || s.Used() != 5 {
		t.Errorf("after something was given back: %+v", &s)
	}
	s.Give("b", 2)
	s.Give("c", 3)
	if s.Used() != 0 || len(s.of) != 0 {
		t.Errorf("after all was given back: %+v", &s)
	}
}
