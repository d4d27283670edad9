package cliagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/programs"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/cliagent/places"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// confinement describes a program's sandbox. The agent itself is not confined, because it writes the store.
type confinement struct {
	exe   string // this agent's executable, which confines itself and then becomes the program
	rules confine.Rules
	off   offlimits.List
	env   []string // the program's environment, with its temporary directory
	// granted lists directories that only one call writes: continuing its session unconfined would run what
	// is in them.
	granted []string
	box     *boxing // nil if only Landlock is used
	open    bool    // not confined, because neither works here
	close   func() error
}

// confined returns the sandbox of the step's program, or nil. It records the sandbox in force for the detail.
func (r *runner) confined() (*confinement, error) {
	adapter := protocol.AgentName(r.adapter.Name)
	setting, unknown := config.Confining(protocol.Agent{Command: adapter, Permission: string(r.permission)}, r.sandbox.Mode, r.driven())
	if r.permission != Bypass && !config.HeedsPermission(adapter) {
		r.req.Warn("permission %s has no effect on %s: %s cannot restrict a command", r.permission, r.adapter.Program, adapter)
	}
	if setting == protocol.SandboxNone && !r.sandbox.Network.All() {
		return nil, r.mustBox(setting, errors.New("it has no sandbox: sandbox.mode is none"))
	}
	if setting == protocol.SandboxNone {
		r.held = "not confined"
		if programs.Sandboxes(r.driven()) {
			r.hidden = r.offLimits().Closed() // including its own login, because only its commands are confined
			if r.adapter.Commanded {
				r.req.Warn("%s sandboxes its commands itself and lets them read keys; use uwf-codex, or "+
					"permission full, where uwf provides the sandbox", r.adapter.Program)
			}
		}
		if unknown {
			r.held += ": the location of its files is unknown"
			r.req.Warn("%s runs without a sandbox: uwf does not know where it keeps its files; set %s to auto, or "+
				"to none to hide this warning",
				r.adapter.Program, r.key("sandbox.mode"))
		}
		return nil, nil
	}
	r.boxProgram = box.Find(r.env.Exe)
	if r.boxProgram == "" { // uwf doctor reports it
		if err := r.mustBox(setting, errors.New(box.Program+" is not installed")); err != nil {
			return nil, err
		}
		if open, err := r.mustOpen(setting); open || err != nil {
			return nil, err
		}
	} else {
		r.ahead = box.StartAhead(r.boxProgram, r.cwd, r.sandbox.Network, true)
		r.around.AtEnd(r.ahead.Discard)
	}
	tmp, err := os.MkdirTemp("", "uwf-"+r.adapter.Name+"-tmp-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary directory: %w", err)
	}
	c := &confinement{exe: r.env.Exe}
	c.env = []string{"TMPDIR=" + tmp, "TMP=" + tmp, "TEMP=" + tmp, "CLAUDE_CODE_TMPDIR=" + tmp}
	if variable, value, alone := programs.Trust(r.driven()); variable != "" && !alone {
		c.env = append(c.env, variable+"="+value) // otherwise it does not work in a directory that the user has not trusted; see planted
	}
	if r.adapter.Commanded && programs.Snapshots(r.driven()) { // uwf-opencode sets this itself
		content, err := OpencodeConfig(r.env.Get("OPENCODE_CONFIG_CONTENT"), map[string]any{"snapshot": false})
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(tmp))
		}
		c.env = append(c.env, "OPENCODE_CONFIG_CONTENT="+content)
	}
	// Not one set per repository, because the program's own directories are shared as well.
	caches, dirs := tools.CacheSet(filepath.Join("agents", r.adapter.Name), r.env.Environ, r.env.Now())
	c.env = append(c.env, caches...)
	for _, entry := range caches {
		cache, ok := strings.CutPrefix(entry, "XDG_CACHE_HOME=")
		// Codex and opencode cannot create files in their own directories.
		for name, at := range map[string]string{"CODEX_SQLITE_HOME": cache, "OPENCODE_DB": filepath.Join(cache, "opencode.db")} {
			if ok && r.env.Get(name) == "" {
				c.env = append(c.env, name+"="+at)
			}
		}
	}
	dirs = append(slices.Clip(dirs), r.artifacts()...)
	top, real := gitdir.Top(r.cwd), safeopen.Resolved(tmp)
	c.close = func() error {
		removed := make(chan error, 1) // mount points take long
		go func() { removed <- safeopen.RemoveAll(tmp) }()
		if top != "" && strings.HasPrefix(real, top+string(filepath.Separator)) { // the step's snapshot must not contain it
			return <-removed
		}
		r.around.AtEnd(func() { r.report(<-removed) })
		return nil
	}
	if r.boxProgram != "" {
		err = r.boxed(c, setting, tmp, dirs)
	} else {
		err = r.bound(c, tmp, dirs)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// mustOpen reports whether the program runs without a sandbox because this machine has none. It returns an error
// if the config requires one.
func (r *runner) mustOpen(setting string) (bool, error) {
	why := r.unconfinable()
	if why == "" {
		return false, nil
	}
	if setting == protocol.SandboxLandlock {
		return false, &Error{
			Program: r.adapter.Program, Kind: errorkind.Denied,
			Text: r.adapter.Program + " must run in a sandbox, which is not possible: " + why,
			Hint: "use a kernel with Landlock, or: uwf config set " + r.key("sandbox.mode") + " auto",
		}
	}
	r.held = "not confined: " + why
	r.req.Warn("%s runs without a sandbox: %s", r.adapter.Program, why)
	return true, nil
}

// bound confines the program with Landlock and checks its changes when it ends.
func (r *runner) bound(c *confinement, tmp string, caches []string) error {
	if r.permission != Bypass && programs.Sandboxes(r.driven()) {
		r.req.Warn("%s needs its own sandbox with permission %s, which does not work inside another one, so its "+
			"commands fail; set %s to none, or the permission to full",
			r.adapter.Program, r.permission, r.key("sandbox.mode"))
	}
	if _, known := programs.Places(r.driven()); !known {
		r.req.Warn("files that %s writes to its own directories (such as ~/.%[1]s) stay unchecked and can affect "+
			"your next session with it", filepath.Base(r.adapter.Program))
	}
	r.held = "confined by: " + confine.Describe() + confine.Open(false)
	rules, off, run, err := r.rules(tmp, caches)
	if err != nil {
		return err
	}
	c.rules, c.off = rules, off
	before := c.close
	c.close = func() error {
		err := errors.Join(r.putBack(run), before())
		for _, dir := range c.granted {
			err = errors.Join(err, safeopen.RemoveAll(dir))
		}
		return err
	}
	return nil
}

// OpencodeConfig changes opencode's settings, given as the content of OPENCODE_CONFIG_CONTENT.
func OpencodeConfig(content string, change map[string]any) (string, error) {
	all := map[string]any{}
	if content != "" {
		if err := json.Unmarshal([]byte(content), &all); err != nil {
			return "", fmt.Errorf("OPENCODE_CONFIG_CONTENT in the environment is not a JSON object: %w", err)
		}
		if all == nil { // content is null
			all = map[string]any{}
		}
	}
	maps.Copy(all, change)
	text, err := json.Marshal(all)
	return string(text), err
}

// driven returns the command that the step runs.
func (r *runner) driven() []string { return append([]string{r.adapter.Program}, r.words...) }

// key returns the config key of a setting for this agent. An agent without a config entry needs a complete
// one, not just the setting.
func (r *runner) key(name string) string {
	return "agents." + cmp.Or(r.env.Get(protocol.EnvAgent), "<alias>") + "." + name
}

// unconfinable returns the reason why this machine cannot confine programs, or "".
func (r *runner) unconfinable() string {
	if confine.Level() == 0 {
		return strings.TrimPrefix(confine.Describe(), "none: ")
	}
	if r.env.Exe == "" {
		return "the path of this program is unknown"
	}
	return ""
}

// rules returns what the program may write: the workspace, and the directories that it needs.
func (r *runner) rules(tmp string, caches []string) (confine.Rules, offlimits.List, *box.Run, error) {
	env := r.env
	mine, err := places.Of(r.driven(), r.cwd, env.Get)
	if err != nil {
		return confine.Rules{}, offlimits.List{}, nil, fmt.Errorf("find the files of %s: %w", r.adapter.Program, err)
	}
	guard := box.SharedState(r.around.Dirs)             // this comes first, because a missing path cannot be hidden
	off := r.offLimits(append(mine.Reads, r.runDir)...) // the program may read its credentials, and a long prompt
	dirs, files := slices.Concat(mine.Dirs, caches, []string{tmp}), mine.Files
	beside := offlimits.GitDirs(r.cwd)
	if r.permission != Readonly || !config.HeedsPermission(protocol.AgentName(r.adapter.Name)) {
		dirs = append(append(dirs, r.cwd), beside...)
	}
	for _, path := range off.Writable() {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			files = append(files, path)
		} else {
			dirs = append(dirs, path)
		}
	}
	recovered, err := box.Recover(context.Background(), r.around.Dirs.Box(), guard)
	for _, message := range recovered {
		r.req.Warn("a program whose agent was killed %s", message)
	}
	if err != nil { // files it created don't count as the user's
		r.req.Warn("could not undo the changes of a program whose agent was killed: %v", err)
	}
	var obeyed []string
	for dir, names := range places.Obeyed(r.driven(), env.Get) {
		for _, name := range names {
			obeyed = append(obeyed, filepath.Join(dir, name))
		}
	}
	run, err := box.Request{
		Workspace: r.cwd, Git: beside, Off: off, Writable: dirs, Obeyed: obeyed, Temporary: tmp, State: guard,
		Environ: env.Environ,
	}.Lower()
	if err != nil {
		return confine.Rules{}, off, nil, fmt.Errorf("save the files that %s must not change: %w", r.adapter.Program, err)
	}
	if message := off.Narrows(r.cwd); message != "" {
		r.req.Warn("%s", message)
	}
	return confine.Rules{
		Dirs: dirs, Files: files, IPC: r.sandbox.SharesMemory(), Profile: confine.Program, Terminals: !programs.NoTerminals(r.driven()),
		Hidden: off.Hidden(), Readable: off.Readable(), Guarded: off.Guarded(),
	}, off, run, nil
}

