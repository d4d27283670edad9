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
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// probeTime bounds how long a program may take to print its version.
const probeTime = 15 * time.Second

// markerVariable marks the environment of a program and its descendants.
const markerVariable = "UWF_CALL"

// program describes an installed program.
type program struct {
	Path    string `json:"path"`
	Real    string `json:"real"` // resolved path
	Size    int64  `json:"size"`
	Changed int64  `json:"changed"` // newest change of the file and its directory, in nanoseconds: npm gives all files one old date
	AskedMs int64  `json:"askedMs"`
	Version string `json:"version"`
	Help    string `json:"help,omitempty"`
}

// locate finds the program by its environment variable, or else by its names in PATH.
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
		hint += "; or set its path: export " + variable + "=…"
	}
	text := fmt.Sprintf("cannot start %s: %v", names[0], missing)
	if errors.Is(missing, exec.ErrNotFound) {
		text = names[0] + " is not installed (not on PATH)"
	}
	return "", &Error{Program: a.Program, Kind: NotInstalled, Text: text, Hint: hint}
}

// probeAge bounds the age of a cached answer: a launcher may stay the same while the program behind it is
// updated.
const probeAge = 24 * time.Hour

// find locates the program and determines its version. Answers are cached in dir while the program's file is
// unchanged, since a JavaScript program takes a second to print its version. "" disables the cache.
func find(ctx context.Context, a Adapter, e env.Env, dir string) (program, error) {
	path, err := locate(a, e)
	if err != nil || a.Probe.None {
		return program{Path: path}, err
	}
	cache := probeFile(dir, path)
	p := program{Path: path, Real: safeopen.Resolved(path)}
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
	version := a.Probe.Args
	if version == nil {
		version = []string{"--version"}
	}
	output, err := ask(ctx, path, version, a, e)
	if err != nil {
		return p, a.unanswered(err, e)
	}
	p.Version = versionIn(output)
	if len(a.Probe.Help) > 0 {
		if p.Help, err = ask(ctx, path, a.Probe.Help, a, e); err != nil {
			return p, a.unanswered(err, e)
		}
	}
	if dir != "" {
		_ = durable.ReplaceJSON(durable.OS(), cache, p) // without the cache, each run takes a second longer
	}
	return p, a.tooOld(p)
}

// unanswered accepts a program that does not report its version, since a wrapper may not support the option.
func (a Adapter) unanswered(err error, e env.Env) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	fmt.Fprintf(e.Stderr, "warning: %s does not report its version: %v\n", a.Program, err)
	return nil
}

// versionIn returns the first line with a version. Long lines are ignored.
func versionIn(output string) string {
	const longest = 200
	for line := range strings.Lines(output) {
		if v := ParseVersion(line); v.Known() && len(line) <= longest {
			return v.String()
		}
	}
	return ""
}

// tooOld returns the error for an unsupported version.
func (a Adapter) tooOld(p program) error {
	v := ParseVersion(p.Version)
	if !v.Before(a.Probe.Min) {
		return nil
	}
	return &Error{
		Program: a.Program, Kind: TooOld,
		Text: fmt.Sprintf("%s %s is too old; need version %s or later", a.Program, v, a.Probe.Min), Hint: a.Install,
	}
}

// warnings returns the known bugs of a version.
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

// ask runs the program with args and returns its output from either stream.
func ask(ctx context.Context, path string, args []string, a Adapter, e env.Env) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %s", probeTime))
	defer cancel()
	tail := &output.Tail{}
	id, err := newUUID(e.Rand)
	if err != nil {
		return "", err
	}
	p, err := start(launch{
		path: path, inv: Invocation{Args: args, Dir: e.Dir}, env: environment(e.Environ, a, Invocation{}),
		marker: markerVariable + "=" + id, stdout: tail, stderr: tail,
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
		return "", &statusError{exit.Code, cmp.Or(strings.TrimSpace(tail.Text()), "no output")}
	}
	return tail.Text(), nil
}

