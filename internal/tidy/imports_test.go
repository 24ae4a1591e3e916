package tidy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// everything stands for all packages under internal, except those that only
// tests may use.
const everything = "*"

// importTable says which packages of this module a package may import; what is
// absent is forbidden. Names are folders without the leading "internal/", and
// "." is the root package. To add an arrow is a decision about the design: say
// why in the commit.
var importTable = map[string][]string{
	// The ways in.
	".": {"broker", "metadata/config"},
	"cmd/muster": { // It puts the families of commands together.
		"cmd/muster/brokers", "cmd/muster/cli", "cmd/muster/groups", "cmd/muster/records", "cmd/muster/security",
		"cmd/muster/serve", "cmd/muster/top", "cmd/muster/topics", "cmd/muster/txns",
	},
	"cmd/muster/cli": {
		"auth", "auth/sasl", // For the rule that a denial lacks, and the JAAS lines in the files that Kafka's tools take.
		"watch/groupview", "metadata", "metadata/config", "words",
	},
	"cmd/muster/source": {
		"cmd/muster/cli",
		"audit",
		"watch/explain", "watch/groupview", "journal", "metadata",
		"protocol", // For the tagged field that asks for lag in records.
		"words",
	},
	"cmd/muster/brokers": {"cmd/muster/cli", "words"},
	"cmd/muster/groups": {
		"cmd/muster/cli", "cmd/muster/source",
		"cmd/muster/txns", // For the transactions that hold a group back.
		"auth", "watch/explain", "watch/groupview", "journal",
		"migration", // For what the broker would say of an upgrade.
		"words",
	},
	"cmd/muster/records": {"cmd/muster/cli", "cmd/muster/source", "watch/groupview", "words"},
	"cmd/muster/security": {
		"cmd/muster/cli", "cmd/muster/source", "audit",
		"auth", // For muster acls why, which asks the rules as a broker does.
		"metadata", "metadata/config", "protocol", "words",
	},
	"cmd/muster/serve": {"cmd/muster/cli", "broker", "demo", "metadata/config", "words"},
	"cmd/muster/top": {
		"cmd/muster/cli",
		"cmd/muster/groups", // It explains a group in the words of muster groups explain.
		"watch/explain", "journal",
		"web", // For the types of the answers that it shows.
		"words",
	},
	"cmd/muster/topics": {"cmd/muster/cli", "auth", "protocol", "words"},
	"cmd/muster/txns":   {"cmd/muster/cli", "cmd/muster/source", "auth", "watch/explain", "watch/groupview", "journal", "metadata", "words"},

	"bench":          {"bench/contest", "bench/rig"}, // A module of its own, as are those of clients.
	"bench/contest":  {"bench/rig"},
	"bench/rig":      {"."},
	"interop/go":     {"."},
	"interop/old":    {},
	"interop/matrix": {"logintest"}, // Its clients log in by certificates and tokens.
	"scripts/gate":   {},
	"tools/release":  {}, // A module of its own: it knows the program, and no package of it.

	// The one package that knows all others.
	"broker": {everything},
	"demo":   {"broker"}, // It is clients of one; what they do is seen from outside.

	// From the socket to the state.
	"listener": {"buffer", "protocol"},
	"protocol": {"store"}, // Response bodies carry store.Records.
	"keystore": {},
	"buffer":   {},
	"certs":    {"keystore", "metadata/config"}, // It reads the files that settings name.
	"gate": {
		"auth", "auth/sasl", "certs",
		"handler", "listener", "protocol", // A session stands between listener and handler.
		"metadata", "metadata/config", // The users of the cluster, and the settings of listeners.
		"meter", // Logins are counted.
		"peer",  // Brokers log in to each other by what follows from the secret of the cluster.
		"fair",
	},
	"fair":     {},
	"arrivals": {"auth", "metadata", "metadata/config", "quota"}, // Quotas of addresses are part of the metadata.
	"convert": {
		"coordinator", "machine", // Groups are asked as clients ask them, and offsets replaced.
		"metadata", "metadata/config", "partition", "protocol", "store",
	},
	"handler": {
		"audit", // It tells what requests change.
		"auth",
		"auth/sasl", // What is kept of a salted password is computed in one place.
		"convert",
		"coordinator",
		"journal", // A commit may ask for a reset, and then waits.
		"machine", // For the start of a transaction in markers.
		"metadata", "metadata/config",
		"share/leader", "share/session", "share/window",
		"meter", // It counts what goes to topics and comes from them.
		"partition", "protocol",
		"quota", // To count what clients take; whose quota it is says metadata.
		"record",
		"share/requests",
		"store", // For store.Records and the error values.
	},
	"coordinator":     {"coordinator/pump", "journal", "machine", "metadata", "record"}, // A core is handed to it.
	"partition":       {"metadata", "metadata/config", "record", "store"},
	"metadata/config": {"words"},                                                                     // For the nearest name of one that is misspelt.
	"cluster":         {"auth", "metadata", "metadata/config", "record", "store"},                    // ACL rules are part of the metadata.
	"peer":            {"journal", "machine", "metadata", "partition", "protocol", "share/requests"}, // It implements what coordinators and partitions ask of other brokers.
	"auth":            {},
	"auth/sasl":       {},                                            // Users and settings are handed to it.
	"meter":           {},                                            // Who counts says what.
	"quota":           {},                                            // Limits, names and the time are handed to it.
	"audit":           {"words"},                                     // Entries put themselves into words, for the CLI and a console.
	"audit/trail":     {"audit", "auth", "metadata", "watch/writer"}, // It writes as journals are written.
	// HTTP. What people see and do is in the form of structs that those who own the state
	// take; only web knows of routes.
	"web": {
		"auth", "journal",
		"metadata", "metadata/config", // For what an image has: topics, brokers, settings.
		"search", // What records someone looks for is read from the query.
		"fair",
		"watch", "watch/explain", "watch/groupview", "watch/lag", "watch/list", "words",
		"web/act", "web/facts", "web/login", "web/problem", "web/records", "web/server",
		"web/console", // It is served beside the API that it asks.
		"web/fleet",   // Other brokers, which know the rest of an answer.
	},
	"web/server":  {"certs", "metadata/config", "fair", "web/problem"}, // Where it listens is a setting.
	"web/problem": {"auth"},                                            // A problem may be a right that lacks.
	"web/act": {
		"audit", "auth", "auth/sasl", "watch/groupview",
		"handler", // It answers acts as it does those of Kafka clients.
		"metadata", "record", "web/problem", "words",
	},
	"web/facts": {
		"watch/explain", "watch/groupview", "journal", "watch/lag", "metadata",
		"partition", // It reads journals and timestamps.
		"protocol", "record", "watch",
		"txn", // For which states of transactions are not over.
		"web/problem",
	},
	"web/records": {"auth", "handler", "metadata", "partition", "record", "search", "store"}, // It reads as a Fetch does, within the same quotas.
	"web/login": {
		"audit", "auth", "auth/sasl",
		"gate",    // The users are those of the Kafka listeners.
		"handler", // It says what someone may do.
		"meter", "fair",
	},
	"search":      {}, // Partitions are handed to it.
	"web/console": {},
	"web/fleet":   {},
	"web/metrics": {"meter", "watch", "watch/explain", "watch/lag", "watch/list"}, // What was seen of groups, and what was counted.

	// From facts about groups to what people read.
	"watch":           {"journal", "metadata", "watch/explain", "watch/history", "watch/lag", "watch/list"}, // It makes the passes that the tracker wants; facts are handed to it.
	"watch/groupview": {"journal", "watch/lag"},                                                             // What lag is stands in one place; the status of members is in a tagged field of the journal's.
	"watch/explain":   {"journal", "watch/groupview", "watch/lag", "watch/list", "words"},                   // It puts into words what lag has found.
	"watch/lag":       {"watch/history"},                                                                    // It says which positions have changed, in the form that is written.
	"watch/history":   {},
	"watch/source": {
		"group", "machine", // It looks at the groups of shards.
		"journal", // For the partition that has the history of a group.
		"metadata", "partition", "record",
		"protocol", // For the tagged fields by which other leaders are asked.
		"watch", "watch/lag", "watch/list",
		"watch/writer", // To append to the history.
	},
	"watch/writer": {"journal", "machine", "metadata", "partition", "record"}, // Entries and topics are handed to it.
	"watch/list":   {},
	"words":        {},

	// The pure packages.
	"machine":                {"metadata"}, // Inputs have an image.
	"coordinator/pump":       {"machine", "record"},
	"group":                  {"group/classic", "group/consumer", "group/kind", "group/schema", "group/share", "group/streams", "group/subscription", "journal", "machine", "metadata", "migration"},
	"group/consumer":         {"group/assignor", "group/classic", "group/kind", "group/modern", "group/schema", "group/subscription", "journal", "machine", "metadata", "migration"}, // It serves members of the classic protocol.
	"group/classic":          {"group/kind", "group/schema", "group/subscription", "journal", "machine", "metadata", "migration"},
	"group/modern":           {"group/kind", "group/schema", "group/subscription", "journal", "machine", "metadata"},
	"group/kind":             {"group/schema", "group/subscription", "journal", "machine", "metadata", "migration"},
	"group/streams":          {"group/assignor", "group/classic", "group/kind", "group/modern", "group/schema", "group/streams/topology", "journal", "machine", "metadata"},
	"group/streams/topology": {"group/schema"},
	"group/schema":           {"machine", "metadata"},
	"group/subscription":     {},
	"group/assignor":         {},
	"migration":              {},
	"share/state":            {"group/schema", "machine", "metadata", "share/requests"}, // The records of all coordinators are generated in one place.
	"share/window":           {},
	"journal":                {},
	"txn":                    {"journal", "machine", "metadata"},
	"txn/orphans":            {"journal", "machine", "metadata", "partition", "store", "txn"}, // Not pure: it looks at partitions, and asks coordinators.
	"record":                 {},
	"metadata":               {"auth", "metadata/config"}, // An image has the rules in the form that can be asked.
	"share/requests":         {"journal", "metadata"},     // Whose partition a key belongs to stands in one place.
	"share/session":          {"fair", "metadata"},
	"share/leader":           {"metadata", "partition", "record", "share/window", "store"}, // Not pure: it reads logs, and asks the share coordinator.
	"group/share":            {"group/assignor", "group/kind", "group/modern", "group/schema", "journal", "machine", "metadata"},

	// The storage engines, which never import one another.
	"store":           {"record"}, // For the rules about batches that all engines share.
	"store/mem":       {"record", "store"},
	"store/disk":      {"record", "store", "store/vfs"},
	"store/redis":     {"buffer", "record", "store", "store/redis/conn"},
	"store/vfs":       {},
	"store/storetest": {"assert", "record", "store"},

	// Beside the engine on Redis: the way there, who is registered, and the
	// picture of groups, which needs to know the keys of streams.
	"store/redis/conn":   {"store"},
	"store/redis/lease":  {"store/redis/conn"},
	"store/redis/native": {"store", "store/redis", "store/redis/conn"},
	"shown": {
		"coordinator", "handler", "journal", "metadata", "protocol", // It sees groups as the handler does.
		"store", "store/redis", "store/redis/native",
	},

	// Tests in the form of packages.
	"assert":     {},
	"harness":    {"machine"},
	"logintest":  {},
	"redistest":  {},
	"sim":        {everything, "sim/seeds", "sim/shell"},
	"sim/exact":  {everything, "sim/seeds", "sim/shell"},
	"sim/shares": {everything, "sim/seeds", "sim/shell"},
	"sim/seeds":  {}, // What simulators share knows nothing of what they simulate.
	"sim/shell":  {"coordinator/pump", "machine", "sim/seeds"},
	"tidy":       {},
}

