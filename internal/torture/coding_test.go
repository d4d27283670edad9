//go:build unix && instruments

package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// coding is a user's repository in which threads work, with a record of the expected state: the files after
// each step and in each work tree, and the user's own files.
type coding struct {
	*world
	*testing.T
	random  *rand.Rand
	calm    bool // no step ends a thread
	layout  layout
	top     string           // of the user's work tree
	git     string           // the git directory shared by all of its work trees
	disk    map[string]state // expected files of each work tree, by its top
	hidden  state            // files tracked by git but not checked out
	steps   map[string]step
	threads []*coder
	edits   map[string][]edit // edits by an agent, by number
	status  map[string]string // the status that it returns then
	dropped map[string]bool   // undone steps
	user    map[string]string // git's own files, as the user left them
}

// step is a step and the files before and after it.
type step struct {
	before, after state
	done          bool // the thread has ended with it
}

// coder is a thread.
type coder struct {
	id     string
	top    string // of its work tree
	own    bool   // the work tree belongs to this thread alone
	chain  []string
	undone []string
	ended  bool
	// applied means that the result was on a branch that no longer exists.
	applied bool
}

func (c *coder) head() string {
	if len(c.chain) == 0 {
		return ""
	}
	return c.chain[len(c.chain)-1]
}

// state maps paths to git's modes and hashes of files.
type state map[string]string

type file struct{ mode, text string }

// layout is a repository that a script creates in a new directory.
type layout struct {
	name, script string
	at           string // where uwf is started, below the top
	top          string // of the work tree; default "repo"
	ends         bool   // git converts line endings
	sha256       bool
	unborn       bool // there is no commit
}

// layouts returns typical repositories.
func layouts() []layout {
	return []layout{
		{name: "plain"},
		{name: "packed", script: "git gc -q"},
		{name: "a directory", script: "mkdir -p d/w; echo w > d/w/w; git add .; git commit -qm w", at: "d/w"},
		{name: "a worktree", script: "git worktree add -q ../tree -b tree", top: "tree"},
		{name: "a bare one", script: "git clone -q --bare . ../bare.git; git -C ../bare.git worktree add -q ../tree", top: "tree"},
		{name: "sha256", script: "rm -rf .git; git init -q --object-format=sha256; git add .; git commit -qm x", sha256: true},
		{name: "a submodule", script: "git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub; echo in > sub/in"},
		{name: "in a submodule", script: "git init -q ../super; git -C ../super -c protocol.file.allow=always submodule --quiet add ../repo sub; git -C ../super commit -qm sub", top: "super/sub"},
		{name: "sparse", script: "mkdir away; echo away > away/f; git add .; git commit -qm away; git sparse-checkout set d ü"},
		{name: "line ends", script: "git config core.autocrlf true", ends: true},
		{name: "attributes", script: "echo '* text=auto eol=crlf' > .gitattributes; git add .; git commit -qm attributes", ends: true},
		{name: "ignored case", script: "git config core.ignorecase true"},
		{name: "nested", script: "git init -q nested; git -C nested commit -q --allow-empty -m x; echo in > nested/in"},
		{name: "empty directories", script: "mkdir -p empty/er d/empty"},
		{name: "a lock", script: "touch .git/index.lock"},
		{name: "detached", script: "git checkout -q --detach; git commit -q --allow-empty -m x"},
		{name: "unborn", script: "rm -rf .git; git init -q", unborn: true},
		{name: "shallow", script: "git commit -q --allow-empty -m x; git clone -q --depth 1 file://$PWD ../clone", top: "clone"},
		{name: "borrows", script: "git clone -q --shared . ../clone", top: "clone"},
		{name: "a split index", script: "git update-index --split-index"},
		{name: "a separate one", script: "git init -q --separate-git-dir ../sep"},
		{name: "staged", script: "echo staged > a; git add a; echo unstaged > a; git rm -q --cached d/b"},
		{name: "a merge", script: "git checkout -qb o; echo o > a; git commit -qam o; git checkout -q -; echo m > a; git commit -qam m; git merge -q o || true"},
		{name: "a rebase", script: "git checkout -qb o; echo o > a; git commit -qam o; git checkout -q -; echo m > a; git commit -qam m; git rebase -q o || true"},
		{name: "partial", script: "git config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD ../clone", top: "clone"},
		{name: "assume unchanged", script: "git update-index --assume-unchanged a; git update-index --skip-worktree d/b"},
	}
}

