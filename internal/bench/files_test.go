package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/bench/loop"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
)

// filesRows measure the cost of snapshots, in new repositories, and that there is none without them.
func (w *world) filesRows() []row {
	sizes := []int{2_000, 20_000}
	if w.full {
		sizes = append(sizes, 100_000)
	}
	var rows []row
	for _, n := range sizes {
		status := timed(func(b testing.TB) { w.git(b, w.repository(b, n).root, "status") })
		rows = append(rows,
			versus(fmt.Sprintf("files/unchanged, of %d", n), w.snapshot(n, 0), 1.2, "git status", status),
			versus(fmt.Sprintf("files/10 changed, of %d", n), w.snapshot(n, 10), 1, "20 ms + 1.4 git status", func(b testing.TB) float64 { return 20 + 1.4*status(b) }))
	}
	if w.full {
		rows = append(rows,
			versus("files/1000 changed, of 100000", w.snapshot(100_000, 1000), 1, "1 s", constant(1000)),
			versus("files/first snapshot of 100000", w.firstSnapshot(100_000), 1, "1.5 s", constant(1500)))
	}
	return append(rows, versus("files/a step without them, in a repository", w.unkept("repository"), 1.05, "elsewhere", w.unkept("directory")))
}

// unkept measures a step of a thread without snapshots.
func (w *world) unkept(where string) side {
	return timed(func(b testing.TB) {
		p := fixture(w, "a thread without files in a "+where, func() place {
			p, dir := place{home: w.path("unkept-" + where)}, w.dir
			if where == "repository" {
				dir = w.repository(b, 2_000).root
			}
			p.thread = w.uwf(b, p.home, "thread", "start", w.file(b, "loop.yaml", loop.Workflow), "-p", "task", "--cwd", dir, "--workspace", "none", "--format", "text")
			return p
		})
		w.step(b, p)
	})
}

// keptRepo is a repository with snapshots.
type keptRepo struct {
	root string
	env  env.Env
	spec snapshot.Spec
}

// repository creates a repository with n files of 1.5 KB, 100 per directory, and a commit, on the disk.
func (w *world) repository(b testing.TB, n int) *keptRepo {
	return fixture(w, fmt.Sprint("repository-", n), func() *keptRepo {
		r := &keptRepo{root: w.path(fmt.Sprint("repository-", n)), env: env.Env{Environ: append(os.Environ(), "HOME="+w.dir)}}
		for i := range n {
			if i%100 == 0 {
				require.NoError(b, os.MkdirAll(filepath.Dir(r.file(i)), 0o755))
			}
			r.write(b, i, 0)
		}
		w.git(b, r.root, "init", "-q")
		w.git(b, r.root, "add", ".")
		w.git(b, r.root, "-c", "user.name=u", "-c", "user.email=u", "commit", "-q", "-m", "first")
		w.git(b, r.root, "status")
		run(b, exec.CommandContext(b.Context(), "sync")) // the files of a real repository are on the disk
		return r
	})
}

func (r *keptRepo) file(i int) string {
	return filepath.Join(r.root, fmt.Sprint("d", i/100), fmt.Sprint("f", i))
}

func (r *keptRepo) write(b testing.TB, i, version int) {
	line := fmt.Sprintf("file %d, version %d\n", i, version)
	// Another size: rounds take less than a second, and git reads a file again that kept its size and its second.
	text := strings.Repeat(line, 100)[:1500+version%100]
	require.NoError(b, os.WriteFile(r.file(i), []byte(text), 0o644))
}

func (w *world) git(b testing.TB, dir string, args ...string) {
	cmd := exec.CommandContext(b.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	run(b, cmd)
}

// keeps creates a new git directory for snapshots.
func (w *world) keeps(b testing.TB, r *keptRepo) {
	repo, err := snapshot.Find(b.Context(), r.env, r.root)
	require.NoError(b, err)
	dir := w.path(fmt.Sprint("kept-", w.fresh(1)))
	require.NoError(b, os.Mkdir(dir, 0o755))
	r.spec = snapshot.Spec{Root: repo.Root, Git: repo.Store(dir), Index: filepath.Join(dir, "index"), Ref: "refs/uwf/bench", Keys: repo.Keys}
	require.NoError(b, repo.Seed(b.Context(), r.spec.Git, true))
	require.NoError(b, repo.SeedIndex(r.spec))
}

// take makes a snapshot and prepares for the next one.
func (r *keptRepo) take(b testing.TB) {
	taken, err := snapshot.Take(b.Context(), r.env, r.spec)
	require.NoError(b, err)
	r.spec.Tree = taken.Tree
}

// snapshot measures a snapshot after some files were changed.
func (w *world) snapshot(n, changed int) side {
	return func(b testing.TB) float64 {
		r := w.repository(b, n)
		if r.spec.Git == "" {
			w.keeps(b, r)
			r.take(b)
		}
		version := w.fresh(1) + 1
		for i := range changed {
			r.write(b, i*(n/changed), version)
		}
		return timed(r.take)(b)
	}
}

// firstSnapshot measures creating the git directory and the first snapshot.
func (w *world) firstSnapshot(n int) side {
	return func(b testing.TB) float64 {
		r := w.repository(b, n)
		return timed(func(b testing.TB) {
			w.keeps(b, r)
			r.take(b)
		})(b)
	}
}
