package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
)

// row is a client to try.
type row struct {
	name string
	// version returns the client's version, if its program does not say it.
	version func(context.Context) (string, error)
	// command returns the program, its arguments, and what is added to its
	// environment.
	command func(place) (args, env []string)
	secured bool // it talks to the broker where clients log in
	old     bool // it is a program of interop/old
}

// place is where a row runs.
type place struct {
	addr    string // the broker's address
	store   string
	dir     string   // a folder for its files, removed in the end
	goTests string   // the tests of interop/go, compiled
	old     string   // the program of interop/old, empty if no row that runs needs it
	secured *secured // nil if no row that runs needs it
}

func rows() []row {
	return []row{
		java("Java kafka-clients 4", "clients-4", "Clients"),
		java("Java kafka-clients 3", "clients-3", "Clients"),
		java("Java kafka-clients 2", "clients-2", "Clients"),
		java("Kafka's command line tools", "kafka", "Tools"),
		loggedIn(java("Java kafka-clients, logged in 4", "clients-4", "Secured")),
		loggedIn(java("Java kafka-clients, logged in 3", "clients-3", "Secured")),
		loggedIn(java("Java kafka-clients, logged in 2", "clients-2", "Secured")),
		loggedIn(java("Java kafka-clients, logged in 1", "clients-1", "OldLogins")),
		loggedIn(java("Kafka's command line tools, logged in", "kafka", "SecuredTools")),
		java("Kafka Streams", "kafka", "Streams"),
		java("Kafka Streams, streams groups", "kafka", "StreamsGroups"),
		java("Kafka Connect", "kafka", "Connect"),
		python("Python confluent-kafka", "confluent.py"),
		loggedIn(python("Python confluent-kafka, logged in", "confluent_login.py")),
		python("Python kafka-python", "kafka_python.py"),
		loggedIn(python("Python kafka-python, logged in", "kafka_python_login.py")),
		python("Python aiokafka", "aio.py"),
		node("Node.js KafkaJS", "kafkajs.mjs"),
		loggedIn(node("Node.js KafkaJS, logged in", "kafkajs_login.mjs")),
		node("Node.js @platformatic/kafka", "platformatic.mjs"),
		golang("Go franz-go", "franz-go", "github.com/twmb/franz-go"),
		golang("Go sarama", "sarama", "github.com/IBM/sarama"),
		golang("Go kafka-go", "kafka-go", "github.com/segmentio/kafka-go"),
		golang("Go confluent-kafka-go", "librdkafka", "github.com/confluentinc/confluent-kafka-go/v2"),
		loggedIn(old("librdkafka of 2023, logged in", "librdkafka")),
		loggedIn(old("Go sarama of 2020, logged in", "sarama")),
	}
}

// loggedIn is a row that talks to the broker where clients log in, of which its environment
// tells (secured.go).
func loggedIn(r row) row {
	r.secured = true
	return r
}

// java is a class of interop/java, with the jars of a profile.
func java(name, profile, class string) row {
	target := filepath.Join("interop", "java", "target", profile)
	return row{name: name, command: func(p place) (args, env []string) {
		// A JVM that starts fast and stays small: each runs for seconds.
		return []string{
			"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m",
			"-Djava.io.tmpdir=" + p.dir, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			"-cp", filepath.Join(target, "classes") + string(filepath.ListSeparator) + filepath.Join(target, "lib", "*"),
			class, p.addr,
		}, nil
	}}
}

// python is a program of interop/python.
func python(name, program string) row {
	folder := filepath.Join("interop", "python")
	return row{name: name, command: func(p place) (args, env []string) {
		args = []string{filepath.Join(folder, ".venv", "bin", "python"), filepath.Join(folder, program), p.addr}
		return args, []string{"PYTHONDONTWRITEBYTECODE=1"}
	}}
}

// node is a program of interop/js. It runs with the Node.js that is a package
// there, where there is one for this system: clients may need a newer one than
// the system has.
func node(name, program string) row {
	folder := filepath.Join("interop", "js")
	return row{name: name, command: func(p place) (args, env []string) {
		binary := "node"
		if found, err := filepath.Glob(filepath.Join(folder, "node_modules", "node-*", "bin", "node")); err == nil && len(found) > 0 {
			binary = found[0]
		}
		return []string{binary, filepath.Join(folder, program), p.addr}, nil
	}}
}

// golang is a subtest of TestMatrix in interop/go.
func golang(name, test, module string) row {
	version := func(ctx context.Context) (string, error) {
		list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
		list.Dir = filepath.Join("interop", "go")
		out, err := list.Output()
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), err
	}
	return row{name: name, version: version, command: func(p place) (args, env []string) {
		return []string{p.goTests, "-test.run", "^TestMatrix$/^" + test + "$"}, []string{"MUSTER_MATRIX_BROKER=" + p.addr}
	}}
}

// old is a client in the program of interop/old.
func old(name, client string) row {
	return row{name: name, old: true, command: func(p place) (args, env []string) { return []string{p.old, client}, nil }}
}

// buildOld compiles the program of interop/old.
func buildOld(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "old")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = filepath.Join("interop", "old")
	return program, runQuietly(build)
}

// buildGoTests compiles the tests of interop/go and returns the program.
func buildGoTests(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "interop.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".")
	build.Dir = filepath.Join("interop", "go")
	return program, runQuietly(build)
}