// task makes threads continue until the agent reports that it is done.
const task = `name: code
description: Changes files.
roles:
  worker: { description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: { type: object, properties: { $status: { enum: [again, done] } }, required: [$status] } }
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker: { again: { role: worker, prompt: more }, done: { role: $END, prompt: "Done." } }
`

// coderScript is an agent: it makes its edits, submits its step, and records it in the ledger.
const coderScript = `set -e
trap '' PIPE
edits=$1
. "$edits/run"
out=$(printf -- '---\n$status: %s\n---\nDone.\n' "$(cat "$edits/status")" | "$UWF_BIN" step put --output -)
printf '%s\n' "$out"
step=${out##*\"stepHash\":\"}
printf '%s %s %s %s\n' "$UWF_THREAD" "$UWF_HEAD" "${step%%\"*}" "${edits##*/}" >> "$TORTURE_LEDGER"
`

// newCoding creates a repository and a thread that works in it.
func newCoding(t *testing.T, tools tools, l layout, random *rand.Rand) *coding {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w, err := newWorld(dir, tools)
	require.NoError(t, err)
	c := &coding{world: w, T: t, random: random, layout: l, disk: map[string]state{}, hidden: state{}, steps: map[string]step{}, edits: map[string][]edit{}, status: map[string]string{}, dropped: map[string]bool{}}
	c.env = append(c.env, "HOME="+dir, "GIT_CONFIG_GLOBAL="+c.path("gitconfig"), "GIT_CONFIG_NOSYSTEM=1")
	for name, text := range map[string]string{
		"gitconfig": "[user]\n\tname = u\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n", "code.yaml": task, "agent.sh": coderScript,
		"repo/a": "one\n", "repo/d/b": "two\n", "repo/ü/naïve.txt": "three\n", "repo/.gitignore": "ignored*\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(c.path(name)), 0o755))
		require.NoError(t, os.WriteFile(c.path(name), []byte(text), 0o644))
	}
	c.top = c.path("repo")
	c.sh("git init -q; git add .; git commit -qm first; echo x > e; git add e; git commit -qm second; git branch old HEAD~1")
	c.sh(l.script)
	if l.top != "" {
		c.top = c.path(l.top)
	}
	c.cwd = filepath.Join(c.top, l.at)
	c.sh("echo key > ignored")
	c.git = strings.TrimSpace(c.sh("git rev-parse --path-format=absolute --git-common-dir"))
	c.disk[c.top] = c.read(c.top)
	if strings.TrimSpace(c.sh("git config core.sparseCheckout || true")) == "true" {
		for path, f := range c.tree(c.git, "HEAD") {
			if _, there := c.disk[c.top][path]; !there {
				c.hidden[path] = f
			}
		}
	}
	c.add(c.started("in-place"), c.top, nil)
	c.user = c.gitFiles()
	return c
}

// sh runs a script as the user.
func (c *coding) sh(script string) string {
	c.Helper()
	out, err := c.try(script)
	require.NoError(c, err, "%s: %s: %s", c.layout.name, script, out)
	return out
}

