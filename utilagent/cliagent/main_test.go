package cliagent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/utilagent/box/inside"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
)

// playVariable is the directory of a program that the test binary acts as.
const playVariable = "UWF_EXTERNAL_TEST_PLAY"

func TestMain(m *testing.M) {
	dir := os.Getenv(playVariable)
	if status, dispatched := bind.Dispatch(os.Args[1:], os.Environ(), os.Stderr); dispatched {
		os.Exit(status)
	}
	switch {
	case os.Getpid() == 1:
		os.Exit(inside.Main(os.Args[1:], os.Stderr)) // act as uwf-box
	case dir != "" && len(os.Args) == 2 && os.Args[1] == "--version":
		fmt.Println("toy 1.2.3")
		os.Exit(0)
	case dir != "" && len(os.Args) == 2 && os.Args[1] == "sleeper":
		time.Sleep(time.Minute)
		os.Exit(0)
	case dir != "" && exists(filepath.Join(dir, "says")):
		os.Exit(remember(dir))
	case dir != "":
		os.Exit(play(dir))
	case os.Getenv("UWF_CALL") != "":
		os.Exit(3) // a program without its variable must not run the tests again
	}
	os.Exit(prosetest.Run(m))
}

// heard is the program's input.
type heard struct {
	Args   []string
	Prompt string
	Dir    string
	Env    []string
}

// play plays the next part of the program's script: lines to print, and directives that begin with "!".
func play(dir string) int {
	n := 1
	for exists(filepath.Join(dir, "heard-"+strconv.Itoa(n))) {
		n++
	}
	stdin, told := bufio.NewReader(os.Stdin), ""
	prompt := readPrompt(stdin)
	cwd, _ := os.Getwd()
	note, _ := json.Marshal(heard{Args: os.Args[1:], Prompt: prompt, Dir: cwd, Env: os.Environ()})
	if os.WriteFile(filepath.Join(dir, "heard-"+strconv.Itoa(n)), note, 0o600) != nil {
		return 3
	}
	script, err := os.ReadFile(filepath.Join(dir, "play-"+strconv.Itoa(n)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "no script for call", n)
		return 3
	}
	out := bufio.NewWriter(os.Stdout)
	for _, line := range strings.Split(strings.TrimRight(string(script), "\n"), "\n") {
		directive, isOne := strings.CutPrefix(line, "!")
		if !isOne {
			line = strings.ReplaceAll(line, "{session}", last(os.Args))
			_, _ = fmt.Fprintln(out, line)
			continue
		}
		_ = out.Flush()
		word, rest, _ := strings.Cut(directive, " ")
		switch word {
		case "exit":
			code, _ := strconv.Atoi(rest)
			return code
		case "stderr":
			fmt.Fprintln(os.Stderr, rest)
		case "post": // a person sends a message
			l := runfiles.Message{Text: rest, AtMs: time.Now().UnixMilli()}
			if _, err := runfiles.Dir(os.Getenv("UWF_STARTED_FOR")).Post(durable.OS(), l, rest); err != nil {
				return 3
			}
		case "take": // reads a message
			told, _ = stdin.ReadString('\n')
		case "end": // waits for the end of input
			_, _ = io.Copy(io.Discard, stdin)
		case "heard":
			fmt.Println("H", strings.Fields(told)[0])
		case "hang":
			time.Sleep(time.Minute)
		case "ever": // prints a line repeatedly
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				_, _ = fmt.Fprintln(os.Stdout, rest)
			}
		case "deaf":
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
		case "child":
			child := exec.Command(os.Args[0], "sleeper")
			detach(child)
			if child.Start() != nil || os.WriteFile(filepath.Join(dir, "child"), fmt.Append(nil, child.Process.Pid), 0o600) != nil {
				return 3
			}
		case "flood": // megabytes of results, a kilobyte each
			megabytes, _ := strconv.Atoi(rest)
			text := strings.Repeat("x", 1000)
			for i := range megabytes * 1000 {
				_, _ = fmt.Fprintf(out, "C c%d tool\nR c%d %d %s\n", i, i, i, text)
			}
		}
	}
	_ = out.Flush()
	return 0
}

// readPrompt reads the program's prompt: a single line if messages may follow.
func readPrompt(stdin *bufio.Reader) string {
	if slices.Contains(os.Args, "--hears") {
		line, _ := stdin.ReadString('\n')
		return line
	}
	text, _ := io.ReadAll(stdin)
	return string(text)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func last(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[len(s)-1]
}
