// Package box confines programs with namespaces: files that a program must not read or write don't exist for
// it. Each program runs alone in user, mount, pid and IPC namespaces, which uwf-box sets up according to a
// plan from this package.
//
//   - box.go: the program, its plan and its network;
//   - home.go: the visible parts of the user's home and of the program's installation;
//   - git.go: the writable parts of git directories;
//   - end.go: runs without namespaces, and the cleanup after a run.
package box

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hostlist"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/box/proxy"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Program is the name of the helper program that sets up the namespaces.
const Program = "uwf-box"

// Profile is the path for which the AppArmor profile of uwf-box is written.
const Profile = "/usr/bin/" + Program

// Install is the command that installs uwf-box.
const Install = "go install github.com/united-workforce/uwf/cmd/" + Program + "@latest"

// Find returns the path of uwf-box, next to exe or at Profile, or "". PATH is not searched.
func Find(exe string) string { return find(exe, Profile, setting(restricted) == "1") }

// find prefers profile if only a program with an AppArmor profile may create namespaces.
func find(exe, profile string, restricted bool) string {
	real, err := filepath.EvalSymlinks(exe)
	if err != nil {
		real = exe
	}
	paths := []string{filepath.Join(filepath.Dir(exe), Program), filepath.Join(filepath.Dir(real), Program), profile}
	if restricted {
		slices.Reverse(paths)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); exe != "" && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Probe returns the reason why uwf-box, or one of some mounts, does not work here, or nil. It runs uwf-box
// with nothing to do.
func Probe(box string, mounts ...plan.Mount) error {
	tmp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return err
	}
	text := plan.Encode(plan.Plan{Version: plan.Version, Dir: "/", Temporary: tmp, Mounts: mounts})
	b := namespaces("", nil)
	b.Plan = func() ([]byte, error) { return text, nil }
	child, err := proc.Start(proc.Command{Path: box, Box: b})
	if err != nil {
		return err
	}
	_, err = child.Wait(context.Background(), time.Second)
	return err
}

// Request describes a program to confine. All paths are absolute and free of symbolic links.
type Request struct {
	Workspace string   // writable
	Git       []string // git directories elsewhere that the workspace belongs to
	Home      string   // the user's home, or ""
	Off       offlimits.List
	Writable  []string // additional writable directories and files
	Obeyed    []string // writable paths elsewhere that programs obey; see [Request.Lower]
	Readable  []string // additional readable paths
	Temporary string   // the program's /tmp
	State     string   // directory outside its reach, for state kept until the run ends
	Environ   []string // environment of this process
	Keep      []string // capabilities to keep, named as in confine.Capabilities
	Nest      bool     // the program creates sandboxes itself
	ReadOnly  bool     // the workspace is read-only
	Finds     []string // visible paths below the home or /tmp; may contain symbolic links
	Mounts    []plan.Mount
	Now       time.Time // for the age of caches
	Status    *os.File  // see [proc.Box]

	NoUnixSockets bool
	Network       protocol.Network // the hosts it can reach
}

// ErrNotHere reports that namespaces cannot confine a program to this workspace.
var ErrNotHere = errors.New("the workspace contains the home directory")

// builder collects the mounts of a plan, one per path.
type builder struct {
	plan    plan.Plan
	mounts  map[string]plan.Mount
	homes   []string // hidden home directories
	state   string
	configs []gitCopy
	running []gitCopy // of commands that have not ended
}

func (b *builder) add(m plan.Mount) { b.mounts[m.Path] = m }

// write makes an existing directory or file writable.
func (b *builder) write(path string) {
	if inode := identity(path); inode != "" {
		b.add(plan.Mount{Path: path, Kind: plan.Write, Inode: inode})
	}
}

// pin mounts a directory over itself, because a mount cannot be moved or removed.
func (b *builder) pin(dir string) {
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		b.add(plan.Mount{Path: dir, Kind: plan.Write, Missing: true})
	}
}

