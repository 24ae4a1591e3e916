// Command bench measures the broker beside bare Go programs that do the same
// work with nothing of Kafka around it, in one run.
//
// "bench kafka" measures the broker beside Apache Kafka instead, with the same
// load for both: see package contest. "bench builds" compares two builds of the
// broker. All else is package rig.
//
// It talks to 127.0.0.1 only, needs Linux, and removes what it has written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"muster/bench/contest"
	"muster/bench/rig"
)

func main() {
	rig.BeChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := toRoot()
	if err == nil {
		err = execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// toRoot goes to the root of the repository, so that it does not matter where in it this
// program is started.
func toRoot() error {
	for {
		if _, err := os.Stat("cmd/muster"); err == nil {
			return nil
		}
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		if filepath.Dir(here) == here {
			return errors.New("run it in the repository")
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
	}
}

// execute does what the arguments ask for.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "kafka" {
		o, err := contest.Parse(args[1:], stderr)
		if err != nil {
			return err
		}
		return contest.Run(ctx, o, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "builds" {
		o, err := rig.ParseBuilds(args[1:], stderr)
		if err != nil {
			return err
		}
		return rig.RunBuilds(ctx, o, stdout, stderr)
	}
	o, err := rig.Parse(args, stderr)
	if err != nil {
		return err
	}
	return rig.Run(ctx, o, stdout, stderr)
}
