package contest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"muster/bench/rig"
)

const (
	javaProduce    = "wild Java produce"
	javaConsume    = "wild Java consume"
	rdkafkaProduce = "wild librdkafka produce"
	rdkafkaConsume = "wild librdkafka consume"
)

var clientNames = []string{javaProduce, javaConsume, rdkafkaProduce, rdkafkaConsume}

// clientRecord is the size of the records that real clients send.
const clientRecord = 1000

// clientTimeout is how long one of their programs may take.
const clientTimeout = 2 * time.Minute

// clients has real clients, with their defaults, write and read a topic of many
// partitions.
func (x *session) clients() error {
	if x.o.wild.records == 0 {
		x.leaveOut("real clients")
		return nil
	}
	java := x.java != nil
	if !java {
		x.leaveOut("Java clients, which come with Kafka")
	}
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		x.leaveOut("librdkafka, since there is no kcat (scripts/setup installs it)")
	}
	if err := x.warm("wild-warm", rig.Shape{Partitions: rig.Partitions, Record: rig.RecordSize, Records: rig.BatchRecords}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return x.underRules(func(rules []string) error {
		if java && x.anyWanted(javaProduce, javaConsume) {
			if err := x.javaClients(rules); err != nil {
				return fmt.Errorf("java: %w", err)
			}
		}
		if kcat != "" && x.anyWanted(rdkafkaProduce, rdkafkaConsume) {
			if err := x.rdkafkaClients(kcat, rules); err != nil {
				return fmt.Errorf("kcat: %w", err)
			}
		}
		return nil
	})
}

// clientTopic creates a topic of many partitions, and appends the first record to each:
// what that takes is measured elsewhere.
func (x *session) clientTopic(client, rule string) (string, error) {
	topic := strings.ReplaceAll(fmt.Sprintf("wild-%s-%s", client, rule), " ", "-")
	l := rig.Shape{Partitions: x.o.wild.partitions, Record: smallRecord, Records: 1}.Load(topic, -1)
	err := x.withConn(func(c net.Conn) error {
		if err := x.NewTopic(c, topic, x.o.wild.partitions); err != nil {
			return err
		}
		return l.Pump([]net.Conn{c}, 1, true, rig.Produced(l.Shape))
	})
	if err != nil {
		return "", err
	}
	return topic, x.flush()
}

// checkClient checks that a topic has all records that a client was to send.
func (x *session) checkClient(topic string) error {
	want := int64(x.o.wild.records + x.o.wild.partitions)
	return x.withConn(func(c net.Conn) error { return x.AwaitSum(c, topic, x.o.wild.partitions, want) })
}

// noteClient notes how fast a client was, and what the broker used meanwhile.
func (x *session) noteClient(name string, rules []string, megabytes float64, s rig.Spent) {
	of := fmt.Sprintf("1 KB, %d partitions, ", x.o.wild.partitions)
	x.noteRules(rules, pairMetric{group: name, name: of + "throughput", unit: "MB/s", more: true}, megabytes)
	gb := float64(x.o.wild.records) * clientRecord / 1e9
	x.noteRules(rules, pairMetric{group: name, name: of + "processor time of the broker", unit: "CPU-s/GB"}, s.CPU.Seconds()/gb)
}

// javaClients are the programs with which Kafka measures itself.
func (x *session) javaClients(rules []string) error {
	topic, err := x.clientTopic("java", rules[0])
	if err != nil {
		return err
	}
	records := strconv.Itoa(x.o.wild.records)
	var out string
	s, err := x.cost(javaProduce, func() error {
		out, err = x.javaTool("ProducerPerformance", "--topic", topic, "--num-records", records, "--record-size", strconv.Itoa(clientRecord),
			"--throughput", "-1", "--bootstrap-server", x.p.Addr)
		return err
	})
	if err != nil {
		return err
	}
	rate, err := producerRate(out, x.o.wild.records)
	if err != nil {
		return err
	}
	x.noteClient(javaProduce, rules, rate*clientRecord/1e6, s)
	if err := errors.Join(x.checkClient(topic), x.flush()); err != nil {
		return err
	}
	s, err = x.cost(javaConsume, func() error {
		out, err = x.javaTool("ConsumerPerformance", "--topic", topic, "--num-records", records, "--hide-header",
			"--timeout", "30000", "--bootstrap-server", x.p.Addr)
		return err
	})
	if err != nil {
		return err
	}
	if rate, err = consumerRate(out, x.o.wild.records); err != nil {
		return err
	}
	x.noteClient(javaConsume, rules, rate*clientRecord/1e6, s)
	return nil
}