// hold makes a path read-only. The target of a link must be held separately.
func (b *builder) hold(path string) {
	info, err := os.Lstat(path)
	switch {
	case err != nil || b.mounts[path].Kind == plan.Hide:
	case info.Mode()&os.ModeSymlink == 0:
		b.add(plan.Mount{Path: path, Kind: plan.Show, Missing: true})
	default:
		if to, err := os.Readlink(path); err == nil {
			b.add(plan.Mount{Path: path, Kind: plan.Link, From: to})
		}
	}
}

// Prepare returns the command that runs c as the request describes; box is the path of uwf-box. The workspace is
// examined while uwf-box starts. Run.End must be called after the command has exited or failed to start.
func (r Request) Prepare(box string, c proc.Command) (proc.Command, *Run, error) {
	homes := r.homes()
	if r.holdsAny(homes) {
		return c, nil, ErrNotHere
	}
	b := &builder{mounts: map[string]plan.Mount{}}
	b.plan.Version, b.plan.Path, b.plan.Args = plan.Version, c.Path, append([]string{c.Path}, c.Args...)
	b.plan.Env, b.plan.Dir, b.plan.Temporary = gitSettings(c.Env), c.Dir, r.Temporary
	b.plan.Nest, b.plan.NoUnixSockets = r.Nest, r.NoUnixSockets
	b.plan.Keep = confine.CapabilityBits(r.Keep)
	outlet, err := b.network(r)
	if err != nil {
		return c, nil, err
	}
	run, unlock, err := r.reserve()
	if err != nil {
		return c, nil, err
	}
	run.outlet, run.planned = outlet, sync.OnceValue(func() error { return errors.Join(b.build(r, box, homes, run), unlock()) })
	c.Path, c.Args, c.Env, c.Dir = box, nil, nil, ""
	c.Init, c.Inherit = false, append(slices.Clip(c.Inherit), run.Lock())
	c.Box = namespaces(r.Workspace, r.Network)
	c.Box.Status = r.Status
	c.Box.Plan = func() ([]byte, error) {
		if err := run.planned(); err != nil {
			return nil, err
		}
		return plan.Encode(b.plan), nil
	}
	if outlet != nil {
		c.Box.Listener = outlet.serve
	}
	return c, run, nil
}

// End cleans up after a command; see [Run.End].
type End func(context.Context) (messages []string, err error)

// Hold returns the command that runs c in namespaces, and what to call after it has exited or failed to start. Where
// namespaces don't work for a reason that no command can cause, lower returns another command instead.
func (r Request) Hold(box string, c proc.Command, lower func(why error) (proc.Command, End, error)) (proc.Command, End, error) {
	held, run, err := r.Prepare(box, c)
	if errors.Is(err, ErrNotHere) {
		return lower(err)
	}
	if err != nil {
		return c, nil, err
	}
	end := run.End
	held.Box.Else = func(why *proc.BoxError) (instead proc.Command, err error) {
		if !r.lowers(box) { // an earlier command could make the next one weaker by what it leaves
			return c, fmt.Errorf("its sandbox cannot be set up: %w", why)
		}
		instead, ended, err := lower(why)
		if err == nil {
			end = func(ctx context.Context) ([]string, error) {
				_ = run.Cancel() // the next run cleans up
				return ended(ctx)
			}
		}
		return instead, err
	}
	return held, func(ctx context.Context) ([]string, error) { return end(ctx) }, nil
}

// StartAhead starts uwf-box for a program before its request is complete; see [proc.Box]. withParent is as in
// [proc.Command].
func StartAhead(box, workspace string, network protocol.Network, withParent bool) *proc.Ahead {
	return proc.StartAhead(box, *namespaces(workspace, network), withParent)
}

// namespaces returns the namespaces for a program in a workspace.
func namespaces(workspace string, network protocol.Network) *proc.Box {
	return &proc.Box{Network: !network.All(), Owner: owner(workspace), Creates: os.Geteuid() != 0 && setting(restricted) == "1"}
}