// statusError is the output of a query that exited with an error status.
type statusError struct {
	code   int
	output string
}

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d: %s", e.code, e.output) }

// recall reads the cached facts about a program, if its file is unchanged.
func recall(cache string, p program) (program, bool) {
	data, err := os.ReadFile(cache)
	var known program
	if err != nil || json.NewDecoder(bytes.NewReader(data)).Decode(&known) != nil {
		return p, false
	}
	same := known.Path == p.Path && known.Real == p.Real && known.Size == p.Size && known.Changed == p.Changed
	return known, same && p.AskedMs-known.AskedMs < probeAge.Milliseconds()
}

// probeFile returns the cache file for a program.
func probeFile(dir, path string) string {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, path)
	return filepath.Join(dir, fmt.Sprintf("program-%08x.json", sum.Sum32()))
}

// Version is a program's version. The zero value is unknown.
type Version struct {
	Major, Minor, Patch int
	Text                string // as printed by the program
}

var versionPattern = lazyregexp.New(`(\d+)\.(\d+)(?:\.(\d+))?[0-9A-Za-z.+-]*`)

// ParseVersion returns the first version in a text such as "codex-cli 0.169.0".
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

// Known reports whether the version is known.
func (v Version) Known() bool { return v.Major+v.Minor+v.Patch > 0 }

// AtLeast reports whether v is known and not earlier than w.
func (v Version) AtLeast(w Version) bool { return v.Known() && v.compare(w) >= 0 }

// Before reports whether v is known and earlier than w.
func (v Version) Before(w Version) bool { return v.Known() && v.compare(w) < 0 }

func (v Version) compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// String returns the version's text.
func (v Version) String() string {
	if v.Text != "" || !v.Known() {
		return v.Text
	}
	return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) + "." + strconv.Itoa(v.Patch)
}

// check reports the program's path, version and problems. It starts the program only to query an unknown
// version and the login.
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
			What: p.Path + " does not report its version; it may be another program with that name", Do: "run it with --version; to use another program: export " + binVariable(a.Name) + "=PATH",
		})
	}
	if problem, ok := errors.AsType[*Error](err); ok {
		found.Problems = append(found.Problems, protocol.AgentProblem{What: problem.Text, Do: problem.Hint})
	} else if err != nil {
		found.Problems = append(found.Problems, protocol.AgentProblem{What: err.Error()})
	}
	return found
}

// loggedOut returns what the program lacks to reach its model: a login, or the key for a provider that the
// user configured.
func (a Adapter) loggedOut(ctx context.Context, path string, around *runenv.Run) []protocol.AgentProblem {
	if a.OwnKey != nil {
		switch variable, own := a.OwnKey(around.Env.Get); {
		case own && (variable == "" || hasKey(ctx, around, []string{variable})):
			return nil
		case own:
			return []protocol.AgentProblem{{
				What: variable + " is not set; " + a.Program + " reads its API key from it",
				Do:   "export " + variable + "=KEY",
			}}
		}
	}
	if hasKey(ctx, around, a.Logins) {
		return nil
	}
	if _, err := ask(ctx, path, a.Probe.LoggedIn, a, around.Env); errors.As(err, new(*statusError)) {
		return []protocol.AgentProblem{{What: "not logged in to " + a.Program, Do: a.Login}}
	}
	return nil
}

// hasKey reports whether the program gets a key from the environment or from an agent in the config, so that
// no login is needed.
func hasKey(ctx context.Context, around *runenv.Run, variables []string) bool {
	names := around.Env.Environ
	if around.Dirs.Home != "" {
		c, _ := around.Files.Load(ctx, around.Env) // config errors are reported elsewhere
		for _, agent := range c.Agents {
			names = slices.AppendSeq(slices.Clip(names), maps.Keys(agent.Env))
		}
	}
	return slices.ContainsFunc(names, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return matches(name, variables)
	})
}
