// Package place decides where a step may work. A location comes from a workflow
// that somebody else may have written, or from a model's answer, and what it names
// becomes the workspace of an agent. So it stays inside the directory that a
// person started the thread in, unless that person's config lists more.
//
// What counts is where a path leads once symbolic links are resolved, and what is
// returned has none left: the caller starts the agent there, not by the path that
// was judged.
package cwd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/home"
)

// Rules are those of one thread.
type Rules struct {
	Thread  string   // the directory in which it was started, as [Real] gave it
	Allowed []string // absolute directories, below which a step may work as well
	User    string   // the user's own directory; "": unknown
}

// OutsideError says that a location is none that a step may work in.
type OutsideError struct {
	Dir    string // where the location leads, without symbolic links
	Thread string // the thread's directory
	// Never: no config allows it, because it is the user's own directory, or above it.
	Never bool
}

func (e *OutsideError) Error() string {
	if e.Never {
		return fmt.Sprintf("%s is, or holds, your home directory, and the thread was started in %s", e.Dir, e.Thread)
	}
	return fmt.Sprintf("%s is outside the thread's directory %s", e.Dir, e.Thread)
}

// MovedError says that the path of a thread's directory leads elsewhere than when
// the thread was started: a part of it is a symbolic link now.
type MovedError struct{ Thread, Dir string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("the thread's directory %s is now a link that leads to %s", e.Thread, e.Dir)
}

// Real is the path of a directory without symbolic links. Errors are those of the
// file system, and *[NoDirError].
func Real(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		if err == nil {
			err = &NoDirError{real}
		}
		return "", err
	}
	return real, nil
}

// NoDirError says that a path leads to something else than a directory.
type NoDirError struct{ Path string }

func (e *NoDirError) Error() string { return e.Path + " is not a directory" }

// Resolve returns the directory that a location names: "" is the thread's own,
// relative ones begin there. Allowed are the thread's directory and what is below
// it; a work tree that is linked to the repository of the thread's directory, with
// what is below; and what is at or below an allowed directory. The user's own
// directory, and what is above it, never is, unless the thread was started there;
// nor is what holds settings, programs or keys, unless the config lists it: the
// thread's own directory neither.
//
// Errors: *[OutsideError], *[SpecialError], *[MovedError], and those of [Real].
func (r Rules) Resolve(location string) (string, error) {
	if !filepath.IsAbs(r.Thread) { // of another system, or forged: it would begin wherever uwf is started
		return "", fmt.Errorf("the thread's directory %q is not an absolute path", r.Thread)
	}
	thread, err := Real(r.Thread)
	if err != nil {
		return "", err
	}
	if thread != filepath.Clean(r.Thread) && !r.allowed(thread) {
		return "", &MovedError{r.Thread, thread}
	}
	if !filepath.IsAbs(location) {
		location = filepath.Join(thread, location)
	}
	dir, err := Real(location)
	switch {
	case err != nil:
		return "", err
	case dir != thread && r.holdsUser(dir):
		return "", &OutsideError{Dir: dir, Thread: thread, Never: true}
	case r.allowed(dir), dir != thread && linked(thread, dir):
		return dir, nil
	case !below(thread, dir):
		return "", &OutsideError{Dir: dir, Thread: thread}
	}
	if at := r.special(thread, dir); at != "" {
		return "", &SpecialError{Dir: dir, At: at}
	}
	return dir, nil
}

// SpecialError says that a location, or the thread's own directory, leads into one that holds no work: what
// an agent leaves there, git, uwf or the user's programs obey.
type SpecialError struct {
	Dir string // where the location leads, without symbolic links
	At  string // the special directory that it is, or is in
}

func (e *SpecialError) Error() string {
	return fmt.Sprintf("%s is off limits: %s holds settings, programs or keys", e.Dir, e.At)
}

// special is the directory at or above dir in which no step works: a repository's
// own, whatever its name, uwf's, and in the user's home everything that is hidden.
// The tools of agents refuse to write there, but they take a workspace for what a
// person has chosen. "": there is none. Above the thread's directory it stops at a
// work tree: people keep these in a bare repository, and in hidden directories.
func (r Rules) special(thread, dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if r.isSpecial(dir) {
			return dir
		}
		if below(dir, thread) && has(dir, ".git") || filepath.Dir(dir) == dir {
			return ""
		}
	}
}

func (r Rules) isSpecial(dir string) bool {
	name := strings.ToLower(strings.TrimRight(filepath.Base(dir), ". "))
	switch {
	case name == ".git", name == ".uwf", strings.HasPrefix(name, "git~"), strings.HasPrefix(name, ".workflow"),
		name == ".ssh", name == ".gnupg", name == ".aws":
		return true
	case has(dir, "HEAD") && has(dir, "objects") && has(dir, "refs"): // so git knows a repository
		return true
	case has(dir, "config.yaml") && has(dir, "threads.yaml"), has(dir, "format.json") && has(dir, "nodes"): // a home of uwf, a store
		return true
	}
	return strings.HasPrefix(name, ".") && r.isUser(filepath.Dir(dir))
}

func has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// isUser reports whether a directory is the user's own.
func (r Rules) isUser(dir string) bool {
	at, err := os.Stat(dir)
	if err != nil || r.User == "" {
		return false
	}
	user, err := os.Stat(r.User)
	return err == nil && os.SameFile(at, user)
}

