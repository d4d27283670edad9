package tools

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
)

// quiet keeps programs from waiting for a person or drawing for one.
var quiet = []string{
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "LESS=-R", "TERM=dumb", "NO_COLOR=1",
	"GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive", "PIP_PROGRESS_BAR=off", "TQDM_DISABLE=1",
}

// CommandEnv is the environment for commands: environ without secrets, which a
// variable is by its name or holds in its value, and without what identifies the
// agent's own step, so that no command can act as the agent. What pass names is
// handed on all the same.
func CommandEnv(environ []string, secrets *secret.Set, pass []string) []string {
	var env []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		guarded := secret.Guarded(name, value) || secrets.Holds(value)
		if !ownStep(name) && (!guarded || slices.Contains(pass, name)) {
			env = append(env, kv)
		}
	}
	return append(env, quiet...)
}

// ownPrograms takes from the PATH what a model could have put a program into:
// the workspace, and what is relative to where a command runs. Else an allowed
// name could be any program.
func ownPrograms(environ []string, workspace string) []string {
	env := slices.Clone(environ)
	for i, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		var dirs []string
		for _, dir := range filepath.SplitList(list) {
			real, err := filepath.EvalSymlinks(dir)
			if _, inside := below(workspace, real); err == nil && filepath.IsAbs(dir) && !inside {
				dirs = append(dirs, dir)
			}
		}
		env[i] = "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))
	}
	return env
}

func ownStep(name string) bool {
	switch name {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvThread, protocol.EnvRole, protocol.EnvPrompt, protocol.EnvLimitBase:
		return true
	}
	return false
}