// offLimits returns the paths that the program must not touch, except those of its own files that it reads.
func (r *runner) offLimits(reads ...string) offlimits.List {
	return offlimits.New(offlimits.Options{
		UserHome: cmp.Or(r.env.Get("HOME"), r.env.Get("USERPROFILE")), Environ: r.env.Environ,
		Dir: r.cwd, Home: r.around.Dirs.Home, Store: r.around.Dirs.Store,
		Hide:      r.sandbox.DenyRead,
		AllowRead: slices.Concat(reads, r.artifacts(), r.sandbox.AllowRead), AllowWrite: r.sandbox.AllowWrite,
	})
}

// artifacts returns the directory for the artifacts of the thread's run.
func (r *runner) artifacts() []string {
	if dir := r.around.Dirs.OwnArtifacts(r.env.Get(protocol.EnvArtifacts)); dir != "" {
		return []string{dir}
	}
	return nil
}

// putBack reverts the program's changes to settings that determine what git or uwf run later, and warns about
// them.
func (r *runner) putBack(run *box.Run) error {
	messages, err := run.End(context.Background())
	for _, message := range messages {
		r.req.Warn("%s %s", r.adapter.Program, message)
	}
	return err
}

// wrap returns a command that applies the sandbox and then becomes cmd. done must be called when it has
// exited or was not started.
func (c *confinement) wrap(cmd proc.Command) (held proc.Command, done func() error, err error) {
	done = func() error { return nil }
	switch {
	case c == nil || c.open:
		return cmd, done, nil
	case c.box != nil:
		return c.box.wrap(c, cmd)
	}
	held, err = c.bind(cmd)
	return held, done, err
}