func (c *coding) try(script string) (string, error) {
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = c.top, c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs a uwf command that has to succeed.
func (c *coding) does(into any, args ...string) {
	c.Helper()
	require.NoError(c, c.must(c.Context(), into, args...), c.layout.name)
}

func (c *coding) started(mode string) string {
	c.Helper()
	var out struct{ Thread string }
	c.does(&out, "thread", "start", c.path("code.yaml"), "-p", "x", "--workspace", mode)
	return out.Thread
}

func (c *coding) add(id, top string, chain []string) *coder {
	th := &coder{id: id, top: top, chain: append([]string{}, chain...), own: top != c.top}
	c.threads = append(c.threads, th)
	return th
}

// read reads all files of a work tree that git does not ignore, except those of nested repositories.
func (c *coding) read(top string) state {
	c.Helper()
	s := state{}
	require.NoError(c, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		_, within := os.Lstat(filepath.Join(path, ".git"))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || rel != "." && within == nil):
			return fs.SkipDir
		case d.IsDir(), d.Name() == ".git", strings.HasPrefix(d.Name(), "ignored"):
			return nil
		}
		f, err := fileAt(path)
		s[filepath.ToSlash(rel)] = c.hashed(f)
		return err
	}))
	return s
}

func fileAt(path string) (file, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return file{}, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		return file{"120000", to}, err
	}
	text, err := os.ReadFile(path)
	if info.Mode()&0o100 != 0 {
		return file{"100755", string(text)}, err
	}
	return file{"100644", string(text)}, err
}

