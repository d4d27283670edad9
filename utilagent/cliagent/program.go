package cliagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// probeTime is how long a program may take to say its version.
const probeTime = 15 * time.Second

// markerVariable marks the environment of a program and of all that it starts.
const markerVariable = "UWF_CALL"

// program is the program of an agent, as it is installed.
type program struct {
	Path    string `json:"path"`
	Real    string `json:"real"` // without symbolic links
	Size    int64  `json:"size"`
	Changed int64  `json:"changed"` // with its directory's, nanoseconds: npm gives all files one old date
	AskedMs int64  `json:"askedMs"`
	Version string `json:"version"`
	Help    string `json:"help,omitempty"`
}

// locate finds the program: in its variable, else by its names on PATH.
func locate(a Adapter, e env.Env) (string, error) {
	names := append([]string{a.Program}, a.Aliases...)
	variable := binVariable(a.Name)
	if named := e.Get(variable); named != "" {
		names = []string{named}
	}
	var missing error
	for _, name := range names {
		path, err := proc.LookPath(name, e.Dir, e.Environ)
		if err == nil {
			return path, nil
		}
		if missing == nil || !errors.Is(err, exec.ErrNotFound) {
			missing = err
		}
	}
	hint := a.Install
	if named := e.Get(variable); named != "" {
		hint = "correct " + variable
	} else if hint != "" {
		hint += "; or say where it is: export " + variable + "=…"
	}
	text := fmt.Sprintf("%s cannot be started: %v", names[0], missing)
	if errors.Is(missing, exec.ErrNotFound) {
		text = names[0] + " is not installed: it is not on PATH"
	}
	return "", &Error{Program: a.Program, Kind: NotInstalled, Text: text, Hint: hint}
}

// probeAge is how long an answer is believed: a launcher may stay the same when
// what it launches is updated.
const probeAge = 24 * time.Hour

// find locates the program and learns its version: from the cache, as long as its
// file is the same, since a program in JavaScript takes a second to say it. dir is
// where answers are remembered, "" if nowhere.
func find(ctx context.Context, a Adapter, e env.Env, dir string) (program, error) {
	path, err := locate(a, e)
	if err != nil || a.Probe.None {
		return program{Path: path}, err
	}
	cache := probeFile(dir, path)
	p := program{Path: path, Real: path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		p.Real = real
	}
	info, err := os.Stat(p.Real)
	if err != nil {
		return p, fmt.Errorf("%s: %w", a.Program, err)
	}
	p.Size, p.Changed, p.AskedMs = info.Size(), info.ModTime().UnixNano(), e.Now().UnixMilli()
	if around, err := os.Stat(filepath.Dir(p.Real)); err == nil {
		p.Changed += around.ModTime().UnixNano()
	}
	if known, ok := recall(cache, p); ok {
		return known, a.tooOld(known)
	}
	said, err := ask(ctx, path, orArgs(a.Probe.Args, "--version"), a, e)
	if err != nil {
		return p, a.unanswered(err, e)
	}
	p.Version = versionIn(said)
	if len(a.Probe.Help) > 0 {
		if p.Help, err = ask(ctx, path, a.Probe.Help, a, e); err != nil {
			return p, a.unanswered(err, e)
		}
	}
	if dir != "" {
		_ = durable.ReplaceJSON(durable.OS(), cache, p) // a cache that cannot be written costs a second each time
	}
	return p, a.tooOld(p)
}

// unanswered accepts a program that does not report its version: a wrapper may not know the
// question.
func (a Adapter) unanswered(err error, e env.Env) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	fmt.Fprintf(e.Stderr, "warning: %s does not say its version: %v\n", a.Program, err)
	return nil
}

// versionIn is the first line with a version; a long line is no answer to the
// question for one.
func versionIn(said string) string {
	const longest = 200
	for line := range strings.Lines(said) {
		if v := ParseVersion(line); v.Known() && len(line) <= longest {
			return v.String()
		}
	}
	return ""
}

func orArgs(args []string, usual ...string) []string {
	if args != nil {
		return args
	}
	return usual
}

// tooOld is the error for a version that does not work.
func (a Adapter) tooOld(p program) error {
	v := ParseVersion(p.Version)
	if !v.Before(a.Probe.Min) {
		return nil
	}
	return &Error{
		Program: a.Program, Kind: TooOld,
		Text: fmt.Sprintf("%s %s is too old: version %s or later is needed", a.Program, v, a.Probe.Min), Hint: a.Install,
	}
}

// warnings are what is known to be broken in a version.
func (a Adapter) warnings(v Version) []string {
	var texts []string
	for _, f := range a.Probe.Flaws {
		if f.in(v) {
			texts = append(texts, fmt.Sprintf("%s %s: %s", a.Program, v, f.Text))
		}
	}
	return texts
}

// in reports whether a version has the flaw.
func (f Flaw) in(v Version) bool {
	return v.Known() && v.compare(f.From) >= 0 && (!f.Before.Known() || v.Before(f.Before))
}
