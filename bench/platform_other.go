//go:build !linux

package main

import (
	"os/exec"
	"time"
)

func tie(*exec.Cmd) {}

func pause(d time.Duration) { time.Sleep(d) }
