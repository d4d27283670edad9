package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/programs"
)

// Confining is what holds for an agent that drives a program of other people: a mode
// of [protocol.SandboxConfig]. By default it is confined, whatever it may do: what a
// directory's own settings make it start is asked by nobody. Two are not: one that holds
// its commands in a sandbox which cannot be made inside of ours, and a command of the
// user's own that uwf does not know (unknown): where it keeps what is its own cannot be
// told, and without that it might fail in silence.
func Confining(a protocol.Agent, mode string, command []string) (setting string, unknown bool) {
	if mode != "" {
		return mode, false
	}
	if _, known := programs.Places(command); !known {
		return protocol.SandboxNone, true
	}
	if !unasked(a) && programs.Sandboxes(command) {
		return protocol.SandboxNone, false
	}
	return protocol.SandboxAuto, false
}

// MaxArtifacts is how many bytes the roles of a run can leave each other.
func MaxArtifacts(c protocol.Config) int64 {
	const most = 1024
	return int64(cmp.Or(cmp.Or(c.Artifacts, &protocol.ArtifactsConfig{}).MaxMB, most)) << 20
}

// Sandbox is the sandbox of an agent; alias "": of whatever has none of its own.
func Sandbox(c protocol.Config, alias string) protocol.SandboxConfig {
	return c.Agents[alias].Sandbox.Over(c.Sandbox)
}

// CommandSandbox is the sandbox of roles that are commands.
func CommandSandbox(c protocol.Config) protocol.SandboxConfig {
	s := cmp.Or(c.Commands, &protocol.CommandsConfig{}).Sandbox.Over(c.Sandbox)
	s.Mode = cmp.Or(s.Mode, protocol.SandboxAuto)
	return s
}

// HeedsPermission reports whether an adapter passes on what an agent may do. A command
// of the user's own cannot be told.
func HeedsPermission(adapter string) bool { return program([]string{adapter}) != "uwf-exec" }

// unasked reports whether an agent's program may do anything without being asked, as
// far as it is told.
func unasked(a protocol.Agent) bool {
	return a.Permission == "" || a.Permission == "full" || !HeedsPermission(a.Command)
}

// IsUnknown reports whether an agent is not confined because its program is not known.
func IsUnknown(c protocol.Config, alias string, argv []string) bool {
	a := c.Agents[alias]
	name := program(argv)
	if !strings.HasPrefix(name, protocol.AgentPrefix) || name == "uwf-mock" || OwnsModels(name) {
		return false
	}
	_, unknown := Confining(a, Sandbox(c, alias).Mode, driven(argv))
	return unknown
}

// driven is the command that an agent of ours drives.
func driven(argv []string) []string {
	name := program(argv)
	switch a, own := protocol.AdapterOf(name); {
	case !own:
		return []string{strings.TrimPrefix(name, protocol.AgentPrefix)}
	case a.Program != "":
		return []string{a.Program}
	}
	if at := slices.Index(argv, "--"); at >= 0 {
		return argv[at+1:]
	}
	return argv[1:]
}

// program is the name of an agent's.
func program(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return agentName(argv[0])
}

// System is what a system can do to hold programs back.
type System struct {
	Confines   bool // from writing elsewhere
	Sockets    bool // from talking to sockets of others that have a path
	Namespaces bool // by namespaces, which hold all that
}

// tier is what holds a confined program, and what it can do anyway.
func (s System) tier() string {
	switch {
	case s.Namespaces:
		return ", in namespaces"
	case s.Sockets:
		return ", without namespaces"
	}
	return ", without namespaces; can reach Unix sockets (docker, tmux)"
}

// Access says in a few words what an agent may do: who may run what, and write
// where. argv is how it is started; s is what this system can do. Of a command that
// is none of ours nobody knows.
func Access(c protocol.Config, alias string, argv []string, e env.Env, s System) string {
	a, box := c.Agents[alias], Sandbox(c, alias)
	name := program(argv)
	for key, value := range a.Env {
		e = e.With(key, value)
	}
	switch {
	case name == "uwf-llm":
		return "asks only"
	case name == "uwf-mock":
		return "plays a script"
	case OwnsModels(name):
		return builtinAccess(c.Builtin, box.Mode, a.Permission, e, s)
	case !strings.HasPrefix(name, protocol.AgentPrefix):
		return "what the program does: uwf does not confine it"
	}
	if a.Permission == "read-only" && HeedsPermission(name) {
		return "reads" + extra(a, box, argv, s)
	}
	if a.Permission == "edits" && HeedsPermission(name) {
		return "changes files in the directory" + extra(a, box, argv, s)
	}
	return "runs anything" + extra(a, box, argv, s)
}

// AdapterTimeout is how long a step of an adapter may take if nothing is configured.
const AdapterTimeout = time.Hour

// IsAdapter reports whether a command is one of our adapters of other people's programs.
func IsAdapter(command string) bool {
	_, ok := protocol.AdapterOf(agentName(command))
	return ok
}

// CommandAccess says in a few words what a role that is a command may do.
func CommandAccess(c protocol.Config, s System) string {
	switch setting := CommandSandbox(c).Mode; {
	case setting == protocol.SandboxNone:
		return "do anything you can: their sandbox.mode is none"
	case !s.Namespaces && setting == protocol.SandboxRequired:
		return "nothing: commands must have namespaces, and cannot here"
	case !s.Confines && setting == protocol.SandboxLandlock:
		return "nothing: commands cannot be confined here"
	case !s.Confines:
		return "do anything you can: commands cannot be confined here"
	}
	return "runs anything, writes in the directory" + s.tier()
}