// lowers reports whether the program may run in the lower tier, because this machine has no namespaces for the request.
// What fails only for this workspace, or at the moment, doesn't count: another program may have caused it.
func (r Request) lowers(box string) bool {
	if r.holdsAny(r.homes()) {
		return true
	}
	layers := slices.DeleteFunc(slices.Clone(r.Mounts), func(m plan.Mount) bool { return m.Kind != plan.Overlay })
	err := Probe(box, layers...) // not every file system supports overlays
	return err != nil && !passing(err, setting)
}

// passing reports whether namespaces failed because of a limit that is reached at the moment.
func passing(err error, setting func(string) string) bool {
	limits := []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, proc.ErrBoxSilent}
	none := func(kind string) bool { return setting("user/max_"+kind+"_namespaces") == "0" }
	return slices.ContainsFunc(limits, func(limit error) bool { return errors.Is(err, limit) }) ||
		errors.Is(err, syscall.ENOSPC) && !slices.ContainsFunc([]string{"user", "mnt", "pid", "ipc"}, none)
}

func (r Request) holdsAny(homes []string) bool {
	return r.Workspace == "/" || slices.ContainsFunc(homes, func(home string) bool { return below(r.Workspace, home) })
}

// build examines the workspace and completes the plan.
func (b *builder) build(r Request, box string, homes []string, run *Run) error {
	run.files, run.pointed = r.pointed()
	var found endcheck.Found
	var err error
	var examining sync.WaitGroup
	examining.Go(func() { found, err = r.examine(run, nil) })
	b.state = run.dir
	for _, home := range homes {
		b.showHome(home)
	}
	for _, path := range slices.Concat(offlimits.Named(b.plan.Env), run.files, r.Finds) {
		b.find(path)
	}
	for _, path := range system() {
		if isReal(path) {
			b.add(plan.Mount{Path: path, Kind: plan.Show, Missing: true})
		}
	}
	b.above(r)
	b.places(r)
	b.warm(r, box)
	if examining.Wait(); err != nil {
		return err
	}
	b.running = run.running
	for _, m := range r.Mounts {
		if b.mounts[m.Path].Kind != plan.Write { // the user made it writable
			b.add(m)
		}
	}
	if r.ReadOnly {
		b.add(plan.Mount{Path: r.Workspace, Kind: plan.Show})
		for _, dir := range r.gitDirs() {
			run.state.Settled = append(run.state.Settled, filepath.Join(dir, "config"))
		}
	} else if err := b.git(r, found.Repositories); err != nil {
		return fmt.Errorf("protect git's files: %w", err)
	}
	b.inside(r, found, run.pointed)
	for _, path := range slices.Sorted(maps.Keys(b.mounts)) {
		b.plan.Mounts = append(b.plan.Mounts, b.mounts[path])
	}
	run.state.Configs = b.configs
	return run.save()
}

// rootOnly returns files that programs of root could still read, although their root has no privileges
// outside.
func rootOnly() []string {
	return []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh/ssh_host_ecdsa_key",
		"/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key", "/etc/ssl/private", "/etc/krb5.keytab", "/var/lib/docker", "/var/spool/cron"}
}

// homes returns the home directories to hide: from the environment, of this process's user, and, when running
// as root, of the workspace's owner.
func (r Request) homes() (homes []string) {
	ids := []int{os.Geteuid()}
	if o := owner(r.Workspace); o != nil {
		ids = append(ids, o.UID)
	}
	dirs := []string{r.Home}
	for _, id := range ids {
		// A service account's home may be a system directory.
		if u, err := user.LookupId(strconv.Itoa(id)); err == nil && !anyBelow([]string{"/bin", "/dev", "/etc", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"}, u.HomeDir) {
			dirs = append(dirs, u.HomeDir)
		}
	}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		info, missing := os.Stat(real)
		if err != nil || missing != nil || !info.IsDir() || len(real) < 2 || slices.ContainsFunc(homes, func(h string) bool { return below(h, real) || below(real, h) }) {
			continue
		}
		homes = append(homes, real)
	}
	return homes
}

