// Package discover finds the installed agents and queries them. It runs their programs with --version and
// --check only, each for a limited time.
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

// Agent describes an agent's program.
type Agent struct {
	Command string               // as passed to Ask
	Version string               // printed version, without the program's name; "" if none
	Check   *protocol.AgentCheck // nil if it drives no other program, or doesn't support --check
	Err     error                // set if it cannot be started or doesn't end
}

// patience is the time limit for a query.
const patience = 20 * time.Second

// maxAnswer is the maximum number of bytes read of an answer.
const maxAnswer = 64 << 10

// Ask queries the agent at command. args are its configured arguments, which may select the program that it
// drives. Ask runs only programs with an agent's name: others could mistake the query for work.
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
	// Ignore the error. An agent without --check prints no JSON, and one that found a problem exits with a
	// status.
	out, _ = answer(ctx, path, e, append([]string{protocol.FlagCheck}, args...)...)
	var check protocol.AgentCheck
	if json.Unmarshal(out, &check) == nil {
		a.Check = &check
	}
	return a
}

// version returns the first line of an answer without the program's name, or "" if it doesn't look like a
// version.
func version(out, name string) string {
	const longest = 100
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	line = strings.TrimSuffix(line, "\r")
	if len(line) > longest || strings.ContainsFunc(line, unicode.IsControl) {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(line, strings.TrimSuffix(name, ".exe")))
}

// answer runs a program and returns its output. It fails if the program doesn't end or exits with a nonzero
// status; in the latter case it also returns the output.
func answer(ctx context.Context, path string, e env.Env, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := proc.Run(ctx, proc.Command{Path: path, Args: args, Dir: e.Dir, Env: e.Environ, Session: true}, nil,
		maxAnswer, time.Second)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s %s does not exit", filepath.Base(path), strings.Join(args, " "))
	case err == nil && out.Code != 0:
		err = fmt.Errorf("%s %s fails (exit status %d)", filepath.Base(path), strings.Join(args, " "), out.Code)
	}
	return out.Stdout, err // a truncated answer doesn't parse
}

// isAgent reports whether name is an agent's. Our other programs and the remote helpers share its prefix.
func isAgent(name string) bool {
	return !slices.Contains([]string{"uwf-box", "uwf-import-original", "uwf-temporal", "uwf-web"}, name) &&
		!strings.HasPrefix(name, "uwf-remote-")
}

// Installed reports whether [OnPath] contains name, without reading directories.
func Installed(e env.Env, name string) bool {
	if !strings.HasPrefix(name, protocol.AgentPrefix) || filepath.Base(name) != name || !isAgent(name) {
		return false
	}
	return slices.ContainsFunc(filepath.SplitList(e.Get("PATH")), func(dir string) bool {
		path := filepath.Join(dir, name)
		return filepath.IsAbs(dir) && (executable(path) || executable(path+".exe"))
	})
}

// OnPath returns the names of the agents on PATH, sorted. As in a shell, the first program of a name counts.
func OnPath(e env.Env) []string {
	var names []string
	for _, dir := range filepath.SplitList(e.Get("PATH")) {
		entries, err := os.ReadDir(dir)
		if err != nil || !filepath.IsAbs(dir) {
			continue // PATH often contains missing directories
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
