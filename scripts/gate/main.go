// Gate runs go test and says what it cost. It prints a line per package and the
// output of what failed, as go test does, and at the end the tests and packages that
// took longest, with the processor time of a package and of all that it started.
// Nothing fails by the clock: the lists are there so that growth is seen.
//
//	go run ./scripts/gate -shuffle=on ./...
//
// The arguments are those of go test.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// listed is how many of the slowest are printed.
const listed = 10

func main() {
	if len(os.Args) > 3 && os.Args[1] == measured {
		os.Exit(measure(os.Args[2], os.Args[3:]))
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run runs go test with these arguments, and returns its exit code.
func run(args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	costs, err := os.CreateTemp("", "gate")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = costs.Close() // What was in it is printed.
		_ = os.Remove(costs.Name())
	}()

	start := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json", "-exec", self + " " + measured + " " + costs.Name()}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range interrupted {
			_ = cmd.Process.Signal(s) // It ends the tests, and we tell what there was.
		}
	}()

	r := newReport(os.Stdout)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Println(lines.Text()) // What is not of a test: go's own words.
			continue
		}
		r.add(e)
	}
	readErr := lines.Err()
	waitErr := cmd.Wait()
	spent, err := readCosts(costs)
	if err != nil {
		return 1, err
	}
	r.slowest(spent, time.Since(start))
	if readErr != nil {
		return 1, fmt.Errorf("what go test printed: %w", readErr)
	}
	if waitErr != nil {
		return max(cmd.ProcessState.ExitCode(), 1), nil
	}
	return 0, nil
}

// readCosts reads what each package cost, by its folder.
func readCosts(f *os.File) (map[string]cost, error) {
	spent := map[string]cost{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c cost
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("costs: %w", err)
		}
		spent[c.Dir] = c
	}
	return spent, lines.Err()
}
