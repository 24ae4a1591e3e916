package contest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

const pom = "bench/contest/pom.xml"

// kafka starts brokers of Apache Kafka.
type kafka struct {
	bench     *rig.Bench
	java      string
	classpath string
	version   string // of Kafka and of Java
	formatted string // folder that Kafka has formatted, to be copied
}

// javaFlags are those of Kafka's own start script, without the ones that log
// garbage collection and open a port for monitoring. Kafka writes warnings only,
// where its start script would have it write more: that is in its favour.
var javaFlags = []string{
	"-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
	"-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
	"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
}

// kafkaSettings are what one broker that is also its controller needs; all else
// is Kafka's default.
const kafkaSettings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
controller.listener.names=CONTROLLER
log.dirs=%[3]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// getKafka has Maven copy Kafka's jars, unless they are there, and formats a
// folder.
func (c *contest) getKafka() (*kafka, error) {
	k := &kafka{bench: c.Bench, formatted: filepath.Join(c.Folder, "formatted")}
	var err error
	if k.java, err = exec.LookPath("java"); err != nil {
		return nil, fmt.Errorf("java (17 or newer) runs Kafka; -kafka=false does without: %w", err)
	}
	jars, err := filepath.Abs(c.o.jars)
	if err != nil {
		return nil, err
	}
	k.classpath = filepath.Join(jars, "*")
	if err := c.copyJars(jars); err != nil {
		return nil, err
	}
	if k.version, err = k.versions(jars); err != nil {
		return nil, err
	}
	c.Say("formatting a folder for Kafka %s", k.version)
	return k, k.format()
}

// copyJars has Maven copy the jars, once for each pom.
func (c *contest) copyJars(jars string) error {
	want, err := os.ReadFile(pom)
	if err != nil {
		return err
	}
	mark := filepath.Join(jars, filepath.Base(pom))
	if have, err := os.ReadFile(mark); err == nil && string(have) == string(want) {
		return nil
	}
	c.Say("getting Kafka by Maven")
	if err := os.RemoveAll(jars); err != nil {
		return err
	}
	out, err := exec.CommandContext(c.Context, "mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+jars).CombinedOutput()
	if err != nil {
		return fmt.Errorf("maven could not get Kafka: %w\n%s", err, out)
	}
	return os.WriteFile(mark, want, 0o644)
}

// versions reads Kafka's version from the name of its jar, and asks Java for its
// own.
func (k *kafka) versions(jars string) (string, error) {
	names, err := filepath.Glob(filepath.Join(jars, "kafka_2.13-*.jar"))
	if err != nil || len(names) != 1 {
		return "", fmt.Errorf("%d jars of the broker in %s, expected one: %w", len(names), jars, err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(names[0]), "kafka_2.13-"), ".jar")
	out, err := exec.Command(k.java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("java -version: %w\n%s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), `"`)
	java, _, _ := strings.Cut(rest, `"`)
	return fmt.Sprintf("%s (Java %s)", version, java), nil
}

// format formats a folder, which takes as long as a start. Brokers get copies.
func (k *kafka) format() error {
	settings := k.formatted + ".properties"
	if err := k.writeSettings(settings, k.formatted, "127.0.0.1:1", "127.0.0.1:2"); err != nil {
		return err
	}
	out, err := exec.CommandContext(k.bench.Context, k.java, "-cp", k.classpath, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"kafka.tools.StorageTool", "format", "--cluster-id", "bXVzdGVyLWJlbmNoLTAwMQ", "--config", settings).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format a folder for Kafka: %w\n%s", err, out)
	}
	return nil
}

func (k *kafka) writeSettings(name, data, addr, controller string, set ...string) error {
	text := fmt.Sprintf(kafkaSettings, addr, controller, data)
	for _, s := range set {
		text += s + "\n"
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// start starts Kafka on a folder, which is made if it does not exist.
func (k *kafka) start(data string, set ...string) (*rig.Process, error) {
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		if err := os.CopyFS(data, os.DirFS(k.formatted)); err != nil {
			return nil, err
		}
	}
	addr, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	controller, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	settings := data + ".properties"
	if err := k.writeSettings(settings, data, addr, controller, set...); err != nil {
		return nil, err
	}
	args := append(append([]string{}, javaFlags...), "-cp", k.classpath, "kafka.Kafka", settings)
	p, err := k.bench.Start(addr, k.java, args...)
	if err == nil {
		p.Status143 = true
	}
	return p, err
}

// alter sets one setting of a topic or broker.
func alter(c net.Conn, kind kmsg.ConfigResourceType, name, set string) error {
	key, value, _ := strings.Cut(set, "=")
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
		ResourceType: kind, ResourceName: name,
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Value: &value}},
	}}
	answer, err := rig.Ask(c, req)
	if err != nil {
		return err
	}
	for _, r := range answer.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("set %s of %q: %w", set, name, err)
		}
	}
	return nil
}
