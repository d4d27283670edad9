// Package env carries the facts of a process, from main down: arguments,
// environment, directory, standard streams, clock and randomness. Below main
// nothing reads them from the operating system, so a test can be any process.
package env

import (
	"cmp"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/util/terminal"
)

// Env is what a process knows about itself. Every field must be set; [OS]
// returns the real ones.
type Env struct {
	Args    []string // without the program's name
	Environ []string // KEY=value; the last one of a key wins
	Dir     string   // absolute working directory
	Stdin   io.Reader
	Stdout  io.Writer // a terminal is a [terminal.Writer]: it obeys nothing that is written
	Stderr  io.Writer // likewise
	Now     func() time.Time
	Rand    io.Reader // cryptographic
	Exe     string    // path of the program; "" if it cannot be told
}

// OS returns the facts of the running process. It is the one place that asks
// the operating system for them; call it in main.
func OS() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		exe = "" // some systems cannot tell; nothing depends on it
	}
	return Env{
		Exe: exe, Args: os.Args[1:], Environ: outsideGit(os.Environ()), Dir: dir,
		Stdin: os.Stdin, Stdout: terminal.Of(os.Stdout), Stderr: terminal.Of(os.Stderr),
		Now: time.Now, Rand: rand.Reader,
	}, nil
}

// CallMark is in the environment of a program that an engine has started for itself: for work in the
// background, or to confine a command.
const CallMark = callVar + "=1"

const callVar = "UWF_CALLED"

// Called reports whether an engine has started this process for itself, and nobody has taken that call. It
// asks the process, since an [Env] can be made without what it was started for.
func Called() bool {
	_, called := os.LookupEnv(callVar)
	return called
}

// WithoutCall is an environment without that mark.
func WithoutCall(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return kv == CallMark })
}

// TakeCall ends what [Called] reports.
func TakeCall() { _ = os.Unsetenv(callVar) }

// outsideGit is an environment without the mark of a call, without what
// `git rev-parse --local-env-vars` lists, and without the quarantine of what is being pushed, in which git moves no branch anywhere. A git hook that
// starts uwf has it, and in an agent's own worktree it would lead git to the hook's repository.
func outsideGit(environ []string) []string {
	return slices.DeleteFunc(environ, func(kv string) bool {
		switch key, _, _ := cut(kv); key {
		case callVar, "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
			"GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE",
			"GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS",
			"GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_INTERNAL_SUPER_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
			"GIT_QUARANTINE_PATH":
			return true
		}
		return false
	})
}

// Get returns the value of an environment variable; an empty value counts as
// unset, so both yield "". On Windows the case of key does not matter.
func (e Env) Get(key string) string {
	for _, v := range slices.Backward(e.Environ) {
		if k, v, ok := cut(v); ok && sameKey(k, key) {
			return v
		}
	}
	return ""
}

// User is who is logged in, as far as the environment says; "" if it does not.
func (e Env) User() string { return cmp.Or(e.Get("USER"), e.Get("LOGNAME"), e.Get("USERNAME")) }

// With returns a copy in which key has the given value.
func (e Env) With(key, value string) Env {
	e.Environ = append(slices.Clip(e.Environ), key+"="+value)
	return e
}

// cut splits KEY=value; a leading '=' (Windows' per-drive directories) belongs
// to the key.
func cut(kv string) (key, value string, ok bool) {
	for i := 1; i < len(kv); i++ {
		if kv[i] == '=' {
			return kv[:i], kv[i+1:], true
		}
	}
	return "", "", false
}

// Path is a file or directory that a person names, absolute: a relative one is meant
// from the process's directory.
func (e Env) Path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(e.Dir, name)
}
