// Package doctor checks everything that a step needs, and reports problems with remedies. It changes nothing.
//
// agents.go checks the config with its agents, models and sandboxes; this file checks the rest. A finding is a
// problem if it stops every step, or those of the default agent. One about another agent, model or file, or about
// a risk, is a warning; a note is for your information.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Doctor checks one home.
type Doctor struct {
	Env  env.Env
	Dirs home.Dirs
	// Running lists the running threads; nil skips the check.
	Running func(ctx context.Context) ([]protocol.RunningThread, error)
	// Confinement returns how this machine restricts models' commands, what the system supports, and why
	// namespaces don't work; nil skips the check.
	Confinement func() (text string, can config.System, lacks box.Diagnosis)
	// Ask sends a request to a model and returns the error; nil only checks the configuration.
	Ask func(ctx context.Context, e config.Endpoint) error
	// AskAgent has an agent answer a question; nil skips that.
	AskAgent func(ctx context.Context, alias string) *protocol.SetupProbe
	Root     bool // steps run as root
}

// examination collects findings. Each check is a method that adds its own.
type examination struct {
	Doctor
	index    *fileheads.Heads // threads and registered workflows
	config   *protocol.Config // nil until it is read, or if unreadable
	findings []protocol.Finding
}

// Examine performs all checks. It stops early only if ctx is cancelled.
func (d Doctor) Examine(ctx context.Context) protocol.Diagnosis { return d.examine(ctx).diagnosis() }

func (d Doctor) examine(ctx context.Context) *examination {
	x := &examination{Doctor: d, index: fileheads.Open(d.Dirs.Home, durable.OS())}
	for _, look := range []func(context.Context){x.home, x.disk, x.store, x.threads, x.readConfig, x.dailyLimit, x.overrides, x.agents, x.models, x.confinement, x.git} {
		if ctx.Err() == nil {
			look(ctx)
		}
	}
	return x
}

func (x *examination) diagnosis() protocol.Diagnosis {
	healthy := !slices.ContainsFunc(x.findings, func(f protocol.Finding) bool { return f.Severity == protocol.SeverityProblem })
	return protocol.Diagnosis{Healthy: healthy, Findings: x.findings}
}

// add adds a finding. do is the remedy; it may be empty only if nothing must be done.
func (x *examination) add(s protocol.Severity, area, do, format string, args ...any) {
	x.findings = append(x.findings, protocol.Finding{Area: area, Severity: s, What: fmt.Sprintf(format, args...), Do: do})
}

func (x *examination) ok(area, format string, args ...any) {
	x.add(protocol.SeverityOK, area, "", format, args...)
}

func (x *examination) note(area, do, format string, args ...any) {
	x.add(protocol.SeverityNote, area, do, format, args...)
}

func (x *examination) warn(area, do, format string, args ...any) {
	x.add(protocol.SeverityWarning, area, do, format, args...)
}

func (x *examination) problem(area, do, format string, args ...any) {
	x.add(protocol.SeverityProblem, area, do, format, args...)
}

// agentless reports that no agent is configured. Roles of commands and people don't need one.
func (x *examination) agentless(do, format string, args ...any) {
	x.problem("config", do, format, args...)
	x.findings[len(x.findings)-1].ForAgents = true
}

// existing returns path, or its nearest existing parent.
func existing(path string) string {
	for !exists(path) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}

// Thresholds of free space, in bytes, for a warning and for a problem: a step of a talkative agent takes a few
// hundred kilobytes.
const (
	littleSpace = 200 << 20
	noSpace     = 1 << 20
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// home checks the directory of all mutable state.
func (x *examination) home(context.Context) {
	dir := x.Dirs.Home
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		x.note("home", "uwf setup", "%s does not exist yet; uwf creates it when needed", dir)
		dir = existing(dir)
	case err != nil:
		x.problem("home", "export UWF_HOME=DIR", "%v", err)
		return
	case !info.IsDir():
		x.problem("home", "export UWF_HOME=DIR", "%s is not a directory", dir)
		return
	}
	if err := writable(dir); err != nil {
		x.problem("home", writeRemedy(err, dir, "UWF_HOME"), "cannot write to %s: %v", dir, err)
		return
	}
	if err := config.Distrust(x.Dirs); err != nil {
		x.problem("home", remedy(err, ""), "%v", err)
	}
	for _, warning := range config.Open(x.Dirs) {
		what, do, _ := strings.Cut(warning, ": ")
		x.warn("home", do, "%s", what)
	}
	if off := offlimits.New(offlimits.Options{Dir: x.Env.Dir, Home: dir, Store: x.Dirs.Store}); x.Dirs.Home != x.Env.Dir {
		if narrowed := off.Narrows(x.Env.Dir); narrowed != "" {
			x.note("home", "export UWF_HOME=DIR", "%s", narrowed)
		}
	}
	x.openToOthers()
	if exists(x.Dirs.Home) {
		x.ok("home", "%s", dir)
	}
}

