package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

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