func (c *confinement) bind(cmd proc.Command) (proc.Command, error) {
	cmd.Env = append(slices.Clip(cmd.Env), c.env...)
	return confine.Command(c.exe, c.rules, cmd)
}

// grant creates directories for a single call, writable by the program until the step ends.
func (r *runner) grant(names []string) error {
	own, _ := programs.Places(r.driven())
	if r.confinement == nil || len(own) == 0 {
		return nil
	}
	if b := r.confinement.box; b != nil { // nothing else sees what it creates
		b.owned = append(b.owned, names...)
		return nil
	}
	for _, name := range names {
		if path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("invalid session id %q", name) // a forged step may contain it
		}
		dir := filepath.Join(own[0].Path(r.env.Get), filepath.FromSlash(name))
		if err := places.Make(dir, ""); err != nil {
			return fmt.Errorf("create the session's directory: %w", err)
		}
		if !slices.Contains(r.confinement.rules.Dirs, dir) {
			r.confinement.rules.Dirs = append(r.confinement.rules.Dirs, dir)
			r.confinement.granted = append(r.confinement.granted, dir)
		}
	}
	return nil
}

// boxing describes a program in namespaces. It changes copies of its own directories that belong to the
// thread.
type boxing struct {
	program string      // path of uwf-box
	ahead   *proc.Ahead // for the first process
	request box.Request
	layers  places.Layers
	owned   []string // what the program was granted
	// lower changes the confinement to the lower tier, for the reason why namespaces failed.
	lower func(why error) error

	mu    sync.Mutex
	notes []string // messages from the ends of processes
}

