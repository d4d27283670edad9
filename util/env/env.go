// Package env passes the environment of a process down from main: arguments, variables, directory, standard
// streams, clock and randomness. No other code gets them from the operating system, so that a test can
// simulate any process.
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

// Env is the environment of a process. Every field must be set; [OS] returns the real values.
type Env struct {
	Args    []string // without the program's name
	Environ []string // KEY=value; the last value of a key applies
	Dir     string   // absolute working directory
	Stdin   io.Reader
	Stdout  io.Writer // a terminal is a [terminal.Writer], which escapes control sequences
	Stderr  io.Writer // like Stdout
	Now     func() time.Time
	Rand    io.Reader // cryptographic
	Exe     string    // path of the program; "" if unknown
}

// OS returns the environment of the running process. It is the only place that gets it from the operating
// system; call it in main.
func OS() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		exe = "" // unsupported on some systems; nothing depends on it
	}
	return Env{
		Exe: exe, Args: os.Args[1:], Environ: outsideGit(os.Environ()), Dir: dir,
		Stdin: os.Stdin, Stdout: terminal.Of(os.Stdout), Stderr: terminal.Of(os.Stderr),
		Now: time.Now, Rand: rand.Reader,
	}, nil
}

// CallMark is in the environment of a program that an engine starts internally, for background work or for a
// sandbox.
const CallMark = callVar + "=1"

const callVar = "UWF_CALLED"

// Called reports whether an engine started this process internally and nobody has called [TakeCall]. It
// checks the process itself, because an [Env] can lack the mark.
func Called() bool {
	_, called := os.LookupEnv(callVar)
	return called
}

// WithoutCall returns an environment without the mark.
func WithoutCall(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return kv == CallMark })
}

// TakeCall makes [Called] return false.
func TakeCall() { _ = os.Unsetenv(callVar) }

// outsideGit returns an environment without the mark of a call, without the variables listed by `git
// rev-parse --local-env-vars`, and without the quarantine of a push, in which git can't move branches. A git
// hook that starts uwf sets them, and in an agent's worktree they would redirect git to the hook's
// repository.
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

// Get returns the value of an environment variable; unset and empty values are both "". On Windows the case
// of key doesn't matter.
func (e Env) Get(key string) string {
	for _, v := range slices.Backward(e.Environ) {
		if k, v, ok := cut(v); ok && sameKey(k, key) {
			return v
		}
	}
	return ""
}

// User returns the name of the user from the environment, or "".
func (e Env) User() string { return cmp.Or(e.Get("USER"), e.Get("LOGNAME"), e.Get("USERNAME")) }

// With returns a copy in which key has the given value.
func (e Env) With(key, value string) Env {
	e.Environ = append(slices.Clip(e.Environ), key+"="+value)
	return e
}

// cut splits KEY=value; a leading '=' (Windows' per-drive directories) belongs to the key.
func cut(kv string) (key, value string, ok bool) {
	for i := 1; i < len(kv); i++ {
		if kv[i] == '=' {
			return kv[:i], kv[i+1:], true
		}
	}
	return "", "", false
}

// Path returns the absolute path of a user-supplied name, which can be relative to the process's directory.
func (e Env) Path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(e.Dir, name)
}
