package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Its password is not shown, but who the first user is decides what others read of rights.
func TestTheFirstUserIsShownAmongTheSuperUsers(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"super.users": "User:z;User:a"}, "User:z;User:a"},
		{map[string]string{"muster.bootstrap.user": "ann:pw"}, "User:ann"},
		{map[string]string{"muster.bootstrap.user": "ann:pw", "super.users": "User:z"}, "User:z;User:ann"},
		{map[string]string{"muster.bootstrap.user": "ann:pw", "super.users": "User:z; User:ann"}, "User:z; User:ann"},
		{map[string]string{"muster.bootstrap.user": "a;User:b:pw"}, ""}, // It would be read as two.
	} {
		got := worldWith(t, c.set).describe(kmsg.ConfigResourceTypeBroker, "1", "super.users", "muster.bootstrap.user")
		if len(got) != 2 || got[0].Value != nil && got[1].Value != nil {
			t.Fatalf("%v: %+v", c.set, got)
		}
		users := got[0]
		if users.Name != "super.users" {
			users = got[1]
		}
		if *users.Value != c.want || (users.Source == kmsg.ConfigSourceDefaultConfig) != (c.want == "") {
			t.Errorf("%v: super.users is shown as %q by %v", c.set, *users.Value, users.Source)
		}
	}
}
