package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// measured is the first argument of a gate that runs one test binary for go test.
const measured = "-measured"

// cost is what a test binary and all that it started and waited for took.
type cost struct {
	Dir  string
	Wall time.Duration
	CPU  time.Duration
}

// measure runs a test binary, appends its cost to a file, and returns its exit code.
func measure(file string, command []string) int {
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // A binary that runs out of time is told by go test.
		}
	}()
	_ = cmd.Wait() // How it ended is in the state.
	if cmd.ProcessState == nil {
		return 1
	}
	if err := note(file, cost{
		Wall: time.Since(start),
		CPU:  cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}); err != nil {
		fmt.Fprintln(os.Stderr, "gate: the cost of a test was not noted:", err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, "test ended:", cmd.ProcessState) // By a signal.
	return 1
}

func note(file string, c cost) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c.Dir = dir
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