// places adds the mounts outside the workspace.
func (b *builder) places(r Request) {
	for _, path := range rootOnly() {
		if os.Geteuid() == 0 && identity(path) != "" && !below(path, r.Workspace) {
			b.add(plan.Mount{Path: path, Kind: plan.Hide, Missing: true})
		}
	}
	for _, path := range slices.Concat(r.Off.Readable(), r.Readable) {
		if b.homeOf(path) == "" || !b.covered(path) || anyBelow(r.Off.Hidden(), path) {
			b.add(plan.Mount{Path: path, Kind: plan.Show, Missing: true})
		}
	}
	for _, path := range slices.Concat(r.Writable, r.Off.Writable(), []string{r.Workspace}) {
		b.write(safeopen.Resolved(path))
	}
	for _, path := range r.Off.Hidden() {
		switch {
		case path == "/run": // it belongs to the program, and uwf-box works in it
		case b.mounts[path].Kind == plan.Write, anyBelow(r.Off.Readable(), path):
		case b.homeOf(path) == "" || b.covered(path):
			b.add(plan.Mount{Path: path, Kind: plan.Hide, Missing: true})
		}
	}
}

// gitDirs returns the git directories of the workspace.
func (r Request) gitDirs() []string {
	at := filepath.Join(r.Workspace, ".git")
	if info, err := os.Lstat(at); err == nil && info.IsDir() {
		return append(slices.Clip(r.Git), at)
	}
	return r.Git
}

// git protects the files that git obeys.
func (b *builder) git(r Request, nested []string) error {
	b.hold(filepath.Join(r.Workspace, ".git"))
	for _, dir := range r.gitDirs() {
		if err := b.ownGit(dir); err != nil {
			return err
		}
	}
	b.nested(r.Workspace, nested)
	return nil
}

// outlet is the proxy of a run, outside the program's network.
type outlet struct {
	*proxy.Proxy
	stop func()
}

// network gives the program a separate network namespace, and a proxy to the allowed hosts, which may be nil.
func (b *builder) network(r Request) (*outlet, error) {
	if r.Network.All() {
		return nil, nil
	}
	b.plan.Network = true
	b.plan.Env = withoutProxies(b.plan.Env)
	if len(r.Network.Hosts()) == 0 {
		return nil, nil
	}
	allow, err := hostlist.Parse(r.Network.Hosts())
	if err != nil {
		return nil, fmt.Errorf("sandbox.network: %w", err)
	}
	b.plan.Listen = true
	b.plan.Env = append(b.plan.Env, proxies()...)
	return &outlet{proxy.New(allow, proxy.Options{}), func() {}}, nil
}

// serve accepts connections from the program's network until stop.
func (o *outlet) serve(f *os.File) {
	l, err := net.FileListener(f)
	_ = f.Close() // l has a duplicate descriptor
	if err != nil {
		return // connections from the program fail
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Serve(ctx, l) // connections from the program fail
	}()
	o.stop = func() { cancel(); <-done }
}

// proxyVariables returns the environment variables for proxies, in lower case.
func proxyVariables() []string { return []string{"http_proxy", "https_proxy", "all_proxy"} }

// proxies returns environment variables that point programs to the proxy.
func proxies() []string {
	env := []string{"NODE_USE_ENV_PROXY=1"}
	for _, name := range proxyVariables() {
		value := fmt.Sprintf("=http://127.0.0.1:%d", plan.ListenPort)
		env = append(env, name+value, strings.ToUpper(name)+value)
	}
	return env
}