// openToOthers reports files that other users can write, because these files determine what runs next.
func (x *examination) openToOthers() {
	paths := []string{x.Dirs.Store, filepath.Join(x.Dirs.Home, "runs"), x.Dirs.Sessions()}
	for _, name := range []string{"threads.yaml", "registry.yaml", "history.jsonl", "facts.jsonl"} {
		paths = append(paths, filepath.Join(x.Dirs.Home, name))
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && safeopen.OthersWrite(info) {
			x.warn("home", "chmod go-w "+path, "other users can write to %s", path)
		}
	}
}

// writable tries to write, because modes don't show everything (owners, read-only disks, quotas).
func writable(dir string) error {
	fsys := durable.OS()
	temp, err := fsys.WriteTemp(dir+string(os.PathSeparator)+"doctor", []byte("x"), 0o600, durable.NoFlush)
	if err != nil {
		return cause(err)
	}
	return fsys.Remove(temp)
}

// makeRoom is the remedy for a full disk.
const makeRoom = "uwf cas gc"

// writeRemedy returns the remedy for a directory that cannot be written. variable is the environment variable
// that selects another one.
func writeRemedy(err error, dir, variable string) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return makeRoom
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("export %s=DIR", variable)
	}
	if info, err := os.Stat(dir); err == nil {
		if id, ok := safeopen.Owner(info); ok && id == os.Geteuid() {
			return fmt.Sprintf("chmod u+rwx %s, or export %s=DIR", dir, variable)
		}
	}
	return fmt.Sprintf("sudo chown -R \"$USER\" %s, or export %s=DIR", dir, variable)
}

// cause returns the operating system's error without the name of the temporary file.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// disk checks the free space, and the directory for temporary files.
func (x *examination) disk(context.Context) {
	if err := writable(os.TempDir()); err != nil {
		x.problem("disk", "export TMPDIR=DIR", "cannot write to %s: %v", os.TempDir(), err)
	}
	var last uint64
	for i, dir := range []string{x.Dirs.Home, x.Dirs.Store} {
		free, err := durable.FreeSpace(existing(dir))
		if err != nil {
			x.note("disk", "", "cannot read the free space for %s: %v", dir, err)
			continue
		}
		if i > 0 && free == last {
			continue // the same disk, most likely: report it once
		}
		last = free
		switch text := fmt.Sprintf("%s free for %s", size(free), dir); {
		case free < noSpace:
			x.problem("disk", makeRoom, "%s", text)
		case free < littleSpace:
			x.warn("disk", makeRoom, "%s", text)
		case i == 0:
			x.ok("disk", "%s", text)
		}
	}
}

// store checks the node store's format and flushing. fsck checks the nodes themselves, which takes time.
func (x *examination) store(ctx context.Context) {
	dir := x.Dirs.Store
	s, err := fsstore.Open(ctx, dir, fsstore.Options{Home: x.Dirs.Home})
	if err != nil {
		remedy := "uwf cas fsck --repair"
		if errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupportedVersion}) {
			remedy = "install a newer version of uwf"
		}
		x.problem("store", remedy, "%v", err)
		return
	}
	if !s.Exists() {
		x.note("store", "", "%s does not exist yet; uwf creates it when needed", dir)
		return
	}
	if err := writable(filepath.Clean(dir)); err != nil {
		x.problem("store", writeRemedy(err, dir, "OCAS_HOME"), "cannot write to %s: %v", dir, err)
		return
	}
	kind := string(s.Algorithm())
	if s.Originals() {
		kind += ", the original's layout"
	}
	x.ok("store", "%s (%s)", dir, kind)
}

// threads checks the files of the heads, and the steps in flight.
func (x *examination) threads(ctx context.Context) {
	active, err := x.count(ctx)
	if err != nil {
		x.problem("threads", "uwf cas fsck --repair", "%v", err)
		return
	}
	names, err := x.index.Workflows(ctx)
	if err != nil {
		x.problem("threads", "correct "+filepath.Join(x.Dirs.Home, "registry.yaml"), "%v", err)
		return
	}
	facts, err := x.index.AllFacts(ctx)
	if err != nil {
		x.problem("threads", "uwf cas fsck --repair", "%v", err)
		return
	}
	if err := x.index.CheckLost(ctx); err != nil {
		x.problem("threads", "uwf cas fsck", "%v", err)
		return
	}
	x.ok("threads", "%s active, %s registered", render.Count(active, "thread"), render.Count(len(names), "workflow"))
	x.rateLimited(ctx, facts)
	x.running(ctx)
}

