// Package shellguard refuses the shell commands that an agent must not run.
package shellguard

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// ErrEngine is what [RefuseEngine] returns.
var ErrEngine = errors.New("an agent runs no steps: the engine reads your answer and decides who is next; " +
	"end your turn instead (uwf commands that only read are fine)")

// RefuseEngine returns [ErrEngine] if a shell command line would run a step of a
// thread ("uwf run", "uwf thread step" and their like). Tools must ask it: the
// engine waits for the agent, so the agent must not wait for the engine. It is a
// guard against a model's mistakes, not against its cunning.
func RefuseEngine(commandLine string) error {
	if slices.ContainsFunc(commands(commandLine), runsStep) {
		return ErrEngine
	}
	return nil
}

// runsStep reports whether a simple command runs a step, itself or by a shell.
func runsStep(words []string) bool {
	words = withoutWrappers(words)
	if len(words) == 0 {
		return false
	}
	switch name := strings.TrimSuffix(path.Base(strings.ReplaceAll(words[0], `\`, "/")), ".exe"); name {
	case "sh", "bash", "dash", "zsh", "ksh":
		i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") && strings.HasSuffix(w, "c") })
		return i > 0 && i+1 < len(words) && RefuseEngine(words[i+1]) != nil
	case "eval":
		return RefuseEngine(strings.Join(words[1:], " ")) != nil
	case "uwf":
		return stepsThread(words[1:])
	}
	return false
}

// stepsThread looks at the arguments of uwf.
func stepsThread(args []string) bool {
	var names []string
	for i := 0; i < len(args) && len(names) < 2; i++ {
		switch {
		case slices.Contains([]string{"--home", "--store", "--ocas-home", "--format"}, args[i]):
			i++ // its value
		case !strings.HasPrefix(args[i], "-"):
			names = append(names, args[i])
		}
	}
	switch {
	case len(names) > 0 && names[0] == "run":
		return true
	case len(names) == 2 && names[0] == "thread":
		return slices.Contains([]string{"step", "exec", "resume", "retry", "poke"}, names[1])
	}
	return false
}

// withoutWrappers takes off assignments and commands that run another one.
func withoutWrappers(words []string) []string {
	for len(words) > 0 {
		name := path.Base(words[0])
		switch {
		case strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "="):
		case slices.Contains([]string{"env", "exec", "command", "nohup", "time", "sudo", "nice", "xargs", "setsid", "!", "then", "do", "else", "if", "while", "{"}, name):
		case name == "timeout":
			words = withoutFlags(words[1:]) // the duration is next
		default:
			return words
		}
		if len(words) > 0 {
			words = withoutFlags(words[1:])
		}
	}
	return nil
}

func withoutFlags(words []string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	return words
}
