package fakes

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fake is a run of a fake program.
type fake struct {
	name    string
	options map[string]string // given options, with their values or ""
	rest    []string
	session session
}

// session is a fake's memory of a conversation.
type session struct {
	ID      string
	Cwd     string
	Prompts []string
}

// start parses the command line. takes lists the options and whether they have a value; any other is rejected
// as the program would.
func start(name string, takes map[string]bool) *fake {
	f := &fake{name: name, options: map[string]string{}}
	args := os.Args[1:]
	for i := 0; i < len(args); i++ {
		value, known := takes[args[i]]
		switch {
		case !strings.HasPrefix(args[i], "-") || args[i] == "-":
			f.rest = append(f.rest, args[i])
		case !known:
			f.die(2, "error: unknown option '%s'", args[i])
		case value && i+1 < len(args):
			f.options[args[i]] = args[i+1]
			i++
		default:
			f.options[args[i]] = ""
		}
	}
	return f
}

func (f *fake) has(option string) bool { _, ok := f.options[option]; return ok }

func (f *fake) die(code int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(code)
}

// stdin returns the prompt of a program that reads it there.
func stdin() string {
	data, err := io.ReadAll(os.Stdin)
	if err != nil || len(data) == 0 {
		fmt.Fprintln(os.Stderr, "no prompt on stdin")
		os.Exit(1)
	}
	return string(data)
}

func (f *fake) file(id string) string {
	return filepath.Join(os.Getenv("FAKES"), f.name, strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, id)+".json")
}

// load loads a session and reports whether it exists.
func (f *fake) load(id string) bool {
	data, err := os.ReadFile(f.file(id))
	return err == nil && json.Unmarshal(data, &f.session) == nil
}

// hear adds a prompt to the session and returns the answer.
func (f *fake) hear(prompt string) string {
	f.session.Prompts = append(f.session.Prompts, prompt)
	f.session.Cwd, _ = os.Getwd()
	if err := os.MkdirAll(filepath.Dir(f.file("x")), 0o700); err != nil {
		f.die(9, "%v", err)
	}
	data, _ := json.Marshal(f.session)
	if err := os.WriteFile(f.file(f.session.ID), data, 0o600); err != nil {
		f.die(9, "%v", err)
	}
	return f.answer()
}

var goal = regexp.MustCompile(`(?m)^I am the (\w+)\.`)

// answer returns the answer for the session's role: a reviewer is content from its second visit on.
func (f *fake) answer() string {
	role, status := "nobody", "done"
	if m := goal.FindStringSubmatch(strings.Join(f.session.Prompts, "\n")); m != nil {
		role = m[1]
	}
	if role == "reviewer" && len(f.session.Prompts) == 1 {
		status = "again"
	}
	return fmt.Sprintf("---\n$status: %s\nby: %s\nturn: %d\n---\n\nThe %s's turn %d, by %s.\n",
		status, f.name, len(f.session.Prompts), role, len(f.session.Prompts), f.name)
}

// serial numbers new sessions.
func (f *fake) serial() int {
	there, _ := filepath.Glob(f.file("*"))
	return len(there) + 1
}

func print(lines ...map[string]any) {
	for _, line := range lines {
		data, _ := json.Marshal(line) // maps of strings can always be encoded
		fmt.Println(string(data))
	}
}

// answers handles a query for the version or help, and reports whether there was one.
func answers(version, help string, helpArgs ...string) bool {
	switch args := os.Args[1:]; {
	case slices.Equal(args, []string{"--version"}):
		fmt.Println(version)
	case slices.Equal(args, helpArgs):
		fmt.Println(help)
	default:
		return false
	}
	return true
}

// keysOf lists the options as a help text does.
func keysOf(takes map[string]bool) string {
	var list []string
	for name := range takes {
		list = append(list, "  "+name)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}