// mustBox returns an error if the program requires namespaces and cannot have them. Only namespaces can
// restrict the network.
func (r *runner) mustBox(setting string, why error) error {
	if limited := !r.sandbox.Network.All(); limited {
		return &Error{
			Program: r.adapter.Program, Kind: errorkind.Denied, Text: fmt.Sprintf("cannot run %s with network %s: "+
				"%v", r.adapter.Program, r.sandbox.Network, why),
			Hint: "to allow all connections: uwf config set " + r.key("sandbox.network") + " all",
		}
	}
	if setting != protocol.SandboxRequired {
		return nil
	}
	return &Error{
		Program: r.adapter.Program, Kind: errorkind.Denied, Text: fmt.Sprintf("%s must run in namespaces, which "+
			"is not possible: %v", r.adapter.Program, why),
		Hint: "to use a weaker sandbox: uwf config set " + r.key("sandbox.mode") + " landlock",
	}
}

// boxed confines the program with namespaces.
func (r *runner) boxed(c *confinement, setting, tmp string, caches []string) error {
	env, dirs := r.env, r.around.Dirs
	messages, err := box.Recover(r.ctx, dirs.Box())
	for _, text := range messages {
		r.req.Warn("a program whose agent was killed %s", text)
	}
	r.report(err) // the next run tries again
	kept := filepath.Join(dirs.Agents(r.req.Thread), protocol.AgentName(r.adapter.Name))
	layers, err := places.Over(r.driven(), r.cwd, filepath.Join(tmp, "box"), kept, env.Get)
	if err != nil {
		return fmt.Errorf("find the files of %s: %w", r.adapter.Program, err)
	}
	r.report(layers.CopyBack([]string{r.req.SessionID})) // left by a killed program
	c.off = r.offLimits(append(slices.Clip(layers.Finds), r.runDir)...)
	writable := append(slices.Clone(caches), tmp)
	for i, dir := range writable {
		writable[i] = safeopen.Resolved(dir)
	}
	c.box = &boxing{program: r.boxProgram, ahead: r.ahead, layers: layers, request: box.Request{
		Workspace: r.cwd, Git: offlimits.GitDirs(r.cwd), Home: safeopen.Resolved(env.Get("HOME")), Off: c.off, Readable: []string{safeopen.Resolved(r.runDir)},
		Writable: writable, Temporary: safeopen.Resolved(tmp), State: dirs.Box(),
		Environ: env.Environ, Nest: r.sandbox.Nests(true), Network: r.sandbox.Network, Finds: layers.Finds, Mounts: layers.Mounts,
		Now:      env.Now(),
		ReadOnly: r.permission == Readonly && config.HeedsPermission(protocol.AgentName(r.adapter.Name)),
	}}
	before, b := c.close, c.box
	b.lower = func(why error) error {
		if err := r.mustBox(setting, why); err != nil {
			return err
		}
		c.box, c.close = nil, before
		open, err := r.mustOpen(setting)
		if c.open = open; open || err != nil {
			return err
		}
		r.req.Warn("%s runs without namespaces (%v), sandboxed by %s%s", r.adapter.Program, why, confine.Describe(), confine.Open(false))
		return errors.Join(r.bound(c, tmp, caches), r.grant(b.owned))
	}
	r.held = "confined by: namespaces, " + confine.Describe()
	c.close = func() error {
		for _, text := range b.notes {
			r.req.Warn("%s %s", r.adapter.Program, text)
		}
		return errors.Join(layers.CopyBack(r.used), before())
	}
	return nil
}

