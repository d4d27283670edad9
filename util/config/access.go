package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
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

// Confining returns the sandbox mode (see [protocol.SandboxConfig]) of an agent that drives another program.
// By default such an agent is sandboxed, regardless of its permission, because settings in the directory can
// start programs without asking anyone. There are two exceptions: an agent with its own sandbox, which can't
// be nested in ours, and a custom command that uwf doesn't know (unknown), which could fail silently because
// uwf can't know where it keeps its data.
func Confining(a protocol.Agent, mode string, command []string) (setting string, unknown bool) {
	if mode != "" {
		return mode, false
	}
	if _, known := programs.Places(command); !known {
		return protocol.SandboxNone, true
	}
	if !skipsPrompts(a) && programs.Sandboxes(command) {
		return protocol.SandboxNone, false
	}
	return protocol.SandboxAuto, false
}

// MaxArtifacts returns the size limit of a run's artifacts, in bytes.
func MaxArtifacts(c protocol.Config) int64 {
	const most = 1024
	return int64(cmp.Or(cmp.Or(c.Artifacts, &protocol.ArtifactsConfig{}).MaxMB, most)) << 20
}

// Sandbox returns the sandbox of an agent, or the default sandbox if alias is "".
func Sandbox(c protocol.Config, alias string) protocol.SandboxConfig {
	return c.Agents[alias].Sandbox.Over(c.Sandbox)
}

// CommandSandbox returns the sandbox of command roles.
func CommandSandbox(c protocol.Config) protocol.SandboxConfig {
	s := cmp.Or(c.Commands, &protocol.CommandsConfig{}).Sandbox.Over(c.Sandbox)
	s.Mode = cmp.Or(s.Mode, protocol.SandboxAuto)
	return s
}

// HeedsPermission reports whether an adapter passes on the agent's permission. A custom command doesn't.
func HeedsPermission(adapter string) bool { return program([]string{adapter}) != "uwf-exec" }

// skipsPrompts reports whether an agent's program is started without permission prompts.
func skipsPrompts(a protocol.Agent) bool {
	return a.Permission == "" || a.Permission == "full" || !HeedsPermission(a.Command)
}

// IsUnknown reports whether an agent runs without a sandbox because its program is unknown.
func IsUnknown(c protocol.Config, alias string, argv []string) bool {
	a := c.Agents[alias]
	name := program(argv)
	if !strings.HasPrefix(name, protocol.AgentPrefix) || name == "uwf-mock" || OwnsModels(name) {
		return false
	}
	_, unknown := Confining(a, Sandbox(c, alias).Mode, Driven(argv))
	return unknown
}

