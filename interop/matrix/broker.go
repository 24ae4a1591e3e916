package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 15 * time.Second
)

// settings let groups start at once, and members with a short session timeout and
// transactions with a short timeout be missed soon. In consumer and streams groups it is the
// broker that says how often members are heard of, and when they are missed.
var settings = []string{
	"group.consumer.heartbeat.interval.ms=200", "group.consumer.session.timeout.ms=10000", "group.consumer.assignment.interval.ms=100",
	"group.streams.heartbeat.interval.ms=200", "group.streams.session.timeout.ms=6000", "group.streams.assignment.interval.ms=100",
	"group.initial.rebalance.delay.ms=0", "group.streams.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000",
	"transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
}

// broker is a `muster serve`, and the Redis behind it if there is one.
type broker struct {
	addr   string            // of the first listener
	addrs  map[string]string // of each listener
	logs   tail
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone
	redis  *exec.Cmd
}

// startBroker starts a broker that asks no one who they are, with a store that is empty,
// and returns when it listens.
func startBroker(ctx context.Context, store, dir string) (*broker, error) {
	return launch(ctx, store, dir, 1, "--listen", "127.0.0.1:0")
}

// launch starts a broker with a store that is empty, whose data are in a folder, and returns
// when it listens on as many listeners as more arguments say that there are.
func launch(ctx context.Context, store, dir string, listeners int, more ...string) (*broker, error) {
	b := &broker{addrs: map[string]string{}, exited: make(chan struct{})}
	if store == "redis" {
		var err error
		if b.redis, store, err = startRedis(ctx, dir); err != nil {
			return nil, err
		}
	}
	args := append([]string{"serve", "--store", store, "--data", filepath.Join(dir, "data")}, more...)
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	b.cmd = exec.Command(filepath.Join("bin", "muster"), args...)
	ownGroup(b.cmd)
	stderr, err := b.cmd.StderrPipe()
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		b.stopRedis()
		return nil, err
	}
	listening := make(chan struct{})
	go b.follow(stderr, listeners, listening)
	select {
	case <-listening:
		return b, nil
	case <-b.exited:
		err = fmt.Errorf("the broker ended before it listened:\n%s", &b.logs)
	case <-time.After(startTimeout):
		err = fmt.Errorf("the broker does not listen after %s:\n%s", startTimeout, &b.logs)
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.stop()
	return nil, err
}

var listeningLine = regexp.MustCompile(`msg="?listening"? listener=(\S+) address=(\S+)`)

// follow reads the broker's log until it ends, and closes a channel when all listeners are
// open. No one reads the addresses before that.
func (b *broker) follow(stderr io.Reader, listeners int, listening chan<- struct{}) {
	defer close(b.exited)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		b.logs.add(lines.Text())
		m := listeningLine.FindStringSubmatch(lines.Text())
		if m == nil || len(b.addrs) == listeners {
			continue
		}
		if b.addr == "" {
			b.addr = m[2]
		}
		if b.addrs[m[1]] = m[2]; len(b.addrs) == listeners {
			close(listening)
		}
	}
	if err := b.cmd.Wait(); err != nil {
		b.logs.add("the broker ended: " + err.Error())
	}
}

// stop ends the broker and its Redis.
func (b *broker) stop() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.exited:
	case <-time.After(stopTimeout):
		_ = b.cmd.Process.Kill()
		<-b.exited
	}
	b.stopRedis()
}

func (b *broker) stopRedis() {
	if b.redis != nil {
		_ = b.redis.Process.Kill()
		_ = b.redis.Wait()
	}
}

// startRedis starts a Redis, or Valkey, that keeps nothing, and returns its URL.
func startRedis(ctx context.Context, dir string) (*exec.Cmd, string, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		return nil, "", errors.New("there is no redis-server and no valkey-server")
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, "", err
	}
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(program, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	cmd.Stderr = os.Stderr
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	for end := time.Now().Add(startTimeout); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return cmd, "redis://" + addr, nil
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return nil, "", fmt.Errorf("%s does not listen on %s", program, addr)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