// wrap returns a command that runs cmd in namespaces, or in the lower tier where they don't work; see
// [confinement.wrap].
func (b *boxing) wrap(c *confinement, cmd proc.Command) (held proc.Command, done func() error, err error) {
	inside, request := cmd, b.request
	inside.Env = append(slices.Clip(cmd.Env), c.env...)
	request.Finds = append(slices.Clip(request.Finds), box.ProgramFiles(cmd.Path, request.Workspace, inside.Env)...)
	held, end, err := request.Hold(b.program, inside, func(why error) (proc.Command, box.End, error) {
		if err := b.lower(why); err != nil {
			return cmd, nil, err
		}
		instead, _, err := c.wrap(cmd) // in the lower tier, there is nothing to do at its end
		return instead, func(context.Context) ([]string, error) { return nil, nil }, err
	})
	if held.Box != nil {
		held.Box.Ahead = b.ahead
	}
	return held, func() error {
		messages, err := end(context.Background()) // even if the step was stopped
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notes = append(b.notes, messages...)
		return err
	}, err
}

// uses records a session of the program, so that its files are copied back.
func (r *runner) uses(session string) {
	if !slices.Contains(r.used, session) {
		r.used = append(r.used, session)
	}
}

// planted returns an error if the directory contains files that the program would obey without asking.
// Commands in them get the program's rights and can read its login. An unconfined program decides itself
// which directories to trust, unless uwf is responsible for that and the version cannot be restricted.
func (r *runner) planted() error {
	command := r.driven()
	variable, value, alone := programs.Trust(command)
	trusted := alone && r.env.Get(variable) == value
	if trusted || r.adapter.Distrusts || slices.Contains(command, "--setting-sources") || r.confinement == nil && (programs.AsksForTrust(command) || r.sandbox.Mode == protocol.SandboxNone && !alone) {
		return nil
	}
	path := programs.Planted(command, r.cwd)
	if path == "" {
		return nil
	}
	var trust []string
	if variable != "" {
		trust = append(trust, variable+`: "`+value+`" in env of the agent`)
	}
	if !alone {
		trust = append(trust, "uwf config set "+r.key("confine")+" off")
	}
	return &Error{
		Program: r.adapter.Program, Kind: errorkind.Denied, Hint: "remove it, or trust it: " + strings.Join(trust, ", and "),
		Text: path + " of the working directory sets programs, servers or variables that " + r.adapter.Program + " would use without asking",
	}
}

// sandboxHints returns hints for a program that failed, perhaps because of its sandbox.
func (r *runner) sandboxHints(out tried) []string {
	ended := out.Kind == Incomplete || out.Kind == Timeout
	if r.confinement == nil || out.Kind == OK || !ended && !slices.Contains([]errorkind.Kind{Crashed, errorkind.Unknown, errorkind.Denied}, out.Error) {
		return nil // a host such as its model's endpoint explains the failure
	}
	hints := []string{
		"to let " + r.adapter.Program + " write elsewhere: uwf config set " + r.key("sandbox.allowWrite") + " '[\"…\"]'",
		"to let it write anywhere: uwf config set " + r.key("sandbox.mode") + " none",
	}
	if r.confinement.box != nil {
		hints = append(hints, r.seesMore())
	}
	return hints
}

// seesMore returns a hint about making more files visible in namespaces.
func (r *runner) seesMore() string {
	return "to let it read more of your home directory: uwf config set " + r.key("sandbox.allowRead") + " '[\"…\"]'"
}
