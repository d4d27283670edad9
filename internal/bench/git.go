package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/internal/bench/sample"
)

// flushed makes git flush what it writes.
var flushed = []string{"-c", "core.fsync=all"}

// git prepares git in a repository; the user's settings do not count.
func (b *bench) git(ctx context.Context, dir string, stdin io.Reader, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, stdin
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	return cmd
}

// newRepository makes an empty repository, which packs nothing by itself.
func (b *bench) newRepository(ctx context.Context, name string) (string, error) {
	dir := b.path(name)
	if err := silent(b.git(ctx, b.dir, nil, "init", "-q", "-b", "main", dir)); err != nil {
		return dir, err
	}
	return dir, silent(b.git(ctx, dir, nil, "config", "fastimport.unpackLimit", "1000000000"))
}

// gitTexts is a repository with the small nodes as loose objects.
func (b *bench) gitTexts(ctx context.Context) (string, error) {
	return fixture(b, "a repository of texts", func() (string, error) {
		dir, err := b.newRepository(ctx, "texts.git")
		if err != nil {
			return dir, err
		}
		return dir, b.fastImport(ctx, dir, blobs(0, smallNodes))
	})
}

// fastImport makes loose objects fast.
func (b *bench) fastImport(ctx context.Context, dir string, stream []byte) error {
	return silent(b.git(ctx, dir, bytes.NewReader(stream), "fast-import", "--quiet"))
}

// blobs is a stream of texts for git fast-import.
func blobs(first, n int) []byte {
	var out bytes.Buffer
	for i := range n {
		text := sample.Text(first + i)
		fmt.Fprintf(&out, "blob\ndata %d\n%s\n", len(text), text)
	}
	return out.Bytes()
}

func (b *bench) gitGet(ctx context.Context) error {
	dir, err := b.gitTexts(ctx)
	if err != nil {
		return err
	}
	oid, err := fixture(b, "an object id", func() (string, error) {
		return output(b.git(ctx, dir, strings.NewReader(sample.Text(0)), "hash-object", "--stdin"))
	})
	if err != nil {
		return err
	}
	return silent(b.git(ctx, dir, nil, "cat-file", "blob", oid))
}

func (b *bench) gitFsck(ctx context.Context) error {
	dir, err := b.gitTexts(ctx)
	if err != nil {
		return err
	}
	return silent(b.git(ctx, dir, nil, "fsck", "--no-dangling"))
}

// gitPut puts n texts from files that are nowhere yet; many go into a repository
// of their own.
func (b *bench) gitPut(n int) side {
	return func(ctx context.Context) (float64, error) {
		dir, err := b.gitTexts(ctx)
		if err == nil && n == smallNodes {
			dir, err = b.newRepository(ctx, fmt.Sprint("new-", b.fresh(1), ".git"))
		}
		if err != nil {
			return 0, err
		}
		files, err := b.textFiles(b.unseen(n), n)
		if err != nil {
			return 0, err
		}
		args, stdin := append(slices.Clone(flushed), "hash-object", "-w"), ""
		if n == smallNodes {
			args, stdin = append(args, "--stdin-paths"), strings.Join(files, "\n")
		} else {
			args = append(args, files...)
		}
		return timed(func(ctx context.Context) error { return silent(b.git(ctx, dir, strings.NewReader(stdin), args...)) })(ctx)
	}
}

// textFiles writes texts for git to read.
func (b *bench) textFiles(first, n int) ([]string, error) {
	dir := b.path("files")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	for i := range n {
		path := fmt.Sprint(dir, "/", i)
		if err := os.WriteFile(path, []byte(sample.Text(first+i)), 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// gitArchive is a repository with the contents of the archive: for each step a
// commit, which says what the step says, with its output and its detail as files.
func (b *bench) gitArchive(ctx context.Context) (string, error) {
	return fixture(b, "a repository of the archive", func() (string, error) {
		a, err := b.archive(ctx)
		if err != nil {
			return "", err
		}
		dir, err := b.newRepository(ctx, "archive.git")
		if err != nil {
			return dir, err
		}
		stream, err := commits(ctx, a)
		if err != nil {
			return dir, err
		}
		return dir, b.fastImport(ctx, dir, stream)
	})
}

// commits is the archive as a stream for git fast-import.
func commits(ctx context.Context, a archive) ([]byte, error) {
	s, err := fsstore.Open(ctx, storeOf(a.place), fsstore.Options{Home: a.home})
	if err != nil {
		return nil, err
	}
	t, err := thread.Open(ctx, s, cas.Hash(a.head))
	if err != nil {
		return nil, err
	}
	var steps []thread.Step
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	var out bytes.Buffer
	for _, step := range slices.Backward(steps) {
		if err := commit(ctx, &out, s, step); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func commit(ctx context.Context, out *bytes.Buffer, s cas.Store, step thread.Step) error {
	message, err := json.Marshal(step.Step)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "commit refs/heads/main\ncommitter uwf <uwf> %d +0000\ndata %d\n%s\n", step.Timestamp/1000, len(message), message)
	for name, h := range map[string]cas.Hash{"output": step.Output, "detail": step.Detail} {
		n, err := s.Get(ctx, h)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "M 100644 inline %s\ndata %d\n%s\n", name, len(n.Payload), n.Payload)
	}
	return nil
}

// inGitArchive costs one git command in the repository of the archive.
func (b *bench) inGitArchive(args ...string) side {
	return func(ctx context.Context) (float64, error) {
		dir, err := b.gitArchive(ctx)
		if err != nil {
			return 0, err
		}
		return timed(func(ctx context.Context) error { return silent(b.git(ctx, dir, nil, args...)) })(ctx)
	}
}

// gitPrune removes loose objects that were put just before, uncounted.
func (b *bench) gitPrune(ctx context.Context) (float64, error) {
	dir, err := b.gitArchive(ctx)
	if err != nil {
		return 0, err
	}
	if err := b.fastImport(ctx, dir, blobs(b.unseen(garbageNodes), garbageNodes)); err != nil {
		return 0, err
	}
	return b.inGitArchive("prune", "--expire=now")(ctx)
}

func (b *bench) gitExport(ctx context.Context) (float64, error) {
	file := b.path(fmt.Sprint("export-", b.fresh(1), ".bundle"))
	return b.inGitArchive("bundle", "create", "-q", file, "main")(ctx)
}

func (b *bench) gitImport(ctx context.Context) (float64, error) {
	file, err := fixture(b, "a bundle of git's", func() (string, error) {
		_, err := b.inGitArchive("bundle", "create", "-q", b.path("archive.bundle"), "main")(ctx)
		return b.path("archive.bundle"), err
	})
	if err != nil {
		return 0, err
	}
	dir, err := b.newRepository(ctx, fmt.Sprint("import-", b.fresh(1), ".git"))
	if err != nil {
		return 0, err
	}
	args := append(slices.Clone(flushed), "fetch", "-q", file, "main:imported")
	return timed(func(ctx context.Context) error { return silent(b.git(ctx, dir, nil, args...)) })(ctx)
}
