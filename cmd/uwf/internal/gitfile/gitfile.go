// Package gitfile fetches workflow files from git repositories ([Git.Fetch]), and records which contents the
// user confirmed ([Git.Confirm]) and the project uses ([Lock]). It fetches git's objects and creates no work
// tree, so hooks, filters and the repository's config have no effect.
package gitfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamltext"
)

// Address is a file in a git repository at a ref.
type Address struct {
	URL, Path, Ref string
	Text           string // as typed
}

// Is reports whether text is meant as such an address, valid or not.
func Is(text string) bool {
	return strings.HasPrefix(text, "github:") || strings.Contains(text, "://") || strings.HasPrefix(text, "git@")
}

// Parse parses github:owner/repo//path.yaml@ref, or the URL of any repository followed by //path.yaml@ref.
// The default ref is the repository's HEAD. Errors are *protocol.Error (code usage).
func Parse(text string) (Address, error) {
	if holdsPassword(text) {
		return Address{}, &protocol.Error{
			Code: protocol.CodeUsage, Message: "a workflow address cannot contain a user name or password",
			Hints: []string{"to let git store them: git help credentials"},
		}
	}
	a := Address{Text: text, Ref: "HEAD"}
	at := strings.LastIndex(text, "//")
	if at <= 0 || strings.HasSuffix(text[:at], ":") {
		return a, wrong(text, "missing file in the repository")
	}
	a.URL, a.Path = text[:at], text[at+2:]
	if file, ref, found := strings.Cut(a.Path, "@"); found {
		a.Path, a.Ref = file, ref
	}
	if repo, short := strings.CutPrefix(a.URL, "github:"); short {
		if !matches(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`, repo) {
			return a, wrong(text, repo+" is not owner/repo")
		}
		a.URL = "https://github.com/" + repo
	}
	switch {
	case !matches(`^(https://|ssh://|file:///|git@)[^\s]+$`, a.URL):
		return a, wrong(text, "the repository must start with github:, https://, ssh://, git@ or file:///")
	case !matches(`^[A-Za-z0-9._][A-Za-z0-9._/+-]*\.ya?ml$`, a.Path) || strings.HasPrefix(path.Clean(a.Path), ".."):
		return a, wrong(text, "the file in the repository must be a path to a .yaml file")
	case !matches(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`, a.Ref) || strings.Contains(a.Ref, ".."):
		return a, wrong(text, "the name after @ is not a tag, branch or commit")
	}
	return a, nil
}

// holdsPassword reports whether a URL contains credentials: except with ssh, even a user name alone may be a
// token.
func holdsPassword(text string) bool {
	scheme, url, found := strings.Cut(text, "://")
	if !found {
		return false
	}
	if at := strings.LastIndex(url, "//"); at >= 0 {
		url = url[:at]
	} else {
		url, _, _ = strings.Cut(url, "/")
	}
	at := strings.LastIndex(url, "@")
	return at >= 0 && (scheme != "ssh" || strings.Contains(url[:at], ":"))
}

func matches(pattern, text string) bool {
	const longest = 1000
	return len(text) <= longest && regexp.MustCompile(pattern).MatchString(text)
}

func wrong(text, why string) error {
	return cmdline.UsageError("invalid workflow address "+text+": "+why,
		"github:owner/repo//path/to/name.yaml@v1", "https://host/repo.git//path/to/name.yaml@v1")
}

const (
	maxFile      = 1 << 20         // bytes; a workflow file has a few thousand
	fetchTimeout = 2 * time.Minute // the download is one commit; a slow server must not block a run
)

// File is a file as fetched from an address.
type File struct {
	Commit  string
	Content string // hash of Text: sha256:…
	Text    []byte
}

// Git runs git with the environment Env. It fetches into the cache of a home, which also has confirmed texts.
type Git struct {
	Env  env.Env
	Dirs home.Dirs
}

// absentError reports that the repository exists but the ref or file does not.
type absentError struct{ what string }

func (e *absentError) Error() string { return e.what }

// Is makes the error match [fs.ErrNotExist].
func (e *absentError) Is(target error) bool { return target == fs.ErrNotExist }

// Fetch fetches one file. Errors are *protocol.Error.
func (g Git) Fetch(ctx context.Context, a Address) (File, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f, err := g.fetch(ctx, a)
	if err != nil {
		code := protocol.CodeFailed
		if errors.Is(err, fs.ErrNotExist) {
			code = protocol.CodeNotFound
		}
		return f, &protocol.Error{
			Code: code, Message: fmt.Sprintf("cannot fetch %s: %s", a.Text, plaintext.Line(err.Error())), Err: err,
			Hints: []string{"git ls-remote " + plaintext.Word(a.URL)},
		}
	}
	return f, nil
}

func (g Git) fetch(ctx context.Context, a Address) (File, error) {
	var f File
	name := sum([]byte(a.URL))[:32]
	dir := filepath.Join(g.Dirs.Home, "cache", "git", name)
	if err := durable.MkdirAll(durable.OS(), filepath.Dir(dir), 0o700); err != nil {
		return f, err
	}
	lock, err := durable.Lock(ctx, filepath.Join(g.Dirs.Locks(), "fetch-"+name+".lock"))
	if err != nil {
		return f, err
	}
	defer func() { _ = lock.RemoveAndUnlock() }() // the lock also ends with the process
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		if _, err := g.git(ctx, filepath.Dir(dir), "init", "-q", "--bare", "--template=", dir); err != nil {
			return f, err
		}
	}
	if _, err := g.git(ctx, dir, "fetch", "-q", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", a.URL, a.Ref); err != nil {
		const absent = 2 // exit status of git ls-remote --exit-code
		var exit *exec.ExitError
		if _, err := g.git(ctx, dir, "ls-remote", "-q", "--exit-code", "--", a.URL, a.Ref); errors.As(err, &exit) && exit.ExitCode() == absent {
			return f, &absentError{"there is no branch or tag " + a.Ref}
		}
		return f, err
	}
	commit, err := g.git(ctx, dir, "rev-parse", "--verify", "FETCH_HEAD^{commit}")
	if err != nil {
		return f, err
	}
	f.Commit = strings.TrimSpace(string(commit))
	entry, err := g.git(ctx, dir, "ls-tree", "-l", f.Commit, "--", a.Path)
	if err != nil {
		return f, err
	}
	fields := strings.Fields(string(entry)) // mode (100… is a regular file), type, object, size, path
	if len(fields) < 5 || fields[1] != "blob" || !strings.HasPrefix(fields[0], "100") {
		return f, &absentError{fmt.Sprintf("no file %s at %s", a.Path, a.Ref)}
	}
	if f.Text, err = g.git(ctx, dir, "cat-file", "blob", fields[2]); err != nil {
		return f, err
	}
	f.Content = "sha256:" + sum(f.Text)
	return f, nil
}

// git runs git with the user's config, but without hooks and GIT_ variables, except those for ssh and passwords.
func (g Git) git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	program, err := proc.LookPath("git", g.Env.Dir, g.Env.Environ)
	if err != nil {
		return nil, fmt.Errorf("git not found: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false",
		"-c", "maintenance.auto=false", "-c", "fetch.fsckObjects=true", "-c", "safe.bareRepository=all"}, args...)...)
	cmd.Dir = dir
	for _, kv := range g.Env.Environ {
		if !strings.HasPrefix(kv, "GIT_") || strings.HasPrefix(kv, "GIT_SSH") || strings.HasPrefix(kv, "GIT_ASKPASS") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL=https:ssh:file", "GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1")
	out, stderr := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = out, stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		return out.Bytes(), err
	}
	if out.over {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	return out.Bytes(), nil
}

// bounded is a buffer limited to the maximum size of a file. It discards a write that would exceed it.
type bounded struct {
	bytes.Buffer
	over bool // something was discarded
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxFile {
		b.over = true
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// confirmedPath returns the file that stores a confirmed text.
func (g Git) confirmedPath(content string) string {
	return filepath.Join(g.Dirs.Home, "cache", "confirmed", strings.TrimPrefix(content, "sha256:")+".yaml")
}

// Confirmed returns a confirmed text by its hash, or nil.
func (g Git) Confirmed(content string) []byte {
	data, err := os.ReadFile(g.confirmedPath(content))
	if err != nil || "sha256:"+sum(data) != content {
		return nil
	}
	return data
}

// Confirm records that the user confirmed a text.
func (g Git) Confirm(f File) error {
	path := g.confirmedPath(f.Content)
	if err := durable.MkdirAll(durable.OS(), filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS(), path, f.Text, 0o600)
}

// Pin identifies the content of an address that a project uses, as [File] does.
type Pin struct{ Commit, Content string }

// Lock is a project's file of pins, .uwf/lock.yaml. Root is the project's directory.
type Lock struct{ Root string }

// Path returns the path of the lock file.
func (l Lock) Path() string { return filepath.Join(l.Root, ".uwf", "lock.yaml") }

func (l Lock) read() ([]byte, error) {
	root, err := os.OpenRoot(l.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading
	return safeopen.ReadFileIn(root, filepath.Join(".uwf", "lock.yaml"), maxFile)
}

// all returns the pins by address.
func (l Lock) all() (map[string]Pin, error) {
	src, err := l.read()
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Pin{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pins: %w", err)
	}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		return nil, l.damaged(err)
	}
	pins := map[string]Pin{}
	if list := doc.Root.Get("workflows"); list != nil {
		for _, e := range list.Entries {
			pin := Pin{text(e.Value.Get("commit")), text(e.Value.Get("content"))}
			if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(pin.Content) {
				return nil, l.damaged(fmt.Errorf("line %d: missing content: sha256:…", e.Pos.Line))
			}
			pins[e.Text] = pin
		}
	}
	return pins, nil
}

func text(n *yamldoc.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Find returns the pin of an address.
func (l Lock) Find(a Address) (pin Pin, ok bool, err error) {
	pins, err := l.all()
	pin, ok = pins[a.Text]
	return pin, ok, err
}

func (l Lock) damaged(err error) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: l.Path() + ": " + err.Error(), Err: err,
		Hints: []string{"correct or delete the file; the next run pins its workflow again"}}
}

// Set pins an address to a fetched file.
func (l Lock) Set(a Address, f File) error {
	pins, err := l.all()
	if err != nil {
		return err
	}
	pins[a.Text] = Pin{f.Commit, f.Content}
	list := yamltext.Map{}
	for _, address := range slices.Sorted(maps.Keys(pins)) {
		pin := pins[address]
		list = append(list, yamltext.Entry{Key: address, Value: yamltext.Map{{Key: "commit", Value: pin.Commit}, {Key: "content", Value: pin.Content}}})
	}
	src, err := yamltext.Marshal(yamltext.Map{{Key: "workflows", Value: list}})
	if err != nil {
		return err
	}
	src = append([]byte("# What workflows from elsewhere were when they were taken: uwf writes it.\n"), src...)
	dir := filepath.Dir(l.Path())
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // a link could lead out of the project
		return fmt.Errorf("%s is not a directory", dir)
	}
	return durable.WriteFile(durable.OS(), l.Path(), src, 0o644)
}
