package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// kcatLogin is the librdkafka of the system, which may be years older than that of the Go
// client: before 2.6.1 it repeats its own nonce in SCRAM.
var kcatLogin = loginClient{
	name:    "kcat",
	produce: kcatLoginProduce,
	consume: kcatLoginConsume,
	refused: func(err error) bool { return strings.Contains(err.Error(), "SASL authentication error") },
}

// kcatLoginArgs are the settings of a client, before more arguments.
func kcatLoginArgs(a *account, more ...string) []string {
	protocol := "ssl"
	if a.mechanism != "" {
		protocol = "sasl_plaintext"
	}
	args := []string{"-b", a.addr}
	if a.trust != "" {
		protocol = strings.Replace(protocol, "plaintext", "ssl", 1)
		args = append(args, "-X", "ssl.ca.location="+a.trust)
	}
	args = append(args, "-X", "security.protocol="+protocol)
	if a.mechanism != "" {
		args = append(args, "-X", "sasl.mechanism="+a.mechanism, "-X", "sasl.username="+a.user, "-X", "sasl.password="+a.password.get())
	}
	if a.own != "" {
		args = append(args, "-X", "ssl.certificate.location="+a.own, "-X", "ssl.key.location="+a.own)
	}
	return append(args, more...)
}

func kcatLoginProduce(ctx context.Context, a *account, topic string, next func() (string, bool)) error {
	var in bytes.Buffer
	for value, more := next(); more; value, more = next() {
		fmt.Fprintln(&in, value)
	}
	cmd := exec.CommandContext(ctx, "kcat", kcatLoginArgs(a, "-P", "-t", topic, "-p", "0")...)
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kcat -P: %w: %s", err, out)
	}
	return nil
}

func kcatLoginConsume(ctx context.Context, a *account, topic, group string, got func(string) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kcat", kcatLoginArgs(a, "-q", "-u", "-f", `%s\n`, "-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=100", "-G", group, topic)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	enough := false
	for lines := bufio.NewScanner(out); !enough && lines.Scan(); {
		if enough = !got(lines.Text()); enough {
			_ = cmd.Process.Signal(os.Interrupt) // It commits and leaves.
		}
	}
	err = cmd.Wait()
	if !enough {
		return fmt.Errorf("kcat -G: %v: %s", err, stderr.Bytes())
	}
	return nil
}
