//go:build unix

package snapshot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// made commits the current files in our git directory.
func (w *world) made(message string) string {
	w.Helper()
	commit, err := w.repo.MakeCommit(w.Context(), w.spec, w.take().Tree, message, w.repo.Head)
	require.NoError(w, err)
	return commit
}

// Importing a commit into a hostile repository starts no programs.
func TestBring(t *testing.T) {
	t.Parallel()
	const evil = `printf '#!/bin/sh\necho "$0" >> %s; exec cat\n' "$EVIL" > ../run; chmod +x ../run; run="$PWD/../run"; `
	for name, script := range map[string]string{
		"plain":          "true",
		"SHA-256":        "rm -rf .git; git init -q --object-format=sha256; git add .; git commit -q -m x",
		"packed":         "git gc -q",
		"borrows":        `git clone -q --bare . ../lender; mkdir -p .git/objects/info; echo ../../../lender/objects > .git/objects/info/alternates; git config core.alternateRefsCommand "$run"`,
		"fetches":        `git config remote.o.url "$PWD/../lender"; git config remote.o.promisor true; git config remote.o.uploadpack "$run"; git config extensions.partialClone o; git config core.repositoryFormatVersion 1`,
		"hooks":          `mkdir -p .git/hooks; for h in reference-transaction post-index-change; do cp ../run .git/hooks/$h; done; git config uploadpack.packObjectsHook "$run"`,
		"a damaged pack": `head -c 100 /dev/zero > .git/objects/pack/pack-0123456789012345678901234567890123456789.pack`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh(`git config --global user.name u; git config --global user.email u@e; ` + evil + script)
			require.NoError(t, w.open())
			w.sh(`echo changed > d/b; mkdir e; echo new > e/f; rm -f "$EVIL"`)
			commit := w.made("made")
			require.NoError(t, w.repo.Import(t.Context(), w.spec, commit, "test"))
			require.NoFileExists(t, filepath.Join(w.dir, "evil"))
			require.Equal(t, "new\n", w.sh("git cat-file blob "+commit+":e/f"))
			require.NoError(t, w.repo.Import(t.Context(), w.spec, commit, "test"), "once more")
			if name == "plain" {
				require.Equal(t, "6", strings.Fields(w.sh("git count-objects -v | grep in-pack"))[1], "only what is new")
				w.sh("git fsck --strict --no-dangling")
			}
		})
	}
	for _, links := range []string{"objects/pack", "objects"} {
		w := repository(t)
		w.sh(`git config --global user.name u; git config --global user.email u@e`)
		require.NoError(t, w.open())
		w.sh(`echo changed > d/b`)
		commit := w.made("made")
		w.sh("cp -r .git/objects/. ../outside; rm -rf .git/" + links + "; ln -s " + w.dir + "/outside .git/" + links)
		before := w.sh("find ../outside")
		require.Error(t, w.repo.Import(t.Context(), w.spec, commit, "test"), links)
		require.Equal(t, before, w.sh("find ../outside"), "nothing is written elsewhere")
	}
}

// The user's index is updated even if other programs swap files; no filter of the repository runs.
func TestFollowASplitIndex(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global user.name u; git config --global user.email u@e; git update-index --split-index; echo staged > s; git add s`)
	require.NoError(t, w.open())
	from := w.repo.Head
	w.sh(`echo changed > d/b`)
	to := w.made("made")
	require.NoError(t, w.repo.Import(t.Context(), w.spec, to, "test"))
	require.NoError(t, w.repo.AdvanceHead(t.Context(), w.spec, from, to, "test", false))
	require.Empty(t, w.sh("git status --porcelain"), "what was staged is in the commit")
}

func TestFollowWhileTheConfigIsSwapped(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global user.name u; git config --global user.email u@e; printf '#!/bin/sh\necho "$0" >> %s; exec cat\n' "$EVIL" > ../run; chmod +x ../run; echo '* filter=x' > .gitattributes; git add .; git commit -qm filter`)
	require.NoError(t, w.open())
	from, trees := w.repo.Head, []protocol.Tree{w.take().Tree}
	w.sh(`echo changed > d/b; echo more > m`)
	to := w.made("made")
	trees = append(trees, w.spec.Tree)
	require.NoError(t, w.repo.Import(t.Context(), w.spec, to, "test"))
	config, err := os.ReadFile(filepath.Join(w.root, ".git/config"))
	require.NoError(t, err)
	run := filepath.Join(w.dir, "run")
	evil := fmt.Appendf(slices.Clip(config), "[filter \"x\"]\n clean = %s\n smudge = %s\n", run, run)
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				replace(w.root, ".git/config", evil)
				replace(w.root, ".git/config", config)
			}
		}
	})
	for n := range 30 {
		at := [2]string{from, to}
		if n%2 == 1 {
			at[0], at[1] = at[1], at[0]
		}
		w.write("a", "touched\n") // git has to read its content
		require.NoError(t, w.repo.AdvanceHead(t.Context(), w.spec, at[0], at[1], "test", false))
	}
	close(stop)
	swapping.Wait()
	require.NoFileExists(t, filepath.Join(w.dir, "evil"))
	require.True(t, snapshot.Has(t.Context(), w.env, w.spec.Git, trees[0]))
	require.Equal(t, from, strings.TrimSpace(w.sh("git rev-parse HEAD")))
	w.sh(`printf 'one\n' > a; git ls-files -s > ../index; git read-tree HEAD; git ls-files -s | cmp - ../index`)
}