// rateLimited reports threads that wait for a provider's limit to reset.
func (x *examination) rateLimited(ctx context.Context, facts map[string]heads.Facts) {
	now, due, waiting := x.Env.Now().UnixMilli(), 0, 0
	for h, err := range x.index.Heads(ctx) {
		if err != nil {
			return // count has reported it
		}
		switch f := facts[h.Thread]; {
		case f.ParkedUntil > now:
			waiting++
		case f.ParkedUntil > status.NotParked: // the limit has reset, but the thread was not resumed
			due++
		}
	}
	active := x.accounts().Active()
	for _, account := range slices.Sorted(maps.Keys(active)) {
		l := active[account]
		x.note("threads", "uwf thread list --status rate-limited", "account %s is rate-limited until %s: %s",
			account, l.Until().In(x.Env.Now().Location()).Format(time.DateTime), plaintext.Line(l.Reason))
	}
	if waiting > 0 {
		x.note("threads", "uwf thread list", "%s rate-limited; uwf run-due continues them after the reset", render.Count(waiting, "thread"))
	}
	if due > 0 {
		x.note("threads", "uwf run-due", "%s can continue after a rate limit", render.Count(due, "thread"))
	}
}

// dailyLimit reports that the daily limit is used up.
func (x *examination) dailyLimit(context.Context) {
	if x.config == nil {
		return
	}
	if l := x.accounts().Today(x.config.Limits).UsedUp(); l.Reason != "" {
		x.note("threads", "uwf inbox", "no agent starts until %s: %s",
			l.Until().In(x.Env.Now().Location()).Format(time.DateTime), l.Reason)
	}
}

func (x *examination) accounts() engine.Accounts {
	return engine.Accounts{Dir: x.Dirs.Limits(), FS: durable.OS(), Now: x.Env.Now, Warn: func(text string) {
		x.warn("threads", "uwf run-due", "%s", text)
	}}
}

// count reads all active and ended threads, and returns the number of active ones.
func (x *examination) count(ctx context.Context) (active int, err error) {
	for _, err := range x.index.Heads(ctx) {
		if err != nil {
			return 0, err
		}
		active++
	}
	for _, err := range x.index.History(ctx) {
		if err != nil {
			return 0, err
		}
	}
	return active, nil
}

// running lists running threads, which may include a step that seems to hang.
func (x *examination) running(ctx context.Context) {
	if x.Running == nil {
		return
	}
	all, err := x.Running(ctx)
	if err != nil {
		x.warn("threads", "uwf thread list --status running", "cannot list the running threads: %v", err)
	}
	if len(all) == 0 || err != nil {
		return
	}
	var ids []string
	for _, r := range all {
		ids = append(ids, r.Thread)
	}
	x.note("threads", "uwf thread stop "+ids[0], "%s running: %s", render.Count(len(ids), "thread"), strings.Join(ids, ", "))
}

// git reports whether the files of steps can be snapshotted.
func (x *examination) git(ctx context.Context) {
	const area, upgrade = "git", "install git 2.38 or later"
	v, err := snapshot.GitVersion(ctx, x.Env, x.Env.Dir)
	switch {
	case err != nil:
		x.note(area, upgrade, "uwf keeps no snapshots: %v", err)
		return
	case !v.AtLeast(2, 31):
		x.warn(area, upgrade, "git %s is too old for snapshots", v.Text)
		return
	case !v.AtLeast(2, 38):
		x.note(area, upgrade, "git %s can take snapshots, but uwf thread apply cannot merge with it", v.Text)
	default:
		x.ok(area, "git %s can take snapshots", v.Text)
	}
	dir, err := filepath.EvalSymlinks(x.Env.Dir)
	if err != nil {
		return
	}
	if _, err = snapshot.Find(ctx, x.Env, dir); err != nil && !errors.Is(err, snapshot.ErrNone) {
		x.warn(area, "uwf config set workspace.default none", "cannot take snapshots of %s: %s", plaintext.Line(dir), plaintext.Line(err.Error()))
	}
}

// size formats a number of bytes.
func size(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d kB", n>>10)
}

// Unattended checks what you should set before you leave runs alone. Each check has one finding.
func (d Doctor) Unattended(ctx context.Context) protocol.Diagnosis {
	given := d.Env // without the variables of .env, which agents don't get
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

// logins are prefixes of the variables with which agents log in.
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

// sandbox reports what confines agents and commands. It returns whether that keeps them from Unix sockets.
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

// dials reports whether this user can connect to a Unix socket.
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