// testOnly lists the packages that no other package may import, tests aside, and
// those that the table names one of them for.
var testOnly = []string{"assert", "harness", "logintest", "redistest", "sim", "sim/exact", "sim/seeds", "sim/shares", "sim/shell", "store/storetest", "tidy"}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	report(t, checkImports(tree(t)))
}

// checkImports holds sources against the import table. A test may import what
// it likes, except that only the simulator's own tests know the simulator.
func checkImports(sources []*source) []string {
	var problems []string
	unknown := make(map[string]bool)
	for _, s := range sources {
		from := packageName(s.dir())
		if _, ok := importTable[from]; !ok && !unknown[from] {
			unknown[from] = true
			problems = append(problems, fmt.Sprintf("%s: package %s is not in the import table (internal/tidy/imports_test.go)", s.path, from))
		}
		for _, spec := range s.ast.Imports {
			to, ours := ourPackage(importPath(spec))
			if !ours || unknown[from] {
				continue
			}
			if rule := forbids(from, to, s.isTest()); rule != "" {
				problems = append(problems, fmt.Sprintf("%s: imports %s, but %s", s.at(spec.Pos()), importPath(spec), rule))
			}
		}
	}
	return problems
}

// forbids returns the rule that an import breaks, or nothing.
func forbids(from, to string, inTest bool) string {
	if inTest {
		if to == "sim" && from != "sim" {
			return "tests outside internal/sim may not use the simulator"
		}
		return ""
	}
	allowed := importTable[from]
	switch {
	case slices.Contains(allowed, to):
		return "" // By name, so also of those that everything leaves out.
	case slices.Contains(testOnly, to):
		return "only tests may use package " + to
	case slices.Contains(allowed, everything) && isInternal(to):
		return ""
	case len(allowed) == 0:
		return fmt.Sprintf("%s may import no package of this module", from)
	default:
		return fmt.Sprintf("%s may import only %s", from, strings.Join(allowed, ", "))
	}
}