// Imported objects survive the user's git gc until a ref leads to them.
func TestBringBesideACollection(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global user.name u; git config --global user.email u@e`)
	require.NoError(t, w.open())
	w.sh(`echo changed > d/b`)
	commit := w.made("made")
	const collect = "git gc -q --prune=now; git gc -q --prune=now"
	require.NoError(t, w.repo.Import(t.Context(), w.spec, commit, "test"))
	require.NoError(t, w.repo.Release("another"))
	w.sh(collect)
	w.sh("git cat-file -e " + commit + ":d/b")
	require.NoError(t, w.repo.Release("test"))
	w.sh(collect)
	require.Equal(t, "gone\n", w.sh("git cat-file -e "+commit+" 2> /dev/null || echo gone"))

	require.NoError(t, w.repo.Import(t.Context(), w.spec, commit, "test"))
	require.NoError(t, w.repo.SetBranch(t.Context(), "made", commit, "", "test", false))
	require.NoError(t, w.repo.Release("test"))
	w.sh(collect)
	w.sh("git fsck --strict --no-dangling; git log made")
	require.Empty(t, w.sh("ls .git/objects/pack | grep keep || true"))
}

// The commit of an interrupted process is reused by the next one.
func TestMade(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global user.name u; git config --global user.email u@e`)
	require.NoError(t, w.open())
	w.sh(`echo changed > d/b`)
	commit, tree := w.made("made"), w.spec.Tree
	const ref = "refs/uwf-result/x"
	_, ok := w.repo.FindCommit(t.Context(), w.spec, ref, tree, w.repo.Head)
	require.False(t, ok)
	merge, err := w.repo.MakeCommit(t.Context(), w.spec, tree, "merge", w.repo.Head, commit)
	require.NoError(t, err)
	for _, kept := range []string{commit, merge} {
		require.NoError(t, w.repo.SetRef(t.Context(), w.spec, ref, kept))
		found, ok := w.repo.FindCommit(t.Context(), w.spec, ref, tree, w.repo.Head)
		require.True(t, ok)
		require.Equal(t, commit, found)
		_, ok = w.repo.FindCommit(t.Context(), w.spec, ref, tree, commit)
		require.False(t, ok, "on another parent")
	}
}

// A lock left by a killed git doesn't block our git directory, nor the user's if we held the lock.
func TestLocksThatWereLeft(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global user.name u; git config --global user.email u@e`)
	require.NoError(t, w.open())
	w.sh(`echo changed > d/b`)
	from, to := w.repo.Head, w.made("made")
	for _, lock := range []string{"refs/uwf-result/x.lock", "packed-refs.lock"} {
		w.sh("mkdir -p " + w.spec.Git + "/refs/uwf-result; touch " + w.spec.Git + "/" + lock + " " + w.spec.Git + "/packed-refs.new")
	}
	require.NoError(t, w.repo.SetRef(t.Context(), w.spec, "refs/uwf-result/x", to))
	require.NoError(t, snapshot.Forget(t.Context(), w.env, w.spec, "refs/uwf-result/x"))

	require.NoError(t, w.repo.Import(t.Context(), w.spec, to, "test"))
	w.sh("touch .git/refs/heads/b.lock .git/HEAD.lock; mkdir -p ../outside; touch ../outside/x.lock; ln -s ../../../../outside .git/refs/heads/out")
	require.ErrorContains(t, w.repo.SetBranch(t.Context(), "b", to, "", "test", false), "b.lock")
	require.ErrorContains(t, w.repo.AdvanceHead(t.Context(), w.spec, from, to, "test", false), "HEAD.lock")
	require.NoError(t, w.repo.SetBranch(t.Context(), "b", to, "", "test", true))
	require.NoError(t, w.repo.AdvanceHead(t.Context(), w.spec, from, to, "test", true))
	require.Error(t, w.repo.SetBranch(t.Context(), "out/x", to, "", "test", true))
	w.sh("test -f ../outside/x.lock; rm .git/refs/heads/out; git fsck --no-dangling")
}
