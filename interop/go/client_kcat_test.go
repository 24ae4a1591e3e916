package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// kcat is librdkafka on the command line. It gives all records the same headers
// and the time of sending.
var kcat = client{
	name: "kcat", byKey: true,
	prepare: func(recs []rec) {
		for i := range recs {
			recs[i].headers, recs[i].timestamp = "tool=kcat,purpose=test", anyTime
		}
	},
	produce: kcatProduce,
	consume: kcatConsume,
}

func kcatProduce(ctx context.Context, addr, topic, codec string, recs []rec) error {
	args := []string{"-P", "-b", addr, "-t", topic, "-z", codec, "-K", `\t`}
	for _, h := range recs[0].headerList() {
		args = append(args, "-H", h.name+"="+h.value)
	}
	var in bytes.Buffer
	for i := range recs {
		fmt.Fprintf(&in, "%s\t%s\n", recs[i].key, recs[i].value)
	}
	cmd := exec.CommandContext(ctx, "kcat", args...)
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kcat -P: %w: %s", err, out)
	}
	return nil
}

func kcatConsume(ctx context.Context, addr, topic string, c *collector) error {
	cmd := exec.CommandContext(ctx, "kcat", "-C", "-e", "-q", "-b", addr, "-t", topic, "-o", "beginning", "-f", `%p\t%T\t%k\t%h\t%s\n`)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var bad error
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if bad == nil {
			bad = kcatLine(lines.Text(), c)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("kcat -C: %w: %s", err, stderr.Bytes())
	}
	if bad == nil && c.left != 0 {
		return fmt.Errorf("%d records short: %s", c.left, stderr.Bytes())
	}
	return bad
}

func kcatLine(line string, c *collector) error {
	f := strings.SplitN(line, "\t", 5)
	if len(f) != 5 {
		return fmt.Errorf("kcat printed %q", line)
	}
	partition, err := strconv.Atoi(f[0])
	if err != nil {
		return err
	}
	timestamp, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return err
	}
	return c.add(partition, rec{key: f[2], value: f[4], headers: f[3], timestamp: timestamp})
}
