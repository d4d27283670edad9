// Package cwd determines where a step is allowed to work. A location comes from a workflow, whose author may
// be unknown, or from a model's answer, and it becomes the workspace of an agent. So it must be inside the
// directory in which a user started the thread, unless the user's config allows more.
//
// Paths are checked after symbolic links are resolved, and the returned paths contain none. So the caller
// starts the agent in exactly the directory that was checked.
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
	"github.com/united-workforce/uwf/util/safeopen"
)

// Rules are the rules for one thread.
type Rules struct {
	Thread  string   // directory in which it was started, as returned by [Real]
	Allowed []string // absolute directories in or below which a step may also work
	User    string   // the user's home directory; "" if unknown
}

// RefusedError means that a step is not allowed to work in a directory.
type RefusedError struct {
	Kind Kind
	Dir  string // the directory, with symbolic links resolved
	text string
}

// Kind is the kind of a refusal.
type Kind int

// Kinds of refusals. The config can allow a directory, except for [Home].
const (
	Outside Kind = iota // it is outside the thread's directory
	Home                // it is or contains the user's home directory
	// Special is a directory that is not for work, or one in it: files that an agent writes there would be
	// executed or obeyed by git, uwf or other programs.
	Special
	// Moved means that the path of the thread's directory resolves to another directory than when the thread was
	// started, because a part of it is a symbolic link now.
	Moved
)

// Error returns the directory and why it is refused.
func (e *RefusedError) Error() string { return e.text }

func refused(kind Kind, dir, format string, args ...string) error {
	shown := make([]any, len(args))
	for i, path := range args {
		shown[i] = Shown(path)
	}
	return &RefusedError{kind, dir, fmt.Sprintf(format, shown...)}
}

// Real returns the path of a directory with symbolic links resolved. Errors are errors of the file system and
// *[NoDirError].
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

// NoDirError means that a path is not a directory.
type NoDirError struct{ Path string }

func (e *NoDirError) Error() string { return e.Path + " is not a directory" }

// Resolve returns the directory of a location. "" is the thread's directory, and relative locations are
// relative to it. Allowed are the thread's directory, work trees linked to its repository, and the
// directories listed in the config, each with everything below. Never allowed are the user's home directory
// and its parents, unless the thread was started there. Directories with settings, programs or keys are
// allowed only if the config lists them; this includes the thread's directory itself.
//
// It returns *[RefusedError] and the errors of [Real].
func (r Rules) Resolve(location string) (string, error) {
	if !filepath.IsAbs(r.Thread) { // from another system or forged; it would be relative to uwf's working directory
		return "", fmt.Errorf("the thread's directory %q is not an absolute path", r.Thread)
	}
	thread, err := Real(r.Thread)
	if err != nil {
		return "", err
	}
	if thread != filepath.Clean(r.Thread) && !r.allowed(thread) {
		return "", refused(Moved, thread, "%s: the thread started there, but it is now a symbolic link to %s", r.Thread, thread)
	}
	if !filepath.IsAbs(location) {
		location = filepath.Join(thread, location)
	}
	dir, err := Real(location)
	switch {
	case err != nil:
		return "", err
	case dir != thread && r.holdsUser(dir):
		return "", refused(Home, dir, "%s: that is or contains your home directory, and the thread was started in %s", dir,
			thread)
	case r.allowed(dir), dir != thread && linked(thread, dir):
		return dir, nil
	case !below(thread, dir):
		return "", refused(Outside, dir, "%s: it is outside the thread's directory %s", dir, thread)
	}
	if at := r.special(thread, dir); at != "" {
		return "", refused(Special, dir, "%s: %s has settings, programs or keys", dir, at)
	}
	return dir, nil
}

// special returns the directory at or above dir in which no step works, or "". Special are a repository's git
// directory, whatever its name, uwf's directories, and all hidden directories in the user's home. The agents'
// own tools refuse to write there, but they trust a workspace as the user's choice. Above the thread's
// directory, the search stops at a work tree, since people keep work trees in bare repositories and in hidden
// directories.
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
	case has(dir, "HEAD") && has(dir, "objects") && has(dir, "refs"): // git recognizes a repository by these
		return true
	case has(dir, "config.yaml") && has(dir, "threads.yaml"),
		has(dir, "format.json") && (has(dir, "log") || has(dir, "nodes")): // a home of uwf, or a store
		return true
	}
	return strings.HasPrefix(name, ".") && r.isUser(filepath.Dir(dir))
}

