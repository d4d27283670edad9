// Package home finds the directories that all programs share, by one rule:
//
//	home:  --home, UWF_HOME, UWF_STORAGE_ROOT, UNCAGED_WORKFLOW_STORAGE_ROOT, WORKFLOW_STORAGE_ROOT, ~/.uwf
//	store: --store, OCAS_HOME, <home>/cas
//
// An empty value counts as unset. A relative value is meant from the process's
// directory, and a leading ~ is the user's own directory even where no shell has
// expanded it. The directories are only named here, neither looked at nor made.
package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/env"
)

// ErrUnknown means that nothing says where the user's own directory is.
var ErrUnknown = errors.New("no home directory")

// Dirs are the shared places. None of them need exist.
type Dirs struct {
	Home  string // absolute
	Store string // absolute
	User  string // the user's own directory, absolute; "" if unknown
}

// Find applies the rule. homeFlag and storeFlag are the flags' values, "" when
// not given. The only error is [ErrUnknown]: a value is needed that is relative
// to the user's directory, and the environment does not name that.
func Find(e env.Env, homeFlag, storeFlag string) (Dirs, error) {
	home := firstSet(homeFlag,
		e.Get("UWF_HOME"), e.Get("UWF_STORAGE_ROOT"),
		e.Get("UNCAGED_WORKFLOW_STORAGE_ROOT"), e.Get("WORKFLOW_STORAGE_ROOT"),
		filepath.Join("~", ".uwf"))
	home, err := Absolute(e, home)
	if err != nil {
		return Dirs{}, err
	}
	store := firstSet(storeFlag, e.Get("OCAS_HOME"), filepath.Join(home, "cas"))
	store, err = Absolute(e, store)
	if err != nil {
		return Dirs{}, err
	}
	return Dirs{Home: home, Store: store, User: User(e)}, nil
}

// Config is the configuration file, <home>/config.yaml.
func (d Dirs) Config() string { return filepath.Join(d.Home, "config.yaml") }

// DotEnv holds environment variables for agents, <home>/.env.
func (d Dirs) DotEnv() string { return filepath.Join(d.Home, ".env") }

// Remotes is the file of the remotes that the home knows, <home>/remotes.yaml. It says whose
// commands may run.
func (d Dirs) Remotes() string { return filepath.Join(d.Home, "remotes.yaml") }

// Locks is the directory of the lock files, <home>/locks.
func (d Dirs) Locks() string { return filepath.Join(d.Home, "locks") }

// Limits is the directory of the accounts' rate limits, <home>/limits.
func (d Dirs) Limits() string { return filepath.Join(d.Home, "limits") }

// Run is the directory of a thread's step in flight, <home>/runs/<thread>.
func (d Dirs) Run(thread string) string { return filepath.Join(d.Home, "runs", thread) }

// Sessions is the directory of the agents' session caches, <home>/sessions.
func (d Dirs) Sessions() string { return filepath.Join(d.Home, "sessions") }

// Guard is the directory of what is put back if an agent is killed while a command
// runs, <home>/guard, where [Dirs.SharedGuard] cannot be made.
func (d Dirs) Guard() string { return filepath.Join(d.Home, "guard") }

// SharedGuard is the same for all homes of a user, ~/.cache/uwf/guard: their commands can run in one
// repository at the same time. "" if the user's own directory is unknown.
func (d Dirs) SharedGuard() string {
	if d.User == "" {
		return ""
	}
	return filepath.Join(d.User, ".cache", "uwf", "guard")
}

// Box is where is kept what is needed at the end of programs that run in namespaces: <home>/box.
func (d Dirs) Box() string { return filepath.Join(d.Home, "box") }

// Agents is where programs keep what they change of their own directories in a thread:
// <home>/agents/<thread>.
func (d Dirs) Agents(thread string) string { return filepath.Join(d.Home, "agents", thread) }

// RemoveAgents removes what programs keep of a thread. The kernel closes the directories in which it
// works for them.
func (d Dirs) RemoveAgents(thread string) error {
	closed, err := filepath.Glob(filepath.Join(d.Agents(thread), "*", "*", "work", "work"))
	for _, dir := range closed {
		err = errors.Join(err, os.Chmod(dir, 0o700))
	}
	return errors.Join(err, os.RemoveAll(d.Agents(thread)))
}

// Artifacts is where the roles of a run leave each other files: <home>/artifacts/<thread>.
func (d Dirs) Artifacts(thread string) string { return filepath.Join(d.Home, "artifacts", thread) }

// OwnArtifacts returns the directory that an environment names for artifacts, "" if it is none of this home.
func (d Dirs) OwnArtifacts(dir string) string {
	if d.Home == "" || dir == "" || d.Artifacts(filepath.Base(dir)) != dir || filepath.Dir(dir) == dir {
		return ""
	}
	return dir
}

// Edit is the directory of the copy of the config that an editor has open, <home>/edit.
func (d Dirs) Edit() string { return filepath.Join(d.Home, "edit") }

// Git is where snapshots of files are kept, a git directory for each repository:
// <home>/git.
func (d Dirs) Git() string { return filepath.Join(d.Home, "git") }

// Worktree is the directory of a thread that works in a git worktree of its own,
// <home>/worktrees/<id>.
func (d Dirs) Worktree(thread string) string { return filepath.Join(d.Home, "worktrees", thread) }

// Logs is the directory of the process logs, <home>/logs.
func (d Dirs) Logs() string { return filepath.Join(d.Home, "logs") }

// Notify is where notices wait to be sent, and the key of answer links: <home>/notify.
func (d Dirs) Notify() string { return filepath.Join(d.Home, "notify") }

// User is the user's own directory; "" if the environment does not name it.
func User(e env.Env) string { return e.Get(userDirVar) }

// Absolute expands a leading ~ and joins a relative path to the process's
// directory. Error: [ErrUnknown].
func Absolute(e env.Env, path string) (string, error) {
	if rest, ok := afterTilde(path); ok {
		user := User(e)
		if user == "" {
			return "", fmt.Errorf("%w: neither UWF_HOME nor %s is set", ErrUnknown, userDirVar)
		}
		path = filepath.Join(user, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(e.Dir, path), nil
}

// afterTilde returns what follows the ~ of "~" or "~/rest". "~name" is an
// ordinary file name: other users' directories are not looked up.
func afterTilde(path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, "~")
	if !ok || rest != "" && !strings.HasPrefix(filepath.ToSlash(rest), "/") {
		return "", false
	}
	return rest, true
}

func firstSet(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
