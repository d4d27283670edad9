package cliagenttest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/box/inside"
)

// scriptVariable is the environment variable with the script that the test binary plays.
const scriptVariable = "UWF_EXTERNALTEST_SCRIPT"

// script describes the behavior of a played program.
type script struct {
	Version string // output of the version query
	Help    string
	Stdout  []byte
	Stderr  []byte
	Code    int
	Fault   string
	Pids    string // file for the IDs of children that outlive it
	Asked   string // directory that records each start
}

// Main is the body of TestMain: it runs the tests, or plays the program if the test binary was started as
// one.
func Main(m *testing.M) {
	path := os.Getenv(scriptVariable)
	switch {
	case os.Getpid() == 1:
		os.Exit(inside.Main(os.Args[1:], os.Stderr)) // act as uwf-box
	case path != "":
		os.Exit(play(path))
	case os.Getenv("UWF_CALL") != "":
		fmt.Fprintln(os.Stderr, "externaltest: a program without a script; the tests are not run again")
		os.Exit(3)
	}
	os.Exit(prosetest.Run(m))
}

// self returns the path of the test binary.
func self() string { return os.Args[0] }

// play plays a program.
func play(path string) int {
	var s script
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "externaltest:", err)
		return 3
	}
	if len(os.Args) == 2 && strings.Contains(os.Args[1], "ersion") {
		fmt.Println(s.Version)
		return 0
	}
	if slices.Contains(os.Args, "--help") {
		fmt.Println(s.Help)
		return 0
	}
	if err := s.note(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "externaltest:", err)
		return 3
	}
	if s.Fault == "sleeper" {
		time.Sleep(time.Minute)
		return 0
	}
	return s.run()
}

// run plays the run. All faults are here, so that their order is obvious.
func (s script) run() int {
	switch s.Fault {
	case "silent":
		time.Sleep(time.Minute)
	case "deaf to signals":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	case "does not read":
		_ = os.Stdin.Close()
	default:
		if s.Asked == "" { // otherwise it is read below
			_, _ = readPrompt(os.Args, os.Stdin)
		}
	}
	_, _ = os.Stderr.Write(s.Stderr)
	if s.Fault == "in pieces" {
		for b := s.Stdout; len(b) > 0; b = b[min(len(b), 401):] {
			_, _ = os.Stdout.Write(b[:min(len(b), 401)])
			time.Sleep(100 * time.Microsecond)
		}
	} else {
		_, _ = os.Stdout.Write(s.Stdout)
	}
	switch s.Fault {
	case "hangs", "deaf to signals":
		time.Sleep(time.Minute)
	case "leaves a child":
		s.leave()
	case "killed":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		time.Sleep(time.Minute)
	}
	return s.Code
}

// leave starts a child that inherits the streams, in a new process group.
func (s script) leave() {
	path := s.Pids + ".script"
	data, _ := json.Marshal(script{Fault: "sleeper"})
	if os.WriteFile(path, data, 0o600) != nil {
		os.Exit(3)
	}
	child := exec.Command(os.Args[0], "child")
	child.Env = append(os.Environ(), scriptVariable+"="+path)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	detach(child)
	if err := child.Start(); err != nil {
		os.Exit(3)
	}
	if os.WriteFile(s.Pids, fmt.Append(nil, child.Process.Pid), 0o600) != nil {
		os.Exit(3)
	}
}
