package cliagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
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

// ask runs the program for what it says about itself, on either stream.
func ask(ctx context.Context, path string, args []string, a Adapter, e env.Env) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %s", probeTime))
	defer cancel()
	said := &output.Tail{}
	id, err := newUUID(e.Rand)
	if err != nil {
		return "", err
	}
	p, err := start(launch{
		path: path, inv: Invocation{Args: args, Dir: e.Dir}, env: environment(e.Environ, a, Invocation{}),
		marker: markerVariable + "=" + id, stdout: said, stderr: said,
	})
	if err != nil {
		return "", &Error{Program: a.Program, Kind: NotInstalled, Text: err.Error(), Hint: a.Install}
	}
	stop := context.AfterFunc(ctx, func() { p.Stop(100 * time.Millisecond) })
	defer stop()
	p.stdout.Each(nil)
	exit, err := p.Wait()
	switch {
	case context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", err
	case exit.Code != 0:
		return "", &statusError{exit.Code, cmp.Or(strings.TrimSpace(said.Text()), "it says nothing")}
	}
	return said.Text(), nil
}

// statusError is a program's answer to a question that ended with a status.
type statusError struct {
	code int
	said string
}

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d: %s", e.code, e.said) }

// recall reads what is known of a program, if its file is still the same.
func recall(cache string, p program) (program, bool) {
	data, err := os.ReadFile(cache)
	var known program
	if err != nil || json.NewDecoder(bytes.NewReader(data)).Decode(&known) != nil {
		return p, false
	}
	same := known.Path == p.Path && known.Real == p.Real && known.Size == p.Size && known.Changed == p.Changed
	return known, same && p.AskedMs-known.AskedMs < probeAge.Milliseconds()
}

// probeFile is where what is known of a program is remembered.
func probeFile(dir, path string) string {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, path)
	return filepath.Join(dir, fmt.Sprintf("program-%08x.json", sum.Sum32()))
}

// Version is a program's version. The zero value is an unknown one.
type Version struct {
	Major, Minor, Patch int
	Text                string // as the program says it, for people
}

var versionPattern = lazyregexp.New(`(\d+)\.(\d+)(?:\.(\d+))?[0-9A-Za-z.+-]*`)

// ParseVersion finds the first version in a text, such as "codex-cli 0.169.0".
func ParseVersion(text string) Version {
	m := versionPattern().FindStringSubmatch(text)
	if m == nil {
		return Version{}
	}
	v := Version{Text: m[0]}
	for i, part := range []*int{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil && m[i+1] != "" {
			return Version{} // too large to be a version
		}
		*part = n
	}
	return v
}

// V returns a version.
func V(major, minor, patch int) Version { return Version{Major: major, Minor: minor, Patch: patch} }

// Known tells a version from none.
func (v Version) Known() bool { return v.Major+v.Minor+v.Patch > 0 }

// AtLeast reports whether v is w or later. One that is not known is not.
func (v Version) AtLeast(w Version) bool { return v.Known() && v.compare(w) >= 0 }

// Before reports whether v is known and earlier than w.
func (v Version) Before(w Version) bool { return v.Known() && v.compare(w) < 0 }

func (v Version) compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// String is the version as people write it.
func (v Version) String() string {
	if v.Text != "" || !v.Known() {
		return v.Text
	}
	return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) + "." + strconv.Itoa(v.Patch)
}

// check reports the program: where it is, its version, and what is wrong with it.
// It starts the program only to ask for its version, if that is not known, and whether somebody is
// logged in.
func (s *steps) check(ctx context.Context) protocol.AgentCheck {
	a, around := s.adapter, runenv.Of(ctx)
	if a.Commanded {
		a.Program, a.Probe.None = s.extra[0], true
	}
	remembered := ""
	if around.Dirs.Home != "" {
		remembered = filepath.Join(around.Dirs.Sessions(), protocol.AgentName(a.Name))
	}
	p, err := find(ctx, a, around.Env, remembered)
	version := ParseVersion(p.Version)
	found := protocol.AgentCheck{Program: p.Path, Version: version.String(), Problems: []protocol.AgentProblem{}}
	for _, f := range a.Probe.Flaws {
		if f.in(version) {
			found.Problems = append(found.Problems, protocol.AgentProblem{What: a.Program + " " + version.String() + ": " + f.Text, Do: a.Install})
		}
	}
	if err == nil && a.Probe.LoggedIn != nil && version.AtLeast(a.Probe.Since) {
		found.Problems = append(found.Problems, a.loggedOut(ctx, p.Path, around)...)
	}
	if err == nil && !a.Probe.None && !version.Known() {
		found.Problems = append(found.Problems, protocol.AgentProblem{
			What: p.Path + " does not say its version: it may be another program of that name", Do: "start it by hand with --version; " + binVariable(a.Name) + " names another one",
		})
	}
	if problem, ok := errors.AsType[*Error](err); ok {
		found.Problems = append(found.Problems, protocol.AgentProblem{What: problem.Text, Do: problem.Hint})
	} else if err != nil {
		found.Problems = append(found.Problems, protocol.AgentProblem{What: err.Error()})
	}
	return found
}

// loggedOut says what the program lacks to reach its model: a login, or a key of a provider of the user's own.
func (a Adapter) loggedOut(ctx context.Context, path string, around *runenv.Run) []protocol.AgentProblem {
	if a.OwnKey != nil {
		switch variable, own := a.OwnKey(around.Env.Get); {
		case own && (variable == "" || hasKey(ctx, around, []string{variable})):
			return nil
		case own:
			return []protocol.AgentProblem{{
				What: variable + " is not set: " + a.Program + " takes the key of its model provider from it",
				Do:   "export " + variable + "=KEY",
			}}
		}
	}
	if hasKey(ctx, around, a.Logins) {
		return nil
	}
	if _, err := ask(ctx, path, a.Probe.LoggedIn, a, around.Env); errors.As(err, new(*statusError)) {
		return []protocol.AgentProblem{{What: "nobody is logged in to " + a.Program, Do: a.Login}}
	}
	return nil
}

// hasKey reports whether the program is given a key, by the environment or by an
// agent of the config: then nobody needs to be logged in.
func hasKey(ctx context.Context, around *runenv.Run, variables []string) bool {
	names := around.Env.Environ
	if around.Dirs.Home != "" {
		c, _ := config.Load(ctx, around.Dirs.Config(), around.Env) // what is wrong with it others say
		for _, agent := range c.Agents {
			names = slices.AppendSeq(slices.Clip(names), maps.Keys(agent.Env))
		}
	}
	return slices.ContainsFunc(names, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return matches(name, variables)
	})
}