func has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// isUser reports whether dir is the user's home directory.
func (r Rules) isUser(dir string) bool {
	at, err := os.Stat(dir)
	if err != nil || r.User == "" {
		return false
	}
	user, err := os.Stat(r.User)
	return err == nil && os.SameFile(at, user)
}

// allowed reports whether dir is in or below a directory listed in the config.
func (r Rules) allowed(dir string) bool {
	for _, a := range r.Allowed {
		if real, err := Real(a); err == nil && below(real, dir) && !r.holdsUser(dir) {
			return true
		}
	}
	return false
}

// holdsUser reports whether dir is the user's home directory or a parent of it. It compares files rather than
// names, because file systems can be case-insensitive.
func (r Rules) holdsUser(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || r.User == "" {
		return false
	}
	for _, user := range []string{r.User, safeopen.Resolved(r.User)} {
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

// linked reports whether dir is in a work tree linked to the thread's repository. The thread's own work tree
// doesn't count: a user who starts a thread in a subdirectory means only that subdirectory.
func linked(thread, dir string) bool {
	repository, ok := gitdir.Repository(thread)
	if !ok {
		return false
	}
	top, ok := gitdir.Holds(repository, dir)
	return ok && !below(top, thread)
}

// below reports whether path is dir or below it. Neither contains symbolic links.
func below(dir, path string) bool {
	_, ok := Below(dir, path)
	return ok
}

// Below returns the path of dir relative to root; ok reports whether dir is in root.
func Below(root, dir string) (rel string, ok bool) {
	rel, err := filepath.Rel(root, dir)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Shown returns a path for display in messages. A model may have chosen the path, so a line break in it must
// not look like a line of ours.
func Shown(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

// Chooser determines where threads and their roles work, according to a home's config.
type Chooser struct {
	Env    env.Env
	Dirs   home.Dirs
	Config func(context.Context) (protocol.Config, error)
}

// Workplace returns the directory in which a role of a thread works: location, relative to the thread's
// directory, with symbolic links resolved. Forbidden locations are refused here, before anything is paid for.
// Errors are *protocol.Error.
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

// rules returns the rules for a thread started in a directory, and the directories listed in the config, as
// written.
func (c Chooser) rules(ctx context.Context, started string) (Rules, []string, error) {
	config, err := c.Config(ctx)
	if err != nil {
		return Rules{}, nil, err
	}
	if started == "" { // threads of the original uwf's first versions have no directory
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

// explain returns the error for a role, or for the whole thread if role is "", that cannot work in a
// directory, with the facts for a hint. It includes the target of a symbolic link only if the thread may not
// use it.
func (c Chooser) explain(role, dir string, listed []string, err error) error {
	who := "a thread"
	if role != "" {
		who = fmt.Sprintf("role %q", role)
	}
	fail := func(why any) *protocol.Error {
		return &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("%s cannot work in %v", who, why), Err: err}
	}
	no := new(RefusedError)
	switch {
	case errors.As(err, &no) && no.Kind == Home:
		return fail(no).Because("home-directory", "dir", no.Dir)
	case errors.As(err, &no):
		return c.allow(fail(no), listed, no.Dir)
	case errors.As(err, new(*NoDirError)):
		return fail(Shown(dir) + ": it is not a directory")
	case errors.Is(err, fs.ErrNotExist):
		return fail(Shown(dir) + ": no such directory")
	}
	return fault.Of(fmt.Errorf("%s cannot work in its directory: %w", who, err))
}

// allow adds to an error the config entry that would allow steps to work in dir.
func (c Chooser) allow(err *protocol.Error, listed []string, dir string) error {
	list, _ := json.Marshal(append(slices.Clone(listed), dir)) // strings always encode
	return err.Because("location-not-allowed", "config", c.Dirs.Config(), "locations", string(list))
}

// located returns the path of a location, relative to the thread's directory.
func located(thread, location string) string {
	if filepath.IsAbs(location) {
		return location
	}
	return filepath.Join(thread, location)
}
