package gitconfig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func environ(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
}

func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, environ(dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// boxed is a repository r, and in beside it one with the same config behind a link, as in a box.
type boxed struct {
	dir    string
	m      Merging
	config string
}

func newBoxed(t *testing.T) boxed {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	shell(t, dir, `cp -a "`+template(t)+`/." .`)
	base, err := os.ReadFile(filepath.Join(dir, "copy"))
	require.NoError(t, err)
	root, err := os.OpenRoot(filepath.Join(dir, "r/.git"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return boxed{dir, Merging{
		Root: root, Name: "config", Copy: filepath.Join(dir, "copy"), Base: base, Dir: filepath.Join(dir, "r"), Environ: environ(dir),
	}, filepath.Join(dir, "r/.git/config")}
}

// made is the repository of all tests, which is made once.
var made struct {
	sync.Once
	dir string
}

func template(t *testing.T) string {
	t.Helper()
	made.Do(func() {
		dir, err := os.MkdirTemp("", "uwf-gitconfig-")
		require.NoError(t, err)
		made.dir = dir
		shell(t, dir, `git init -q -b main r; cd r; git commit -q --allow-empty -m one; git branch topic
		git remote add origin https://example.org/o.git; git config branch.main.remote origin; git config branch.main.merge refs/heads/main
		git config branch.topic.remote origin; git config branch.topic.merge refs/heads/topic; git config core.pager less; git config branch.topic.mergeOptions --no-ff
		chmod 640 .git/config; cd ..; cp -r r in; mv in/.git/config copy; ln -s ../../copy in/.git/config`)
	})
	return made.dir
}

func (b boxed) settings(t *testing.T) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(shell(t, b.dir, "git config -f r/.git/config --list")), "\n")
	slices.Sort(lines)
	return lines
}

// merge runs a script in the box and returns the added and removed settings.
func (b boxed) merge(t *testing.T, script string) (added, removed, told []string) {
	t.Helper()
	before := b.settings(t)
	shell(t, filepath.Join(b.dir, "in"), script)
	told, err := Merge(t.Context(), b.m)
	require.NoError(t, err)
	after := b.settings(t)
	lacks := func(all []string) func(string) bool { return func(s string) bool { return !slices.Contains(all, s) } }
	for _, line := range after {
		if lacks(before)(line) {
			added = append(added, line)
		}
	}
	for _, line := range before {
		if lacks(after)(line) {
			removed = append(removed, line)
		}
	}
	require.NoFileExists(t, b.config+".lock")
	return added, removed, told
}

func TestMerged(t *testing.T) {
	t.Parallel()
	const fetch = "remote.up.fetch=+refs/heads/*:refs/remotes/up/*"
	for _, c := range []struct {
		name, script   string
		added, removed []string
	}{
		{"nothing", "true", nil, nil},
		{"the same settings otherwise written", "git config branch.main.remote x; git config branch.main.remote origin; echo >> .git/config", nil, nil},
		{"a remote", "git remote add up https://example.org/up.git", []string{fetch, "remote.up.url=https://example.org/up.git"}, nil},
		{"a remote by ssh", "git remote add up git@example.org:a/up.git", []string{fetch, "remote.up.url=git@example.org:a/up.git"}, nil},
		{"secret remote", "git remote add up https://me:secret@example.org/up.git", []string{fetch, "remote.up.url=https://me:secret@example.org/up.git"}, nil},
		{"another URL", "git remote set-url origin https://evil.example/x", []string{"remote.origin.url=https://evil.example/x"}, []string{"remote.origin.url=https://example.org/o.git"}},
		{"a push URL", "git remote set-url --push origin git://evil.example/x", []string{"remote.origin.pushurl=git://evil.example/x"}, nil},
		{"two push URLs", "git config --add remote.origin.pushurl https://a.example/x; git config --add remote.origin.pushurl https://b.example/x",
			[]string{"remote.origin.pushurl=https://a.example/x", "remote.origin.pushurl=https://b.example/x"}, nil},
		{"a renamed remote", "git remote rename origin up 2>/dev/null",
			[]string{"branch.main.remote=up", "branch.topic.remote=up", fetch, "remote.up.url=https://example.org/o.git"},
			[]string{"branch.main.remote=origin", "branch.topic.remote=origin", "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*", "remote.origin.url=https://example.org/o.git"}},
		{"a removed remote", "git remote remove origin", nil,
			[]string{"branch.main.merge=refs/heads/main", "branch.main.remote=origin", "branch.topic.merge=refs/heads/topic", "branch.topic.remote=origin",
				"remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*", "remote.origin.url=https://example.org/o.git"}},
		{"a removed branch", "git branch -q -D topic", nil, []string{"branch.topic.merge=refs/heads/topic", "branch.topic.mergeoptions=--no-ff", "branch.topic.remote=origin"}},
		{"a renamed branch", "git branch -m topic other", []string{"branch.other.merge=refs/heads/topic", "branch.other.remote=origin"},
			[]string{"branch.topic.merge=refs/heads/topic", "branch.topic.mergeoptions=--no-ff", "branch.topic.remote=origin"}},
		{"tracking", "git branch -q --track new topic; git config branch.new.rebase true; git config branch.new.description -what",
			[]string{"branch.new.description=-what", "branch.new.merge=refs/heads/topic", "branch.new.rebase=true", "branch.new.remote=."}, nil},
		{"a branch of an address", "git config branch.main.remote https://evil.example/x", []string{"branch.main.remote=https://evil.example/x"}, []string{"branch.main.remote=origin"}},
		{"a name", "git config user.name x; git config user.email x@example.org", []string{"user.email=x@example.org", "user.name=x"}, nil},
		{"a submodule beside", "git config submodule.sub.url ../lib", []string{"submodule.sub.url=../lib"}, nil},
		{"a submodule", "git -c protocol.file.allow=always submodule --quiet add \"$PWD/../r\" sub; git config submodule.sub.url ssh://git@example.org/s", []string{"submodule.sub.active=true", "submodule.sub.url=ssh://git@example.org/s"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBoxed(t)
			added, removed, told := b.merge(t, c.script)
			require.Equal(t, c.added, added)
			require.Equal(t, c.removed, removed)
			prosetest.Text(t, strings.Join(told, "\n"))
			info, err := os.Stat(b.config)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
			require.Contains(t, b.settings(t), "core.pager=less")
		})
	}
}

func TestNotMerged(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a program":                 `git config core.fsmonitor "touch x"`,
		"an alias":                  `printf '[alias]\n x = !id\n' >> .git/config`,
		"an include":                `printf '[include]\n path = ../evil\n' >> .git/config`,
		"one line":                  `printf '[core] fsmonitor = id\n' >> ../copy`,
		"a program as a remote":     `git remote add x 'ext::sh -c id'`,
		"ext scheme":                `git remote add x ext://sh`,
		"an option as a URL":        `git config remote.x.url --upload-pack=id`,
		"an option as a host":       `git config remote.x.url ssh://-oProxyCommand=id/x`,
		"an encoded option":         `git config remote.x.url ssh://%2doProxyCommand=id/x`,
		"an option as a scp host":   `git config remote.x.url -- '-oProxyCommand=id:x' || git config --add -- remote.x.url '-oProxyCommand=id:x'`,
		"an option behind a user":   `git config remote.x.url 'a@-oProxyCommand=id:x'`,
		"an option as a path":       `git config remote.x.url 'example.org:-x'`,
		"host file":                 `git config remote.x.url file://tmp/x`,
		"http":                      `git config remote.x.url http://example.org/x`,
		"a scheme in upper case":    `git config remote.x.url HTTPS://example.org/x`,
		"workspace":                 `git config remote.x.url .`,
		"a local path":              `git config remote.x.url /elsewhere/lib.git`,
		"address name":              `git config remote.https://example.org/o.git.url https://evil.example/x`,
		"path name":                 `git config remote.../elsewhere/lib.git.url https://evil.example/x`,
		"option name":               `git config remote.--exec=id.url https://evil.example/x`,
		"fetched over branches":     `git config remote.origin.fetch '+refs/heads/*:refs/heads/*'`,
		"fetched over replacements": `git config remote.origin.fetch '+refs/heads/*:refs/replace/*'`,
		"no refspec":                `git config remote.origin.fetch -- --upload-pack=id || git config --add remote.origin.fetch ' --upload-pack=id'`,
		"a remote without a URL":    `git config remote.x.fetch '+refs/heads/*:refs/remotes/x/*'`,
		"a push URL without a URL":  `git config remote.x.pushurl https://evil.example/x`,
		"directory branch":          `git config branch.main.remote evil`,
		"a branch of a program":     `git config branch.main.remote 'ext::sh -c id'`,
		"a branch of a lost remote": `git config --remove-section remote.origin`,
		"a lost URL":                `git config --unset remote.origin.url`,
		"a branch's push remote":    `git config branch.main.pushRemote evil`,
		"no ref":                    `git config branch.main.merge --x`,
		"a line feed":               `git config branch.main.description "$(printf 'a\nb')"`,
		"an escape":                 `git config user.name "$(printf 'a\033[2Jb')"`,
		"updating program":          `git config submodule.x.update '!id'`,
		"a receiving program":       `git config remote.origin.receivepack id; git config remote.origin.uploadpack id; git config remote.origin.vcs ext`,
		"a promisor":                `git config remote.origin.promisor true; git config extensions.partialClone origin`,
		"another address for all":   `git config url.https://evil.example/.insteadOf https://`,
		"a removed pager":           `git config --unset core.pager`,
		"valueless setting":         `printf '[remote "origin"]\n url\n' >> ../copy`,
		"no config":                 `rm ../copy`,
		"a link":                    `cp ../copy ../evil; git config -f ../evil user.name x; ln -sf evil ../copy`,
		"a pipe":                    `rm ../copy; mkfifo ../copy`,
		"a directory":               `rm ../copy; mkdir ../copy`,
		"a large one":               `head -c 3000000 /dev/zero > ../copy`,
		"one that git refuses":      `echo '[a "' >> ../copy`,
		"a flood":                   `seq 600 | sed 's/.*/[branch "b&"]\nremote=./' >> ../copy`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBoxed(t)
			before, err := os.ReadFile(b.config)
			require.NoError(t, err)
			_, _, told := b.merge(t, script)
			after, err := os.ReadFile(b.config)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after))
			require.NotEmpty(t, told)
			prosetest.Text(t, strings.Join(told, "\n"), name)
		})
	}
}