// ourPackage returns the name in the import table of a package of this module.
func ourPackage(importPath string) (name string, ours bool) {
	if importPath == module {
		return ".", true
	}
	dir, ours := strings.CutPrefix(importPath, module+"/")
	return packageName(dir), ours
}

// packageName drops the folder "internal", which is that of the module or of a command.
func packageName(dir string) string { return strings.Replace(dir, "internal/", "", 1) }

func isInternal(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !slices.Contains([]string{".", "bench", "cmd", "interop"}, first)
}

func TestImportTableNamesOnlyPackagesItDefines(t *testing.T) {
	for from, allowed := range importTable {
		for _, to := range allowed {
			if _, ok := importTable[to]; !ok && to != everything {
				t.Errorf("%s may import %s, which has no line of its own", from, to)
			}
		}
	}
}

func TestCheckImportsFindsForbiddenImports(t *testing.T) {
	for _, c := range []struct {
		name, path, imports, want string
	}{
		{"an arrow that is absent", "internal/listener/conn.go", `"muster/internal/handler"`, "listener may import only buffer, protocol"},
		{"one engine imports another", "internal/store/disk/log.go", `"muster/internal/store/mem"`, "store/disk may import only"},
		{"a leaf imports", "internal/record/batch.go", `"muster/internal/store"`, "record may import no package"},
		{"a renamed import", "internal/group/a.go", `clock "muster/internal/broker"`, "group may import only"},
		{"an internal package imports the root", "internal/broker/a.go", `"muster"`, "broker may import only"},
		{"the broker imports tests", "internal/broker/a.go", `"muster/internal/store/storetest"`, "only tests may use"},
		{"the broker imports what simulators share", "internal/broker/a.go", `"muster/internal/sim/seeds"`, "only tests may use"},
		{"the root imports the simulator", "muster.go", `"muster/internal/sim"`, "only tests may use"},
		{"a test imports the simulator", "internal/group/a_test.go", `"muster/internal/sim"`, "may not use the simulator"},
		{"one family of commands imports another", "cmd/muster/internal/topics/a.go", `"muster/cmd/muster/internal/groups"`, "cmd/muster/topics may import only"},
		{"commands know the engines", "cmd/muster/internal/topics/a.go", `"muster/internal/store"`, "cmd/muster/topics may import only"},
		{"a package that has no line", "internal/util/a.go", `"muster/internal/store"`, "not in the import table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fixture(t, c.path, "package x\n\nimport "+c.imports+"\n")
			wantProblems(t, checkImports([]*source{s}), c.want)
		})
	}
}

func TestCheckImportsAllowsWhatTheTableAllows(t *testing.T) {
	for path, imports := range map[string]string{
		"internal/listener/conn.go":     `"muster/internal/protocol"`,
		"internal/broker/broker.go":     `"muster/internal/store/redis"`,
		"internal/store/mem/a_test.go":  `"muster/internal/store/storetest"`,
		"internal/sim/sim_test.go":      `"muster/internal/sim"`,
		"internal/sim/world.go":         `"muster/internal/sim/seeds"`,
		"internal/record/batch.go":      `"musterpiece/internal/store"`,
		"cmd/muster/main.go":            `"muster/cmd/muster/internal/top"`,
		"cmd/muster/internal/top/a.go":  `"muster/cmd/muster/internal/groups"`,
		"muster.go":                     `"muster/internal/broker"`,
		"internal/coordinator/shard.go": `"github.com/twmb/franz-go/pkg/kmsg"`,
	} {
		s := fixture(t, path, "package x\n\nimport "+imports+"\n")
		wantProblems(t, checkImports([]*source{s}))
	}
}