// extra says whether a program is confined.
func extra(a protocol.Agent, box protocol.SandboxConfig, argv []string, s System) string {
	switch setting, unknown := Confining(a, box.Mode, driven(argv)); {
	case unknown:
		return ", writes anywhere: uwf does not know where the program keeps its own files"
	case setting == protocol.SandboxNone && unasked(a):
		return ", writes anywhere: sandbox.mode is none"
	case setting == protocol.SandboxNone:
		return ", as far as the program holds itself back"
	case !s.Namespaces && setting == protocol.SandboxRequired:
		return "; does not start: it must have namespaces, and cannot here"
	case !s.Confines && setting == protocol.SandboxLandlock:
		return "; does not start: it cannot be confined here"
	case !s.Confines:
		return ", writes anywhere: it cannot be confined here"
	}
	places := box.AllowWrite
	if a.Permission != "read-only" || !HeedsPermission(a.Command) {
		places = append([]string{"the directory"}, places...)
	}
	if _, known := programs.Places(driven(argv)); !known {
		places = append(places, "its own directories (what it leaves there may run later)")
	}
	if len(places) == 0 {
		return ", writes nothing" + s.tier()
	}
	return ", writes in " + strings.Join(places, " and ") + s.tier()
}

// NoUnixSockets reports whether commands can make no unix sockets. By default that is so
// where all that can be held is required, and the system cannot keep them from those
// of others alone.
func NoUnixSockets(b *protocol.BuiltinConfig, mode string, s System) bool {
	if mode == protocol.SandboxNone {
		return false
	}
	if b != nil && b.NoUnixSockets != nil {
		return *b.NoUnixSockets
	}
	return mode == protocol.SandboxRequired && !s.Sockets
}

// AnyProgram in allowCommands lets our own agents run every program.
const AnyProgram = "*"

// AnyCommand reports whether our own agents may run any command.
func AnyCommand(b *protocol.BuiltinConfig, e env.Env) bool {
	return e.Get("UWF_BUILTIN_ALLOW_SHELL") == "1" || b != nil && slices.Contains(b.AllowCommands, AnyProgram)
}

// builtinAccess is of our own agents with tools.
func builtinAccess(b *protocol.BuiltinConfig, mode, permission string, e env.Env, s System) string {
	if b == nil {
		b = &protocol.BuiltinConfig{}
	}
	switch permission {
	case "read-only":
		return "reads in the directory"
	case "edits":
		return "changes files in the directory"
	}
	runs := "runs nothing"
	if len(b.AllowCommands) > 0 {
		runs = "runs " + strings.Join(b.AllowCommands, ", ")
	}
	if AnyCommand(b, e) {
		runs = "runs anything"
	}
	switch {
	case runs == "runs nothing":
		return "changes files in the directory, " + runs
	case mode == protocol.SandboxNone:
		return runs + ", writes anywhere: sandbox.mode is none"
	case !s.Namespaces && mode == protocol.SandboxRequired:
		return "changes files in the directory, runs nothing: commands must have namespaces, and cannot here"
	case !s.Confines && mode == protocol.SandboxLandlock:
		return "changes files in the directory, runs nothing: commands cannot be confined here"
	case !s.Confines:
		return runs + ", writes anywhere: commands cannot be confined here"
	}
	if NoUnixSockets(b, mode, s) {
		s.Sockets = true
	}
	return runs + ", writes in the directory" + s.tier()
}

// Exposed returns a warning for each of the two files that others on this
// machine can read and that holds secrets: config.yaml with a key written out,
// and .env. Each ends in the command that repairs it. Files that are missing or
// unreadable are not exposed.
func Exposed(configPath, dotEnvPath string) []string {
	var warnings []string
	if mode, ok := sharedMode(configPath); ok {
		src, err := ReadFile(configPath)
		if places := literalSecrets(src); err == nil && len(places) > 0 {
			warnings = append(warnings, warning(configPath, mode, strings.Join(places, ", ")))
		}
	}
	if mode, ok := sharedMode(dotEnvPath); ok {
		warnings = append(warnings, warning(dotEnvPath, mode, "your variables"))
	}
	return warnings
}

func warning(path string, mode fs.FileMode, what string) string {
	return fmt.Sprintf("%s holds %s and others can read it (mode %04o): chmod 600 %s", path, what, mode.Perm(), path)
}

// Open returns a warning for a home and a store that others on this machine can
// read: prompts and results of tools are in there. Each ends in the command that
// repairs it. A store in the home is as closed as the home.
func Open(dirs home.Dirs) []string {
	var warnings []string
	for _, dir := range []string{dirs.Home, dirs.Store} {
		const others = 0o055
		info, err := os.Stat(dir)
		if err == nil && modesMatter && info.Mode().Perm()&others != 0 {
			warnings = append(warnings, fmt.Sprintf("others can read %s (mode %04o): chmod 700 %s", dir, info.Mode().Perm(),
				dir))
		}
		if rel, err := filepath.Rel(dirs.Home, dirs.Store); err == nil && filepath.IsLocal(rel) {
			break
		}
	}
	return warnings
}

// sharedMode returns the mode of a file that others than its owner can read.
func sharedMode(path string) (fs.FileMode, bool) {
	info, err := os.Stat(path)
	if err != nil || !modesMatter {
		return 0, false
	}
	const others = 0o044
	return info.Mode(), info.Mode().Perm()&others != 0
}