// Concurrent changes by others are kept.
func TestChangesOfOthersStay(t *testing.T) {
	t.Parallel()
	b := newBoxed(t)
	shell(t, b.dir, `cd r; git remote add mine https://example.org/mine; git remote set-url origin https://example.org/moved; git config user.name me`)
	added, removed, told := b.merge(t, `git remote set-url origin https://evil.example/x; git remote add up https://example.org/up; git config user.name me; git config core.pager evil`)
	require.Equal(t, []string{"remote.up.fetch=+refs/heads/*:refs/remotes/up/*", "remote.up.url=https://example.org/up"}, added)
	require.Empty(t, removed)
	require.Contains(t, b.settings(t), "remote.origin.url=https://example.org/moved")
	require.Contains(t, told[len(told)-1], "core.pager, remote.origin.url")
	require.Len(t, told, 3)
}

func TestManyNamesAreCut(t *testing.T) {
	t.Parallel()
	b := newBoxed(t)
	_, _, told := b.merge(t, `seq 30 | sed 's/.*/[x "&"]\ny=z\n[remote "r&"]\nurl=https:\/\/example.org\/&/' >> ../copy`)
	require.Len(t, told, maxNames+2)
	prosetest.Text(t, told)
}

// A merge without changes starts no process and waits for no lock.
func TestEqualBytesCostNothing(t *testing.T) {
	t.Parallel()
	b := newBoxed(t)
	b.m.Environ = nil // git would not be found
	require.NoError(t, os.WriteFile(b.config+".lock", nil, 0o600))
	told, err := Merge(t.Context(), b.m)
	require.NoError(t, err)
	require.Empty(t, told)
}

