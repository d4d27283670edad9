package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/box"
)

// Unattended checks what should be set before runs are left alone. Each check is one finding.
func (d Doctor) Unattended(ctx context.Context) protocol.Diagnosis {
	given := d.Env // without .env, whose secrets are not handed on
	x := d.examine(ctx)
	problems := 0
	for _, f := range x.findings {
		if f.Severity == protocol.SeverityProblem {
			problems++
		}
	}
	if x.findings = nil; problems > 0 {
		x.problem("setup", "uwf doctor", "%s", render.Count(problems, "problem"))
	} else {
		x.ok("setup", "uwf doctor finds no problem")
	}
	if x.config == nil {
		x.config = &protocol.Config{}
	}
	x.worktree(ctx)
	x.limit()
	x.notify()
	x.rateLimit()
	x.Env = given
	x.secrets()
	held := x.sandbox()
	x.sockets(held)
	if x.Root {
		x.warn("root", "sudo -iu USER", "agents run as root")
	} else {
		x.ok("root", "uwf does not run as root")
	}
	return x.diagnosis()
}

func (x *examination) worktree(ctx context.Context) {
	const area = "worktree"
	dir, err := filepath.EvalSymlinks(x.Env.Dir)
	if err == nil {
		_, err = snapshot.Find(ctx, x.Env, dir)
	}
	switch w := x.config.Workspace; {
	case err != nil:
		x.warn(area, "git init", "this directory is not in a git repository, so uwf keeps no snapshots")
	case w != nil && w.Default == "worktree":
		x.ok(area, "new threads get their own worktrees")
	default:
		x.warn(area, "uwf config set workspace.default worktree", "new threads work in your files")
	}
}

func (x *examination) limit() {
	var set []string
	if l := x.config.Limits; l != nil {
		add := func(is bool, format string, value any) {
			if is {
				set = append(set, fmt.Sprintf(format, value))
			}
		}
		add(l.MaxCostUSD > 0, "%s per run", protocol.Dollars(l.MaxCostUSD))
		add(l.MaxTokens > 0, "%d tokens per run", l.MaxTokens)
		add(l.MaxTime != "", "%s per run", l.MaxTime)
		if day := l.PerDay; day != nil {
			add(day.CostUSD > 0, "%s per day", protocol.Dollars(day.CostUSD))
			add(day.Tokens > 0, "%d tokens per day", day.Tokens)
		}
	}
	if len(set) == 0 {
		x.warn("limit", "uwf config set limits.perDay.costUsd 20", "cost, tokens and time are not limited")
		return
	}
	x.ok("limit", "%s", strings.Join(set, ", "))
}

func (x *examination) notify() {
	const area = "notify"
	n := x.config.Notify
	if n == nil || n.Command == nil && n.Webhook == nil {
		x.warn(area, `uwf config set notify.command '["notify-send","uwf"]'`, "no notification is sent when a thread stops")
		return
	}
	for _, event := range []string{protocol.NoticeWaiting, protocol.NoticeError} {
		if n.On != nil && !slices.Contains(n.On, event) {
			x.warn(area, "uwf config unset notify.on", "notify.on does not include %s", event)
			return
		}
	}
	x.ok(area, "you are notified when a thread stops")
}

func (x *examination) rateLimit() {
	const area = "rate-limit"
	alias := x.config.DefaultAgent
	switch on := x.config.Agents[alias].OnRateLimit; {
	case alias == "":
		x.warn(area, "uwf setup", "there is no default agent")
	case on == "" || on == protocol.LimitStop:
		x.warn(area, "uwf config set "+plaintext.Word("agents."+alias+".onRateLimit")+" wait", "a rate limit stops %s", alias)
	default:
		x.ok(area, "after a rate limit: %s", on)
	}
}

// logins are prefixes of variables that agents need to log in.
var logins = []string{"ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "CURSOR_", "OPENCODE_", "HERMES_", "OPENROUTER_"}

func (x *examination) secrets() {
	var wanted, seen []string
	for _, p := range x.config.Providers {
		wanted = append(wanted, p.APIKeyEnv)
	}
	for _, a := range x.config.Agents {
		wanted = append(wanted, a.PassEnv...)
	}
	for _, kv := range x.Env.Environ {
		name, value, _ := strings.Cut(kv, "=")
		login := slices.ContainsFunc(logins, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !login && secret.Guarded(name, value) && !slices.Contains(wanted, name) {
			seen = append(seen, plaintext.Word(name))
		}
	}
	if slices.Sort(seen); len(seen) > 0 {
		x.warn("secrets", "unset "+strings.Join(seen, " "), "agents can read %s", strings.Join(seen, ", "))
		return
	}
	x.ok("secrets", "no variable with a secret except logins of agents")
}

// sandbox reports what confines agents and commands, and returns whether it keeps them from Unix sockets.
func (x *examination) sandbox() (holdsSockets bool) {
	const area = "sandbox"
	can, lacks := config.System{}, box.Diagnosis{}
	if x.Confinement != nil {
		_, can, lacks = x.Confinement()
	}
	alias := x.config.DefaultAgent
	a := x.config.Agents[alias]
	mode, unknown := config.Sandbox(*x.config, alias).Mode, false
	if alias != "" && !config.OwnsModels(a.Command) {
		mode, unknown = config.Confining(a, mode, config.Driven(append([]string{a.Command}, a.Args...)))
	}
	set := "uwf config set " + plaintext.Word("agents."+alias+".sandbox.mode") + " auto"
	switch {
	case !can.Confines:
		x.problem(area, cmp.Or(lacks.Do, "docker run --rm -it IMAGE"), "agents and commands cannot be confined on this machine")
	case unknown:
		x.warn(area, set, "%s is not confined: uwf does not know its program", alias)
	case alias != "" && mode == protocol.SandboxNone:
		x.warn(area, set, "%s is not confined: its sandbox.mode is none", alias)
	case config.CommandSandbox(*x.config).Mode == protocol.SandboxNone:
		x.warn(area, "uwf config set commands.sandbox.mode auto", "command roles are not confined")
	case !can.Namespaces:
		x.warn(area, lacks.Do, "agents and commands are confined by Landlock only: %s", lacks.Why)
		return can.Sockets
	default:
		x.ok(area, "agents and commands are confined by namespaces")
		return true
	}
	return false
}

// sockets looks for sockets through which an agent could act outside of its sandbox.
func (x *examination) sockets(held bool) {
	var open, unset []string
	for _, name := range []string{"SSH_AUTH_SOCK", "DOCKER_HOST"} {
		if value := x.Env.Get(name); strings.HasPrefix(value, "tcp:") || dials(strings.TrimPrefix(value, "unix://")) {
			open, unset = append(open, name), append(unset, name)
		}
	}
	user := fmt.Sprintf("/run/user/%d/", os.Getuid())
	for _, path := range []string{"/var/run/docker.sock", user + "docker.sock", user + "podman/podman.sock"} {
		if dials(path) {
			open = append(open, path)
		}
	}
	switch {
	case len(open) == 0:
		x.ok("sockets", "no socket of Docker or of an SSH agent")
	case held:
		x.ok("sockets", "the sandbox hides %s", strings.Join(open, ", "))
	case len(unset) == len(open):
		x.warn("sockets", "unset "+strings.Join(unset, " "), "agents can reach %s", strings.Join(open, ", "))
	default:
		x.warn("sockets", "uwf config set sandbox.mode required", "agents can reach %s", strings.Join(open, ", "))
	}
}

// dials reports whether something that this user can reach listens on a socket.
func dials(path string) bool {
	if path == "" {
		return false
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
