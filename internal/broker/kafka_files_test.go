package broker_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata/config"
)

// logged has a broker write its log to the returned function's text.
func logged() (func(*broker.Config), func() string) {
	log := &lines{}
	return func(c *broker.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }, log.String
}

// lines is a log that several write to.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// with returns the lines that have one of some words.
func (l *lines) with(words ...string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

// kafkaFile is what Kafka's server.properties has, with ports that are free.
const kafkaFile = `
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://localhost:0,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
num.partitions=1
num.recovery.threads.per.data.dir=1
default.replication.factor=3
offsets.topic.replication.factor=3
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
`

func TestAConfigurationFileOfKafkaStartsTheBroker(t *testing.T) {
	props, err := config.ParseProperties(strings.NewReader(kafkaFile))
	must(t, err)
	to, text := logged()
	b := start(t, props, to)
	if n := len(b.Addrs()); n != 1 {
		t.Errorf("it listens at %d addresses, want only that of clients", n)
	}
	if got := strings.Count(text(), "have no effect here"); got != 1 {
		t.Errorf("settings without effect are told %d times:\n%s", got, text())
	}
	created, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), -1, -1, nil, "a")
	assert.True(t, err == nil && created.ReplicationFactor == 1, "a topic: %+v, %v", created, err)
}

func TestAListenerAdvertisesTheNameThatIsWritten(t *testing.T) {
	b := start(t, map[string]string{"listeners": "PLAINTEXT://localhost:0"})
	meta, err := kadm.NewClient(client(t, b)).BrokerMetadata(t.Context())
	must(t, err)
	assert.Equal(t, meta.Brokers[0].Host, "localhost", "it advertises")
}

func TestAPrivateKeyThatEveryoneCanReadIsWarnedOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the mode of a file does not tell who can read it")
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	for mode, want := range map[os.FileMode]bool{0o644: true, 0o600: false} {
		must(t, os.WriteFile(file, nil, mode))
		if err := os.Chmod(file, mode); err != nil { // Whatever the mask is.
			t.Fatal(err)
		}
		to, text := logged()
		start(t, map[string]string{"listener.name.plaintext.ssl.keystore.location": file}, to)
		if got := strings.Contains(text(), "private key"); got != want {
			t.Errorf("mode %o: %s", mode, text())
		}
	}
}

func TestADataFolderThatOthersCouldReadIsTightenedAndTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the mode of a file does not tell who can read it")
	}
	folder := filepath.Join(t.TempDir(), "data")
	props := map[string]string{"muster.store": "disk", "log.dir": folder}
	must(t, start(t, props).Close())
	for _, name := range []string{folder, filepath.Join(folder, ".lock")} {
		must(t, os.Chmod(name, 0o755))
	}
	to, text := logged()
	must(t, start(t, props, to).Close())
	assert.Contains(t, text(), "could read the data folder", "not told")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
}