// allowed reports whether a directory is at or below one that the config lists.
func (r Rules) allowed(dir string) bool {
	for _, a := range r.Allowed {
		if real, err := Real(a); err == nil && below(real, dir) && !r.holdsUser(dir) {
			return true
		}
	}
	return false
}

// holdsUser reports whether a directory is the user's own or one above it, however
// it is spelt: not every file system tells cases apart.
func (r Rules) holdsUser(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || r.User == "" {
		return false
	}
	for _, user := range []string{r.User, resolved(r.User)} {
		for ; ; user = filepath.Dir(user) {
			if at, err := os.Stat(user); err == nil && os.SameFile(at, info) {
				return true
			}
			if filepath.Dir(user) == user {
				break
			}
		}
	}
	return false
}

// resolved is a path without symbolic links, if it leads anywhere.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// linked reports whether a directory is in a work tree that is linked to the
// thread's repository. That in which the thread itself lies is none: whoever starts
// a thread in a part of a repository means that part.
func linked(thread, dir string) bool {
	repository, ok := gitdir.Repository(thread)
	if !ok {
		return false
	}
	top, ok := gitdir.Holds(repository, dir)
	return ok && !below(top, thread)
}

// below reports whether a path is dir or below it. Both have no symbolic links.
func below(dir, path string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// Below is the path from one directory to another in it.
func Below(root, dir string) (rel string, ok bool) {
	rel, err := filepath.Rel(root, dir)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Shown is a path as messages name it. A model may have chosen it, and a line
// break in it must not begin a line of ours.
func Shown(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

// Chooser finds out where threads and their roles work, by the config of a home.
type Chooser struct {
	Env    env.Env
	Dirs   home.Dirs
	Config func(context.Context) (protocol.Config, error)
}

// Workplace is the directory in which a role of a thread would work: where a
// location leads from the directory that the thread was started in. It has no
// symbolic links. What may not be is refused here, before anybody is paid. Errors
// are *protocol.Error.
func (c Chooser) Workplace(ctx context.Context, role, started, location string) (string, error) {
	rules, listed, err := c.rules(ctx, started)
	if err != nil {
		return "", fault.Of(err)
	}
	dir, err := rules.Resolve(location)
	if err != nil {
		return "", c.explain(role, located(rules.Thread, location), listed, err)
	}
	return dir, nil
}

// rules are those of a thread that was started in a directory, with the
// directories that the config lists as it lists them.
func (c Chooser) rules(ctx context.Context, started string) (Rules, []string, error) {
	config, err := c.Config(ctx)
	if err != nil {
		return Rules{}, nil, err
	}
	if started == "" { // the original's first versions had none
		if started, err = Real(c.Env.Dir); err != nil {
			return Rules{}, nil, err
		}
	}
	rules := Rules{Thread: started, User: home.User(c.Env)}
	for _, dir := range config.AllowLocations {
		dir, err := home.Absolute(c.Env, dir)
		if err != nil {
			return rules, nil, fmt.Errorf("allowLocations: %w", err)
		}
		rules.Allowed = append(rules.Allowed, dir)
	}
	return rules, config.AllowLocations, nil
}

// explain says why a role, or with "" a whole thread, cannot work in a
// directory, and what would allow it. Where a link leads is said only if the thread may not go there.
func (c Chooser) explain(role, dir string, listed []string, err error) error {
	var (
		outside *OutsideError
		moved   *MovedError
		file    *NoDirError
		special *SpecialError
	)
	who := "a thread"
	if role != "" {
		who = fmt.Sprintf("role %q", role)
	}
	fail := func(code protocol.Code, format string, args ...any) *protocol.Error {
		return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
	}
	switch {
	case errors.As(err, &outside) && outside.Never:
		return fail(protocol.CodeFailed, "%s may not work in %s: that is or holds your home directory, and the thread was "+
			"started in %s", who, Shown(outside.Dir), Shown(outside.Thread)).Because("home-directory", "dir", outside.Dir)
	case errors.As(err, &outside):
		return c.allow(fail(protocol.CodeFailed, "%s may not work in %s: that is outside the thread's directory %s", who,
			Shown(outside.Dir), Shown(outside.Thread)), listed, outside.Dir)
	case errors.As(err, &special):
		return c.allow(fail(protocol.CodeFailed, "%s may not work in %s: %s holds settings, programs or keys", who,
			Shown(special.Dir), Shown(special.At)), listed, special.Dir)
	case errors.As(err, &moved):
		return c.allow(fail(protocol.CodeFailed, "%s may not work in %s: the thread was started there, but now that "+
			"is a link to %s", who, Shown(moved.Thread), Shown(moved.Dir)), listed, moved.Dir)
	case errors.As(err, &file):
		return fail(protocol.CodeFailed, "%s cannot work in %s: it is not a directory", who, Shown(dir))
	case errors.Is(err, fs.ErrNotExist):
		return fail(protocol.CodeFailed, "%s cannot work in %s: there is no such directory", who, Shown(dir))
	}
	return fault.Of(fmt.Errorf("%s cannot work in its directory: %w", who, err))
}

// allow adds to an error what the config would have to list so that steps may work in a directory.
func (c Chooser) allow(err *protocol.Error, listed []string, dir string) error {
	list, _ := json.Marshal(append(slices.Clone(listed), dir)) // texts always encode
	return err.Because("location-not-allowed", "config", c.Dirs.Config(), "locations", string(list))
}

// located is the path that a location names.
func located(thread, location string) string {
	if filepath.IsAbs(location) {
		return location
	}
	return filepath.Join(thread, location)
}