// hashed returns a file's hash in git.
func (c *coding) hashed(f file) string {
	if c.layout.ends && f.mode != "120000" && !strings.Contains(f.text, "\x00") {
		f.text = strings.ReplaceAll(f.text, "\r\n", "\n")
	}
	var h hash.Hash = sha1.New()
	if c.layout.sha256 {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00%s", len(f.text), f.text)
	return f.mode + " " + hex.EncodeToString(h.Sum(nil))
}

// tree reads a tree in a git directory, without submodules.
func (c *coding) tree(git, name string) state {
	c.Helper()
	cmd := exec.Command("git", "--git-dir", git, "ls-tree", "-r", "-z", "--full-tree", name)
	cmd.Env = append(c.env, "GIT_NO_LAZY_FETCH=1")
	out, err := cmd.Output()
	require.NoError(c, err, "%s: ls-tree %s", c.layout.name, name)
	s := state{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, path, _ := strings.Cut(entry, "\t")
		if words := strings.Fields(meta); len(words) == 3 && words[0] != "160000" {
			s[path] = words[0] + " " + words[2]
		}
	}
	return s
}

// store returns uwf's git directory.
func (c *coding) store() string {
	c.Helper()
	found, err := filepath.Glob(filepath.Join(c.home, "git", "*"))
	require.NoError(c, err)
	require.Len(c, found, 1)
	return found[0]
}

// kept returns the stored states of a step.
func (c *coding) kept(hash string) (after, before state) {
	c.Helper()
	var shown struct{ Files struct{ Tree, Before string } }
	c.does(&shown, "step", "show", hash, "--format", "json")
	require.NotEmpty(c, shown.Files.Tree, "%s: step %s has no files", c.layout.name, hash)
	_, sum, _ := strings.Cut(shown.Files.Tree, ":")
	after = c.tree(c.store(), sum)
	if _, sum, ok := strings.Cut(shown.Files.Before, ":"); ok {
		before = c.tree(c.store(), sum)
	}
	return after, before
}

// gitFiles returns the files in the user's git directory, except those of threads' worktrees.
func (c *coding) gitFiles() map[string]string {
	c.Helper()
	found := map[string]string{}
	require.NoError(c, filepath.WalkDir(c.git, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.git, path)
		if err != nil || d.IsDir() {
			if strings.HasSuffix(rel, "heads/uwf") || filepath.Base(filepath.Dir(rel)) == "worktrees" && len(d.Name()) == len(c.threads[0].id) {
				return fs.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(path)
		if rel == "packed-refs" {
			text = slices.Concat(slices.DeleteFunc(slices.Collect(bytes.Lines(text)), func(line []byte) bool { return bytes.Contains(line, []byte("refs/heads/uwf/")) })...)
		}
		found[rel] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	}))
	return found
}

// edit is a change to a file: a mode and a text, or a removal.
type edit struct {
	path string
	file
}

// fresh invents changes and stores them for the agent under a number.
func (c *coding) fresh(status string) (number string) {
	c.Helper()
	var list []edit
	for range 1 + c.random.IntN(4) {
		e := edit{path: one(c.random, "a", "d/b", "d/b/c", "d/c/e", "ü/naïve.txt", "ü/Ü", "d/with space", "d/-dash", "d/new\nline", "d/a \"quote\"", "d/\xff\xfe", "d/run.sh", "d/link", "n.txt", "A", "d", "d/k.bin")}
		if e.path == "d" && c.layout.at != "" || e.path == "A" && c.layout.name == "ignored case" || !strings.Contains(e.path, "/") && len(c.hidden) > 0 && e.path != "a" {
			continue
		}
		e.mode = one(c.random, "", "100644", "100644", "100755", "120000")
		e.text = one(c.random, "", "text\n", "text\r\n", "no end", "\x00\xff\r\n", "one\ntwo\r\nthree\n", fmt.Sprintln("number", c.random.IntN(1000)))
		if e.mode == "120000" {
			e.text = one(c.random, "a", "../else", "/etc/passwd", "d", "ü")
		}
		list = append(list, e)
	}
	return c.told(list, status)
}

// told stores changes and a status for the agent under a number.
func (c *coding) told(list []edit, status string) (number string) {
	c.Helper()
	number = fmt.Sprint(len(c.edits))
	c.edits[number], c.status[number] = list, status
	dir := c.path("edits/" + number)
	require.NoError(c, os.MkdirAll(dir, 0o755))
	run := "cd \"$(git rev-parse --show-toplevel)\"\n"
	for i, e := range list {
		at := quoted(e.path)
		for dir := filepath.Dir(e.path); dir != "."; dir = filepath.Dir(dir) {
			run += fmt.Sprintf("test ! -L %[1]s && test ! -f %[1]s || rm -rf %[1]s\n", quoted(dir))
		}
		run += fmt.Sprintf("rm -rf %s\n", at)
		switch e.mode {
		case "":
			continue
		case "120000":
			run += fmt.Sprintf("mkdir -p %s; ln -s %s %s\n", quoted(filepath.Dir(e.path)), quoted(e.text)[2:], at)
		default:
			require.NoError(c, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(e.text), 0o644))
			run += fmt.Sprintf("mkdir -p %s; cp \"$edits/%d\" %s; chmod %s %s\n", quoted(filepath.Dir(e.path)), i, at, e.mode[3:], at)
		}
	}
	run += "mkdir -p empty/again\n"
	for name, text := range map[string]string{"run": run, "status": status} {
		require.NoError(c, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return number
}

func quoted(path string) string { return "./'" + path + "'" }

func one(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// edited returns a state after changes.
func (c *coding) edited(s state, list []edit) state {
	s = maps.Clone(s)
	for _, e := range list {
		for dir := filepath.Dir(e.path); dir != "."; dir = filepath.Dir(dir) {
			delete(s, dir)
		}
		maps.DeleteFunc(s, func(path, _ string) bool { return path == e.path || strings.HasPrefix(path, e.path+"/") })
		if e.mode != "" {
			s[e.path] = c.hashed(e.file)
		}
	}
	return s
}

var (
	long  = flag.Duration("long", 0, "how long histories and kills of coding runs take, each; default: a few rounds")
	seeds = flag.Uint64("seed", 1, "what the randomness of coding runs begins with")
)

// TestHistories checks that after any sequence of commands, in repositories of all kinds, the files and
// snapshots match the record.
func TestHistories(t *testing.T) {
	t.Parallel()
	tools := programs(t)
	for i, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			rounds, until := 0, tools.env.Now().Add(*long)
			for n := uint64(0); n == 0 || tools.env.Now().Before(until); n++ {
				c := newCoding(t, tools, l, rand.New(rand.NewPCG(*seeds+n, uint64(i))))
				rounds += c.history()
			}
			t.Logf("seed %d: %d rounds", *seeds, rounds)
		})
	}
}
