// Package discover finds the agents that are installed and asks them who they
// are. It starts their programs with --version and --check only, each for a
// bounded time.
package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// Agent is what is known of an agent's program.
type Agent struct {
	Command string               // as it was asked for
	Version string               // what it prints, without its name; "" if nothing
	Check   *protocol.AgentCheck // nil: it drives no program, or cannot say
	Err     error                // it cannot be started, or does not end
}

// patience is how long a program may take to answer.
const patience = 20 * time.Second

// maxAnswer is how much of an answer is read.
const maxAnswer = 64 << 10

// Ask asks a command; args are its own in the config, since some agents are told
// there what they drive. Only a program that is named like an agent is asked:
// anything else could take that for its work.
func Ask(ctx context.Context, command string, args []string, e env.Env) Agent {
	a := Agent{Command: command}
	path, err := proc.LookPath(command, e.Dir, e.Environ)
	if err != nil {
		a.Err = fmt.Errorf("cannot be started: %w", err)
		return a
	}
	if !strings.HasPrefix(filepath.Base(path), protocol.AgentPrefix) {
		return a
	}
	out, err := answer(ctx, path, e, "--version")
	if err != nil {
		a.Err = err
		return a
	}
	a.Version = version(string(out), filepath.Base(path))
	// An agent that knows no --check has nothing to say; one that has found a problem
	// exits with a status.
	out, _ = answer(ctx, path, e, append([]string{protocol.FlagCheck}, args...)...)
	var check protocol.AgentCheck
	if json.Unmarshal(out, &check) == nil {
		a.Check = &check
	}
	return a
}

// version is the first line of an answer without the program's name; "" if that
// is not what a version looks like.
func version(out, name string) string {
	const longest = 100
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	line = strings.TrimSuffix(line, "\r")
	if len(line) > longest || strings.ContainsFunc(line, unicode.IsControl) {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(line, strings.TrimSuffix(name, ".exe")))
}

// answer runs a program and returns what it prints. Errors: it exits with
// another status than 0, which prints something anyway, or does not end.
func answer(ctx context.Context, path string, e env.Env, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := proc.Run(ctx, proc.Command{Path: path, Args: args, Dir: e.Dir, Env: e.Environ, Session: true}, nil,
		maxAnswer, time.Second)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s %s does not end", filepath.Base(path), strings.Join(args, " "))
	case err == nil && out.Code != 0:
		err = fmt.Errorf("%s %s fails (exit status %d)", filepath.Base(path), strings.Join(args, " "), out.Code)
	}
	return out.Stdout, err // an answer that is cut off cannot be read
}

// isAgent tells agents from what only begins like them: our other programs, and those
// that speak to remotes.
func isAgent(name string) bool {
	return !slices.Contains([]string{"uwf-box", "uwf-import-original", "uwf-temporal", "uwf-web"}, name) &&
		!strings.HasPrefix(name, "uwf-remote-")
}

// Installed reports whether [OnPath] lists a name, without reading directories.
func Installed(e env.Env, name string) bool {
	if !strings.HasPrefix(name, protocol.AgentPrefix) || filepath.Base(name) != name || !isAgent(name) {
		return false
	}
	return slices.ContainsFunc(filepath.SplitList(e.Get("PATH")), func(dir string) bool {
		path := filepath.Join(dir, name)
		return filepath.IsAbs(dir) && (executable(path) || executable(path+".exe"))
	})
}

// OnPath lists the agents on PATH by name, sorted; the first of a name counts,
// as for a shell.
func OnPath(e env.Env) []string {
	var names []string
	for _, dir := range filepath.SplitList(e.Get("PATH")) {
		entries, err := os.ReadDir(dir)
		if err != nil || !filepath.IsAbs(dir) {
			continue // PATH often names directories that are not there
		}
		for _, entry := range entries {
			name := strings.TrimSuffix(entry.Name(), ".exe")
			if strings.HasPrefix(name, protocol.AgentPrefix) && isAgent(name) && executable(filepath.Join(dir, entry.Name())) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