// withoutProxies removes the user's proxies, which are unreachable from the sandbox.
func withoutProxies(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToLower(kv), "=")
		return name == "no_proxy" || name == "node_use_env_proxy" || slices.Contains(proxyVariables(), name)
	})
}

// Refused returns the hosts that the program was denied.
func (run *Run) Refused() []proxy.Refusal {
	if run.outlet == nil {
		return nil
	}
	return run.outlet.Refused()
}

// unreached describes the refused hosts, as a phrase that follows the program's name.
func unreached(refused []proxy.Refusal) string {
	const most = 10 // listed in one line
	var names []string
	others := 0
	for _, r := range refused {
		if r.Host == "" || len(names) == most {
			others += r.Count
			continue
		}
		names = append(names, net.JoinHostPort(r.Host, fmt.Sprint(r.Port)))
	}
	switch {
	case len(names) == 0:
		return ""
	case others > 0:
		names = append(names, fmt.Sprintf("others (%d times)", others))
	}
	return "could not reach " + strings.Join(names, ", ") + ": sandbox.network in config.yaml"
}

// Diagnosis explains why namespaces don't work on this machine. The zero value means that they do.
type Diagnosis struct {
	Why string
	Do  string // command that fixes it, or ""
}

// Works reports whether namespaces work.
func (d Diagnosis) Works() bool { return d.Why == "" }

// Diagnose tests the uwf-box that belongs to the program exe.
func Diagnose(exe string) Diagnosis {
	path := Find(exe)
	switch {
	case runtime.GOOS != "linux":
		return Diagnosis{Why: "only Linux has namespaces"}
	case path == "":
		return Diagnosis{Program + " is not installed", Install}
	}
	if err := Probe(path); err != nil {
		return explain(path, err, setting)
	}
	return Diagnosis{}
}

// Kernel settings that control namespaces, below /proc/sys.
const (
	restricted  = "kernel/apparmor_restrict_unprivileged_userns"
	debianClone = "kernel/unprivileged_userns_clone"
	most        = "user/max_user_namespaces"
)

// setting returns the value of a kernel setting, or "" if it does not exist.
func setting(name string) string {
	text, _ := os.ReadFile(filepath.Join("/proc/sys", filepath.FromSlash(name)))
	return strings.TrimSpace(string(text))
}

// loadProfile is a command that writes and loads the AppArmor profile. See packaging/apparmor/uwf-box for a
// commented version.
const loadProfile = `printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile uwf-box /usr/bin/uwf-box flags=(unconfined) {\n  userns,\n` +
	`  include if exists <local/uwf-box>\n}\n' | sudo tee /etc/apparmor.d/uwf-box >/dev/null && sudo apparmor_parser --replace /etc/apparmor.d/uwf-box`

// explain returns the reason why the uwf-box at a path failed to start.
func explain(path string, err error, setting func(string) string) Diagnosis {
	stage := ""
	if b := (*proc.BoxError)(nil); errors.As(err, &b) {
		stage = b.Stage
	}
	text := plaintext.Line(err.Error())
	switch {
	case stage == "version" || stage == "plan":
		return Diagnosis{path + " is not from the same release as uwf", Install}
	case setting(most) == "0":
		return Diagnosis{"user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000"}
	case setting(debianClone) == "0":
		return Diagnosis{"kernel.unprivileged_userns_clone is 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"}
	case setting(restricted) == "1" && path != Profile:
		install := "sudo install -m 755 " + plaintext.Word(path) + " " + Profile + " && "
		return Diagnosis{"AppArmor allows them only to " + Profile + " with its profile (" + text + ")", install + loadProfile}
	case setting(restricted) == "1":
		return Diagnosis{"AppArmor has no profile for " + Profile + " (" + text + ")", loadProfile}
	case stage == "namespaces" && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS)):
		return Diagnosis{"a container or the kernel refuses them (" + text + ")", `see "Enable namespaces" in docs/security.md`}
	}
	return Diagnosis{text, `see "Enable namespaces" in docs/security.md`}
}
