//go:build instruments

package attacks

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tierVariable selects the sandbox: "landlock" (the default) or "box", which needs uwf-box next to uwf.
const tierVariable = "UWF_ATTACKS_TIER"

const nobody = 65534

func tier(t *testing.T) string {
	t.Helper()
	switch name := os.Getenv(tierVariable); name {
	case "", "landlock":
		version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		if errno != 0 || version < 6 {
			t.Skipf("the kernel has Landlock %d; what is promised here is from 6 on", version)
		}
		return "landlock"
	case "box":
		return name
	default:
		t.Fatalf("%s is landlock or box, not %s", tierVariable, name)
		return ""
	}
}

var under = flag.String("bin", "", "directory with uwf, uwf-builtin and, for its tier, uwf-box; default: they are built")

// built is the directory of the programs, which is readable for everybody: a user's home may be closed.
type built struct{ base, bin string }

// programs builds uwf, uwf-builtin, the attacker and, for its tier, uwf-box.
var programs = sync.OnceValues(func() (built, error) {
	parent := os.TempDir()
	if os.Getuid() == 0 { // the box has a private /tmp, but changes outside must be visible
		parent = "/var/lib"
	} else if cache, err := os.UserCacheDir(); err == nil && os.MkdirAll(cache, 0o755) == nil {
		parent = cache
	}
	base, err := os.MkdirTemp(parent, "uwf-attacks-")
	if err != nil {
		return built{}, err
	}
	b := built{base, filepath.Join(base, "bin")}
	packages := []string{"./attacker"}
	if *under != "" {
		if err := os.CopyFS(b.bin, os.DirFS(*under)); err != nil {
			return b, err
		}
	} else if packages = append(packages, "../../cmd/uwf", "../../cmd/uwf-builtin"); os.Getenv(tierVariable) == "box" {
		packages = append(packages, "../../cmd/uwf-box")
	}
	cmd := exec.Command("go", append([]string{"build", "-o", b.bin + "/"}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return b, fmt.Errorf("%w: %s", err, out)
	}
	return b, errors.Join(os.Chmod(base, 0o755), b.template())
})

func TestMain(m *testing.M) {
	status := m.Run()
	if b, err := programs(); err == nil || b.base != "" {
		_ = exec.Command("chmod", "-R", "u+rwx", b.base).Run()
		_ = os.RemoveAll(b.base)
	}
	os.Exit(status)
}

// template creates the world that all others are copies of.
func (b built) template() error {
	if err := os.MkdirAll(b.base+"/template", 0o755); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-ec", templateScript)
	cmd.Dir = b.base + "/template"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir + "/home", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("template: %w: %s", err, out)
	}
	for _, name := range secretFiles {
		path := filepath.Join(cmd.Dir, "home", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte("_authToken=canary-"+filepath.Base(name)+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

//go:embed testdata/home.sh
var templateScript string

// Secrets that nothing confined may read; each file contains its own name as a canary.
var secretFiles = []string{
	".ssh/id_ed25519", ".netrc", ".aws/credentials", ".config/gh/hosts.yml", ".gnupg/private-keys-v1.d/k.key", ".docker/config.json",
	".kube/config", ".git-credentials", ".bash_history", ".claude/.credentials.json", ".codex/auth.json", ".config/gcloud/credentials.db",
	".npmrc", ".pypirc", ".uwf/.env", ".uwf/sessions/s", ".mozilla/firefox/p/logins.json",
	// 23 files that an early version missed:
	".config/argocd/config", ".config/helm/registry/config.json", ".config/filezilla/sitemanager.xml", ".local/share/remmina/x.remmina",
	".wireguard/wg0.conf", ".minikube/profiles/minikube/client.key", ".jfrog/jfrog-cli.conf", ".electrum/wallets/default_wallet",
	".minisign/minisign.key", ".chef/user.pem", ".appstoreconnect/private_keys/k.p8", ".fastlane/session", ".android/adbkey", ".lftp/bookmarks",
	".config/lftp/rc", ".putty/sshhostkeys", ".config/rbw/config.json", ".lastpass/x", ".local/share/lpass/x", ".config/databricks/token",
	".config/tailscale/x", ".lesshst", ".viminfo", ".new-tool-of-tomorrow/token",
}

// user is a user who runs uwf. The tests check the result as root or as the same user.
type user struct {
	name string
	uid  int // -1 for the current user
}

// users returns root and an ordinary user if the test runs as root, and otherwise only the current user.
func users() []user {
	if os.Getuid() == 0 {
		return []user{{"root", -1}, {"user", nobody}}
	}
	return []user{{"user", -1}}
}

// world is the home of one user, with repositories, and a simulated machine around it.
type world struct {
	built
	dir, home, repo string
	user            user
	host            map[string]string
}

func (u user) as(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if u.uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}
	}
}

func newWorld(t *testing.T, u user) *world {
	t.Helper()
	b, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(b.base, "w")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{built: b, dir: dir, home: dir + "/home", repo: dir + "/home/src/repo", user: u}
	t.Cleanup(func() {
		w.killLeft(t)
		_ = exec.Command("chmod", "-R", "u+rwx", dir).Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Log(err)
		}
	})
	owner := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	if u.uid >= 0 {
		owner = fmt.Sprintf("%d:%d", u.uid, u.uid)
	}
	setUp := `chmod 755 .; cp -a "$BASE/template/." .; mkdir -p outside fired run/tmp home/src/repo/got home/src/repo/tools
		printf '#!/bin/sh\necho x > "%s/fired/$1"\n' "$PWD" > fire; chmod 755 fire
		ln "$BASE/bin/attacker" home/src/repo/tools/attacker 2>/dev/null || cp "$BASE/bin/attacker" home/src/repo/tools/attacker
		echo "gitdir: $PWD/home/src/repo/.git/worktrees/linked" > home/src/linked/.git
		echo "$PWD/home/src/linked/.git" > home/src/repo/.git/worktrees/linked/gitdir
		echo canary-descriptor > run/held; chmod 600 run/held
		if [ "$(id -u)" = 0 ]; then chown -R ` + owner + ` .; fi`
	if out, err := w.command(t.Context(), user{uid: -1}, dir, setUp).CombinedOutput(); err != nil {
		t.Fatalf("set up: %v: %s", err, out)
	}
	w.startHost(t)
	return w
}

// command runs a script with sh, with the environment of an interactive shell.
func (w *world) command(ctx context.Context, as user, dir, script string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = dir, append(w.environ(), env...)
	as.as(cmd)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (w *world) environ() []string {
	return []string{
		"PATH=" + w.bin + ":" + os.Getenv("PATH"), "HOME=" + w.home, "BASE=" + w.base, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_EDITOR=true", "LC_ALL=C", "USER=u", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GOCACHE=" + os.Getenv("GOCACHE"), "TMPDIR=" + w.dir + "/run/tmp",
	}
}

// outside runs a user's command and returns its output. It may fail.
func (w *world) outside(t *testing.T, script string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, err := w.command(ctx, w.user, w.repo, script).CombinedOutput()
	if ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("what the user typed hangs: %s", out)
	}
	return string(out)
}

// startHost starts the unrelated program.
func (w *world) startHost(t *testing.T) {
	t.Helper()
	cmd := exec.Command(w.bin+"/attacker", "host", w.dir+"/run")
	cmd.Env = append(w.environ(), "CANARY=canary-environment")
	cmd.Dir = w.dir
	w.user.as(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 1000)
	n, err := stdout.Read(line)
	if err != nil {
		t.Fatalf("the host's program: %v: %s", err, &stderr)
	}
	w.host = map[string]string{}
	for _, word := range strings.Fields(string(line[:n])) {
		name, value, _ := strings.Cut(word, "=")
		w.host[name] = value
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("a command ended the host's program: %v: %s", err, &stderr)
		}
	})
}