// javaTool runs one of Kafka's tools and returns what it prints.
func (x *session) javaTool(name string, args ...string) (string, error) {
	args = append([]string{"-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", x.java.classpath, "org.apache.kafka.tools." + name}, args...)
	ctx, cancel := context.WithTimeout(x.Context, clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, x.java.java, args...)
	rig.Tie(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, lastLines(string(out)))
	}
	return string(out), nil
}

// lastLines shortens what a program has printed.
func lastLines(text string) string { return text[max(0, len(text)-1000):] }

var producerLine = regexp.MustCompile(`(?m)^(\d+) records sent, ([\d.]+) records/sec`)

// producerRate reads the last line of Kafka's producer: how many records it sent per
// second.
func producerRate(out string, want int) (float64, error) {
	all := producerLine.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("the producer tells nothing: %s", lastLines(out))
	}
	last := all[len(all)-1]
	if last[1] != strconv.Itoa(want) {
		return 0, fmt.Errorf("the producer sent %s records, not %d", last[1], want)
	}
	return strconv.ParseFloat(last[2], 64)
}

// consumerRate reads the line of Kafka's consumer: start, end, MB, MB/s, records,
// records/s, time to rebalance, time to fetch, MB/s and records/s of fetching.
func consumerRate(out string, want int) (float64, error) {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 10 {
			continue
		}
		if n, err := strconv.Atoi(f[4]); err != nil || n < want {
			return 0, fmt.Errorf("the consumer read %s records, not %d", f[4], want)
		}
		return strconv.ParseFloat(f[9], 64)
	}
	return 0, fmt.Errorf("the consumer tells nothing: %s", lastLines(out))
}

// rdkafkaClients write and read by kcat, which is librdkafka for the command line. It
// tells no rates, so the time of the whole program counts.
func (x *session) rdkafkaClients(kcat string, rules []string) error {
	topic, err := x.clientTopic("rdkafka", rules[0])
	if err != nil {
		return err
	}
	lines := filepath.Join(filepath.Dir(x.data), "lines")
	if err := writeLines(lines, x.o.wild.records); err != nil {
		return err
	}
	megabytes := float64(x.o.wild.records) * clientRecord / 1e6
	s, err := x.cost(rdkafkaProduce, func() error {
		_, err := x.kcat(kcat, "-P", "-b", x.p.Addr, "-t", topic, "-l", lines)
		return err
	})
	if err != nil {
		return err
	}
	x.noteClient(rdkafkaProduce, rules, megabytes/s.Wall.Seconds(), s)
	if err := errors.Join(x.checkClient(topic), x.flush()); err != nil {
		return err
	}
	var read int64
	s, err = x.cost(rdkafkaConsume, func() (err error) {
		read, err = x.kcat(kcat, "-C", "-q", "-e", "-b", x.p.Addr, "-t", topic, "-o", "beginning", "-f", ".")
		return err
	})
	if err != nil {
		return err
	}
	if want := int64(x.o.wild.records + x.o.wild.partitions); read != want {
		return fmt.Errorf("kcat read %d records, not %d", read, want)
	}
	x.noteClient(rdkafkaConsume, rules, megabytes/s.Wall.Seconds(), s)
	return nil
}

// kcat runs kcat and returns how many bytes it has printed.
func (x *session) kcat(program string, args ...string) (int64, error) {
	ctx, cancel := context.WithTimeout(x.Context, clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	rig.Tie(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	if waited := cmd.Wait(); waited != nil || err != nil {
		return n, fmt.Errorf("kcat: %w\n%s", waited, lastLines(stderr.String()))
	}
	return n, nil
}

// writeLines writes a file with a record in each line.
func writeLines(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	line := bytes.Repeat([]byte("abcdefghij"), clientRecord/10)
	line[clientRecord-1] = '\n'
	for range n {
		if _, err := w.Write(line); err != nil {
			break // which the flush tells
		}
	}
	if err := w.Flush(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