// A held or abandoned lock is waited for and then causes an error; nothing is written.
func TestALockedConfigIsAnError(t *testing.T) {
	t.Parallel()
	b := newBoxed(t)
	before := b.settings(t)
	shell(t, b.dir, "cd in; git remote add up https://example.org/up; touch ../r/.git/config.lock")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Merge(ctx, b.m)
	require.Error(t, err)
	require.Equal(t, before, b.settings(t))
	shell(t, b.dir, "touch -d '1 hour ago' r/.git/config.lock")
	_, err = Merge(t.Context(), b.m)
	require.Error(t, err)
	require.FileExists(t, b.config+".lock", "it is not ours")
	require.NoError(t, os.Remove(b.config+".lock"))
	_, err = Merge(t.Context(), b.m)
	require.NoError(t, err)
	require.Contains(t, b.settings(t), "remote.up.url=https://example.org/up")
}

// Steps that end at the same time in one repository keep each other's changes.
func TestMergesOfSeveralSteps(t *testing.T) {
	t.Parallel()
	b := newBoxed(t)
	errs := make(chan error)
	for _, name := range []string{"a", "b", "c", "d"} {
		m := b.m
		m.Copy = filepath.Join(b.dir, "copy-"+name)
		shell(t, b.dir, "cp copy "+m.Copy+"; git config -f "+m.Copy+" remote."+name+".url https://example.org/"+name)
		go func() {
			_, err := Merge(t.Context(), m)
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		require.Contains(t, b.settings(t), "remote."+name+".url=https://example.org/"+name)
	}
}

// A config that cannot be read is renamed, so that its settings are not lost.
func TestRestoreKeepsAnUnreadableConfig(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"yes '[user]' | head -200000 > config", "rm config; mkdir config; touch config/mine", "rm config; ln -s . config",
	} {
		b := newBoxed(t)
		shell(t, filepath.Dir(b.config), script)
		messages, err := b.m.Restore(t.Context(), 0o600)
		require.NoError(t, err)
		require.Equal(t, []string{unreadable}, messages)
		text, err := os.ReadFile(b.config)
		require.NoError(t, err)
		require.Equal(t, string(b.m.Base), string(text))
		_, err = os.Lstat(b.config + ".uwf-new")
		require.NoError(t, err, script)
	}
}
