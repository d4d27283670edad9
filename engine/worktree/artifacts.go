package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// The roles of a run share files in a directory of the home, also with the roles of its children. The
// contents are untrusted, so they are only counted, copied and removed, and symbolic links in them are never
// followed.

// Limits of an artifacts directory. It is counted before each step, and more files would make that slow.
const (
	maxArtifacts      = 100_000
	maxArtifactsDepth = 100
)

// OpenArtifacts creates the directory of a run. It returns an error if the directory exceeds the limits.
// Errors are *protocol.Error.
func (e Keeper) OpenArtifacts(ctx context.Context, thread, dir string) (err error) {
	defer fault.Coded(&err)
	if dir == "" {
		return nil
	}
	// A file or a link is reported below.
	if err = os.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	c, err := e.Config(ctx)
	if err != nil {
		return err
	}
	most := config.MaxArtifacts(c)
	switch held, err := CountArtifacts(dir, most); {
	case err != nil: // for example a symbolic link in its place
		return fault.New(protocol.CodeFailed, "cannot read the artifacts of thread %s: %v", thread,
			err).Because("artifacts-unreadable", "thread", thread)
	case held.More:
		return tooMany(thread, held, most)
	}
	return nil
}

func tooMany(thread string, held protocol.Artifacts, most int64) error {
	if held.Files >= maxArtifacts {
		return fault.New(protocol.CodeFailed, "%s has more than %d files", held.Dir,
			maxArtifacts).Because("artifacts-too-many", "thread", thread)
	}
	return fault.New(protocol.CodeFailed, "%s has more than %s", held.Dir,
		render.Size(most)).Because("artifacts-too-large", "thread", thread)
}

// CountArtifacts counts the contents of a directory, up to the limits.
func CountArtifacts(dir string, most int64) (held protocol.Artifacts, err error) {
	held.Dir = dir
	err = walkArtifacts(dir, func(_ *os.Root, _ string, info fs.FileInfo) error {
		held.Files++
		if info.Mode().IsRegular() {
			held.Bytes += info.Size()
		}
		if held.Files > maxArtifacts || held.Bytes > most || held.Bytes < 0 {
			held.Files, held.Bytes, held.More = min(held.Files, maxArtifacts), min(max(held.Bytes, 0), most), true
			return fs.SkipAll
		}
		return nil
	})
	return held, err
}

// walkArtifacts visits everything in a directory, parents before children, until visit returns [fs.SkipAll]. It restores
// the user's permissions, which an agent can have removed, because the next step needs the directory.
func walkArtifacts(dir string, visit func(in *os.Root, name string, info fs.FileInfo) error) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return gone(err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if info.Mode()&0o700 != 0o700 {
		_ = os.Chmod(dir, 0o700) // opening it reports the failure
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(anyName{root}, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return gone(err)
		}
		if strings.Count(name, "/") > maxArtifactsDepth {
			return fmt.Errorf("directories are nested more than %d levels deep", maxArtifactsDepth)
		}
		info, err := entry.Info()
		if err != nil {
			return gone(err)
		}
		need := fs.FileMode(0o400)
		if entry.IsDir() {
			need = 0o700
		}
		if (entry.IsDir() || info.Mode().IsRegular()) && info.Mode()&need != need {
			_ = root.Chmod(filepath.FromSlash(name), info.Mode()|need) // reading it reports the failure
		}
		return visit(root, filepath.FromSlash(name), info)
	})
}

// anyName is a directory whose names need not be UTF-8, in contrast to [os.Root.FS].
type anyName struct{ *os.Root }

func (d anyName) Open(name string) (fs.File, error) { return d.Root.Open(name) }

// gone returns nil if err means that a file was removed in the meantime.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ForkArtifacts copies the artifacts of a run for a fork. Symbolic links are copied as links; pipes and other
// special files are omitted.
func (e Keeper) ForkArtifacts(ctx context.Context, of, fork string) error {
	of, err := heads.Root(ctx, e.Heads, of)
	if err != nil {
		return err
	}
	c, err := e.Config(ctx)
	if err != nil {
		return err
	}
	from, to, most := e.Dirs.Artifacts(of), e.Dirs.Artifacts(fork), config.MaxArtifacts(c)
	switch held, err := CountArtifacts(from, most); {
	case err != nil || held.Files == 0:
		return err
	case held.More:
		return tooMany(of, held, most)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	into, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	room := int64(maxIncludedBytes)
	err = walkArtifacts(from, func(in *os.Root, name string, info fs.FileInfo) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if info.IsDir() {
			return into.Mkdir(name, info.Mode().Perm()|0o700)
		}
		return takeAlong(in, into, name, &room)
	})
	if err != nil {
		err = errors.Join(fmt.Errorf("copy the artifacts of thread %s: %w", of, err), e.RemoveArtifacts(fork))
	}
	return err
}

// RemoveArtifacts removes the artifacts of a run, even in write-protected directories.
func (e Keeper) RemoveArtifacts(thread string) error {
	return safeopen.RemoveAll(e.Dirs.Artifacts(thread))
}

// RedactArtifacts removes the artifacts of a thread's run. Errors are *protocol.Error.
func (e Keeper) RedactArtifacts(ctx context.Context, id string) (held protocol.Artifacts, err error) {
	defer fault.Coded(&err)
	root, err := heads.Root(ctx, e.Heads, id)
	if err != nil {
		return held, err
	}
	t, err := e.Lock(ctx, root)
	if err != nil {
		return held, err
	}
	defer t.Release()
	held, _ = CountArtifacts(e.Dirs.Artifacts(root), 1<<62) // also remove files that cannot be counted
	return held, e.RemoveArtifacts(root)
}

// sweepArtifacts removes the artifacts of forks whose creation was interrupted.
func (e Keeper) sweepArtifacts(ctx context.Context, now time.Time) error {
	entries, err := os.ReadDir(filepath.Dir(e.Dirs.Artifacts("x")))
	if err != nil {
		return gone(err)
	}
	known, err := heads.ThreadStates(ctx, e.Heads)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		id := entry.Name()
		if at, bad := threadid.Time(id); bad == nil && known[id].Head == "" && now.Sub(at) > aDay {
			err = errors.Join(err, e.RemoveArtifacts(id))
		}
	}
	return err
}