// Driven returns the command that our adapter drives.
func Driven(argv []string) []string {
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

// program returns the name of an agent's program.
func program(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return agentName(argv[0])
}

// System describes the system's sandboxing features.
type System struct {
	Confines   bool // can restrict writes to files
	Sockets    bool // can restrict connections to Unix sockets with a path
	Namespaces bool // has namespaces, which restrict all of that
}

// tier describes what the sandbox enforces, and what it can't.
func (s System) tier() string {
	switch {
	case s.Namespaces:
		return ", in namespaces"
	case s.Sockets:
		return ", without namespaces"
	}
	return ", without namespaces; can reach Unix sockets (docker, tmux)"
}

// Access summarizes an agent's access: what it can run and where it can write. argv is its command line and s
// describes this system. The access of a custom command is unknown.
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

// AdapterTimeout is the default timeout of an adapter's step.
const AdapterTimeout = time.Hour

// IsAdapter reports whether a command is our adapter for other programs.
func IsAdapter(command string) bool {
	_, ok := protocol.AdapterOf(agentName(command))
	return ok
}

// CommandAccess summarizes the access of a command role.
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

// extra describes whether a program is sandboxed.
func extra(a protocol.Agent, box protocol.SandboxConfig, argv []string, s System) string {
	switch setting, unknown := Confining(a, box.Mode, Driven(argv)); {
	case unknown:
		return ", writes anywhere: uwf does not know where the program keeps its own files"
	case setting == protocol.SandboxNone && skipsPrompts(a):
		return ", writes anywhere: sandbox.mode is none"
	case setting == protocol.SandboxNone:
		return ", enforced only by the program itself"
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
	if _, known := programs.Places(Driven(argv)); !known {
		places = append(places, "its own directories (what it leaves there may run later)")
	}
	if len(places) == 0 {
		return ", writes nothing" + s.tier()
	}
	return ", writes in " + strings.Join(places, " and ") + s.tier()
}

// NoUnixSockets reports whether commands can't create Unix sockets. By default this applies if the sandbox is
// required to enforce everything and the system can't block only other processes' sockets.
func NoUnixSockets(b *protocol.BuiltinConfig, mode string, s System) bool {
	if mode == protocol.SandboxNone {
		return false
	}
	if b != nil && b.NoUnixSockets != nil {
		return *b.NoUnixSockets
	}
	return mode == protocol.SandboxRequired && !s.Sockets
}

// AnyProgram in allowCommands allows our own agents to run any program.
const AnyProgram = "*"

// AnyCommand reports whether our own agents can run any command.
func AnyCommand(b *protocol.BuiltinConfig, e env.Env) bool {
	return e.Get("UWF_BUILTIN_ALLOW_SHELL") == "1" || b != nil && slices.Contains(b.AllowCommands, AnyProgram)
}

// builtinAccess summarizes the access of our own agents with tools.
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

// Exposed returns a warning for each file with secrets that other users of this machine can read: config.yaml
// with a literal key, and .env. Each ends with the command that fixes it. Missing and unreadable files cause
// no warning.
func (f *Files) Exposed() []string {
	var warnings []string
	if mode, ok := sharedMode(f.config.path); ok {
		src, err := f.Text()
		if places := literalSecrets(src); err == nil && len(places) > 0 {
			warnings = append(warnings, warning(f.config.path, mode, strings.Join(places, ", ")))
		}
	}
	if mode, ok := sharedMode(f.dotEnv.path); ok {
		warnings = append(warnings, warning(f.dotEnv.path, mode, "your variables"))
	}
	return warnings
}

func warning(path string, mode fs.FileMode, what string) string {
	return fmt.Sprintf("%s holds %s and others can read it (mode %04o): chmod 600 %s", path, what, mode.Perm(), path)
}

// Open returns a warning if other users of this machine can read the home or the store, which contain prompts
// and tool results. Each ends with the command that fixes it. A store inside the home is as private as the
// home.
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

// sharedMode returns the mode of a file if users other than its owner can read it.
func sharedMode(path string) (fs.FileMode, bool) {
	info, err := os.Stat(path)
	if err != nil || !modesMatter {
		return 0, false
	}
	const others = 0o044
	return info.Mode(), info.Mode().Perm()&others != 0
}

// Granted returns the variables that a config passes to a command role. proven contains those granted by the
// hash of its workflow, which determines the role; named contains the others, granted by a name that any
// workflow can use.
func Granted(c protocol.Config, workflow protocol.Hash, name, role string) (proven, named []string) {
	if c.Commands == nil {
		return nil, nil
	}
	all := c.Commands.PassEnv
	proven = slices.Clone(all[string(workflow)+"."+role])
	for _, variable := range slices.Concat(all[name], all[name+"."+role]) {
		if !slices.Contains(proven, variable) && !slices.Contains(named, variable) {
			named = append(named, variable)
		}
	}
	return proven, named
}

// Gets describes the variables passed to the commands of a workflow: a line for each role, and for each
// variable missing from e unless e is nil.
func Gets(c protocol.Config, workflow protocol.Hash, w protocol.Workflow, e *env.Env) (lines []string) {
	for _, role := range slices.Sorted(maps.Keys(w.Roles)) {
		if w.Roles[role].Player() == protocol.PlayedByCommand {
			lines = append(lines, gets(role, slices.Concat(Granted(c, workflow, w.Name, role)), e)...)
		}
	}
	return lines
}

// GetsAll is [Gets] for everything that a config grants.
func GetsAll(c protocol.Config, e *env.Env) (lines []string) {
	if c.Commands != nil {
		for _, key := range keys(c.Commands.PassEnv) {
			lines = append(lines, gets(key, c.Commands.PassEnv[key], e)...)
		}
	}
	return lines
}

func gets(who string, names []string, e *env.Env) (lines []string) {
	var has []string
	for _, name := range names {
		if e != nil && e.Get(name) == "" {
			lines = append(lines, who+": "+name+" is not set")
		} else {
			has = append(has, name)
		}
	}
	if len(has) > 0 {
		lines = append(lines, who+": gets "+strings.Join(has, ", "))
	}
	return lines
}

// passEnv checks the variables passed to commands.
func (k checker) passEnv() {
	if k.c.Commands == nil {
		return
	}
	for key, names := range k.c.Commands.PassEnv {
		at := k.at([]string{"commands", "passEnv", key})
		if strings.Trim(key, ". ") != key || key == "" {
			k.add(at, "write <workflow>.<role>, or <workflow>", "commands.passEnv has an invalid key")
		}
		for _, name := range names {
			if !isVariable(name) || strings.HasPrefix(strings.ToUpper(name), "UWF_") {
				k.add(at, "such as GH_TOKEN", "commands.passEnv.%s: %q cannot be passed", key, name)
			}
		}
	}
}
