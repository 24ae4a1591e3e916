package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/assert"
)

// Flags come before what a file says: also a password alone, which is that of the file's user.
func TestFlagsComeBeforeTheFileOfAClient(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	password := file("password", "anns\n")
	client := file("client.properties", "bootstrap.servers=kafka-1:9092\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"+
		`sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="bob" password="bobs";`+"\n")
	given := func(names ...string) func(string) bool {
		return func(name string) bool { return strings.Contains(strings.Join(names, " "), name) }
	}
	for what, c := range map[string]struct {
		l    LoginFlags
		want Identity
		err  string
	}{
		"nothing":                      {LoginFlags{}, Identity{}, ""},
		"a user":                       {LoginFlags{user: "ann", passwordFile: password}, Identity{MechanismScram256, "ann", "anns", nil}, ""},
		"a mechanism":                  {LoginFlags{user: "ann", passwordFile: password, mechanism: "plain"}, Identity{mechanismPlain, "ann", "anns", nil}, ""},
		"a file":                       {LoginFlags{commandConfig: client}, Identity{MechanismScram512, "bob", "bobs", nil}, ""},
		"a file, and another user":     {LoginFlags{commandConfig: client, user: "ann", passwordFile: password}, Identity{MechanismScram512, "ann", "anns", nil}, ""},
		"a file, and a password alone": {LoginFlags{commandConfig: client, passwordFile: password, given: given("password-file")}, Identity{MechanismScram512, "bob", "anns", nil}, ""},
		"a password alone":             {LoginFlags{passwordFile: password, given: given("password-file")}, Identity{}, "--password-file needs --user"},
		"a user alone":                 {LoginFlags{user: "ann"}, Identity{}, "--user needs a password"},
		"an empty password":            {LoginFlags{user: "ann", passwordFile: file("empty", "\n")}, Identity{}, "is empty"},
	} {
		id, brokers, err := c.l.Identity()
		if c.err != "" {
			assert.True(t, err != nil && strings.Contains(err.Error(), c.err), "%s: %v", what, err)
			continue
		}
		assert.True(t, err == nil && *id == c.want && (brokers == "kafka-1:9092") == (c.l.commandConfig != ""), "%s: %+v at %q (%v)", what, id, brokers, err)
	}
}
