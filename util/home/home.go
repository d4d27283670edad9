// Package home finds the directories shared by all programs, by one rule:
//
//	home:  --home, UWF_HOME, UWF_STORAGE_ROOT, UNCAGED_WORKFLOW_STORAGE_ROOT, WORKFLOW_STORAGE_ROOT, ~/.uwf
//	store: --store, OCAS_HOME, <home>/cas
//
// An empty value counts as unset. A relative value is relative to the process's directory, and a leading ~ is
// the user's home directory even if no shell has expanded it. The package neither accesses nor creates the
// directories.
package home

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/safeopen"
)

// ErrUnknown means that the user's home directory is unknown.
var ErrUnknown = errors.New("no home directory")

// Dirs contains the shared directories, which needn't exist.
type Dirs struct {
	Home  string // absolute
	Store string // absolute
	User  string // the user's home directory, absolute; "" if unknown
}

// Find applies the rule. homeFlag and storeFlag are the values of the flags, or "". Its only error is
// [ErrUnknown], if a value is relative to the user's home directory and the environment doesn't contain that.
func Find(e env.Env, homeFlag, storeFlag string) (Dirs, error) {
	home := cmp.Or(homeFlag,
		e.Get("UWF_HOME"), e.Get("UWF_STORAGE_ROOT"),
		e.Get("UNCAGED_WORKFLOW_STORAGE_ROOT"), e.Get("WORKFLOW_STORAGE_ROOT"),
		filepath.Join("~", ".uwf"))
	home, err := Absolute(e, home)
	if err != nil {
		return Dirs{}, err
	}
	store := cmp.Or(storeFlag, e.Get("OCAS_HOME"), filepath.Join(home, "cas"))
	store, err = Absolute(e, store)
	if err != nil {
		return Dirs{}, err
	}
	return Dirs{Home: home, Store: store, User: User(e)}, nil
}

// Config returns the configuration file, <home>/config.yaml.
func (d Dirs) Config() string { return filepath.Join(d.Home, "config.yaml") }

// DotEnv returns the file with environment variables for agents, <home>/.env.
func (d Dirs) DotEnv() string { return filepath.Join(d.Home, ".env") }

// Remotes returns the file of the known remotes, <home>/remotes.yaml. It determines whose commands can run.
func (d Dirs) Remotes() string { return filepath.Join(d.Home, "remotes.yaml") }

// Locks returns the directory of the lock files, <home>/locks.
func (d Dirs) Locks() string { return filepath.Join(d.Home, "locks") }

// Limits returns the directory of the accounts' rate limits, <home>/limits.
func (d Dirs) Limits() string { return filepath.Join(d.Home, "limits") }

// Run returns the directory of a thread's current step, <home>/runs/<thread>.
func (d Dirs) Run(thread string) string { return filepath.Join(d.Home, "runs", thread) }

// Sessions returns the directory of the agents' session caches, <home>/sessions.
func (d Dirs) Sessions() string { return filepath.Join(d.Home, "sessions") }

// Guard returns the directory of files to restore if an agent is killed while a command runs, <home>/guard.
// It is used if [Dirs.SharedGuard] can't be created.
func (d Dirs) Guard() string { return filepath.Join(d.Home, "guard") }

// SharedGuard returns the equivalent for all homes of a user, ~/.cache/uwf/guard, because their commands can
// run in one repository at the same time. It is "" if the user's home directory is unknown.
func (d Dirs) SharedGuard() string {
	if d.User == "" {
		return ""
	}
	return filepath.Join(d.User, ".cache", "uwf", "guard")
}

// Box returns the directory of data needed when programs in namespaces end, <home>/box.
func (d Dirs) Box() string { return filepath.Join(d.Home, "box") }

// Agents returns the directory in which programs keep their changes to their own directories for a thread,
// <home>/agents/<thread>.
func (d Dirs) Agents(thread string) string { return filepath.Join(d.Home, "agents", thread) }

// RemoveAgents removes these changes of a thread.
func (d Dirs) RemoveAgents(thread string) error { return safeopen.RemoveAll(d.Agents(thread)) }

// Artifacts returns the directory in which the roles of a run exchange files, <home>/artifacts/<thread>.
func (d Dirs) Artifacts(thread string) string { return filepath.Join(d.Home, "artifacts", thread) }

// OwnArtifacts returns the artifacts directory from an environment, or "" if it isn't in this home.
func (d Dirs) OwnArtifacts(dir string) string {
	if d.Home == "" || dir == "" || d.Artifacts(filepath.Base(dir)) != dir || filepath.Dir(dir) == dir {
		return ""
	}
	return dir
}

// Edit returns the directory for the copy of the config being edited, <home>/edit.
func (d Dirs) Edit() string { return filepath.Join(d.Home, "edit") }

// Git returns the directory of the snapshots, with a git directory for each repository, <home>/git.
func (d Dirs) Git() string { return filepath.Join(d.Home, "git") }

// Worktree returns the directory of a thread's own git worktree, <home>/worktrees/<id>.
func (d Dirs) Worktree(thread string) string { return filepath.Join(d.Home, "worktrees", thread) }

// Logs returns the directory of the process logs, <home>/logs.
func (d Dirs) Logs() string { return filepath.Join(d.Home, "logs") }

// Summaries returns the file in which lists remember what they show, <home>/cache/summaries.
func (d Dirs) Summaries() string { return filepath.Join(d.Home, "cache", "summaries") }

// Notify returns the directory of pending notifications and of the key for answer links, <home>/notify.
func (d Dirs) Notify() string { return filepath.Join(d.Home, "notify") }

// User returns the user's home directory from the environment, or "".
func User(e env.Env) string { return e.Get(userDirVar) }

// Absolute expands a leading ~ and resolves a relative path against the process's directory. Its error is
// [ErrUnknown].
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

// afterTilde returns the rest of "~" or "~/rest". "~name" is an ordinary file name, because other users' home
// directories aren't supported.
func afterTilde(path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, "~")
	if !ok || rest != "" && !strings.HasPrefix(filepath.ToSlash(rest), "/") {
		return "", false
	}
	return rest, true
}
