package conn

import (
	"reflect"
	"strings"
	"testing"
)

func TestURLsNameDeployments(t *testing.T) {
	for text, want := range map[string]target{
		"redis://localhost":          {addresses: []string{"localhost:6379"}},
		"REDIS://localhost:7000/3":   {addresses: []string{"localhost:7000"}, db: 3},
		"redis://:secret@a:1,b:2,c/": {addresses: []string{"a:1", "b:2", "c:6379"}, password: "secret"},
		"redis://ann:p%40ss%2F@h:1":  {addresses: []string{"h:1"}, user: "ann", password: "p@ss/"},
		"redis://ann:p@ss/word@h:1":  {addresses: []string{"h:1"}, user: "ann", password: "p@ss/word"},
		"redis://[::1]:7,[::2]/1":    {addresses: []string{"[::1]:7", "[::2]:6379"}, db: 1},
		"rediss://h:1?insecure=true": {addresses: []string{"h:1"}, tls: true, insecure: true},
		"rediss://h:1/2?ca=/a/b.pem&cert=c.pem&key=k%26.pem": {
			addresses: []string{"h:1"}, db: 2, tls: true, ca: "/a/b.pem", cert: "c.pem", key: "k&.pem",
		},
		"redis+cluster://u:p@a:1,b:2":   {deployment: clusterDeployment, addresses: []string{"a:1", "b:2"}, user: "u", password: "p"},
		"rediss+cluster://a:1":          {deployment: clusterDeployment, addresses: []string{"a:1"}, tls: true},
		"redis+sentinel://a,b:2/main":   {deployment: sentinelDeployment, addresses: []string{"a:26379", "b:2"}, masterName: "main"},
		"redis+sentinel://u:p@a/main/4": {deployment: sentinelDeployment, addresses: []string{"a:26379"}, user: "u", password: "p", masterName: "main", db: 4},
		"rediss+sentinel://a/m?sentinel_user=s&sentinel_password=x%3Fy&insecure=false": {
			deployment: sentinelDeployment, addresses: []string{"a:26379"}, masterName: "m", tls: true, sentinelUser: "s", sentinelPassword: "x?y",
		},
	} {
		got, err := parseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestBadURLsAreExplainedWithoutPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "begins with one of redis://, redis+cluster://, redis+sentinel://,",
		"localhost:6379":                         "begins with one of",
		"http://localhost":                       `scheme "http" is not one of redis://, redis+cluster://`,
		"redis://":                               "address 1 is not host:port",
		"redis://a:1,,b:2":                       "address 2 is not host:port",
		"redis://:6379":                          "address 1 is not host:port",
		"redis://a:b:c":                          "address 1 is not host:port",
		"redis://a:70000":                        `the port of host "a" is not a number from 1 to 65535`,
		"redis://ann:hunter2":                    `the port of host "ann" is not a number`,
		"redis://ann:hunter2?x@h:1":              "must be percent-encoded",
		"redis://ann:hunter2%zz@h:1":             "user and password must be percent-encoded",
		"redis://ann:hunter2@h:1/x":              "the database, after the last slash, is not a number",
		"redis://ann:hunter2@h:1/-1":             "the database",
		"redis://h:1/1/2":                        "the database",
		"redis://h:1?insecure=true":              "takes no parameters",
		"redis+cluster://h:1/0":                  "a cluster has only database 0",
		"redis+sentinel://h:1":                   "needs the name of the primary",
		"redis+sentinel://h:1//3":                "needs the name of the primary",
		"redis+sentinel://h:1/m/x":               "the database",
		"rediss://ann:hunter2@h:1?skip=true":     `parameter "skip" is not one of ca, cert, insecure, key`,
		"redis+sentinel://h:1/m?ca=x":            `parameter "ca" is not one of sentinel_password, sentinel_user`,
		"rediss://h:1?insecure=maybe":            `parameter "insecure" is true or false`,
		"rediss://h:1?insecure":                  `parameter "insecure" needs one value`,
		"rediss://h:1?ca=a&ca=b":                 `parameter "ca" needs one value`,
		"rediss://h:1?cert=c.pem":                `parameters "cert" and "key" come together`,
		"rediss://h:1?ca=%zz":                    "name=value",
		"redis+sentinel://h/m?sentinel=hunter2":  `parameter "sentinel" is not one of`,
		"rediss://ann:hunter2@h:1?sentinel_user": `parameter "sentinel_user" is not one of`,
	} {
		_, err := parseURL(text)
		switch {
		case err == nil:
			t.Errorf("%s: accepted", text)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s: %q does not say %q", text, err, want)
		case strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: the error shows the password: %v", text, err)
		}
	}
}

func FuzzURL(f *testing.F) {
	f.Add("redis+sentinel://ann:pass@a:1,[::1]:2/main/3?sentinel_user=x")
	f.Add("rediss://h?ca=x&insecure=true")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseURL(text)
		if err == nil && len(got.addresses) == 0 {
			t.Errorf("%q has no address", text)
		}
	})
}

func TestPlainTextBeyondThisMachineIsSeen(t *testing.T) {
	for url, want := range map[string]bool{
		"redis://127.0.0.1:6379": false, "redis://localhost:6379": false, "redis://[::1]:6379": false, "rediss://cache:6379": false,
		"redis://cache:6379": true, "redis://ann:pw@10.0.0.7": true, "redis+cluster://127.0.0.1:1,cache:2": true, "http://cache": false,
	} {
		if got := IsPlainBeyondLoopback(url); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}
