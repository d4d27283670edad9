package offlimits_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// In a tree that is too large to be looked through, the repositories that git knows of
// are watched anyway, and it is said that others are not.
func TestSubmodulesOfALargeTree(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"wide/f": "", "deep/a/b/f": "", "deep/a/c/f": ""})
	for i := range 20_000 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "wide", strconv.Itoa(i)), 0o755))
	}
	lib := put(t, nil)
	shell(t, lib, "git init -q; git commit -q --allow-empty -m x")
	shell(t, dir, `git init -q; git commit -q --allow-empty -m first
		git -c protocol.file.allow=always submodule --quiet add `+lib+` deep/a/b/sub
		git init -q deep/a/c/nested; git -C deep/a/c/nested commit -q --allow-empty -m x; git add deep/a/c`)
	evil := `for r in .git/modules/deep/a/b/sub deep/a/c/nested/.git; do mkdir -p $r/hooks; echo id > $r/hooks/post-commit; git config -f $r/config core.fsmonitor id; done
		rm deep/a/b/sub/.git; git init -q deep/a/b/sub; git config -f deep/a/b/sub/.git/config core.fsmonitor id`
	for _, version := range []string{"2", "4"} { // the first is one of 3, for what is only intended
		shell(t, dir, "echo "+version+" > deep/new; git add deep/new; git update-index --index-version "+version+"; git add -N wide/f")
		w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir, Now: time.Now()})
		require.NoError(t, err)
		prosetest.Text(t, w.Unseen())
		shell(t, dir, evil)
		changed, err := w.Restore()
		require.NoError(t, err)
		require.Subset(t, changed.Undone, []string{
			".git/modules/deep/a/b/sub/config", ".git/modules/deep/a/b/sub/hooks/post-commit", "deep/a/b/sub/.git",
			"deep/a/c/nested/.git/config", "deep/a/c/nested/.git/hooks/post-commit",
		}, version)
		require.Equal(t, "160000\n160000\n", shell(t, dir, "git ls-files -s | grep ^160 | cut -d' ' -f1"))
	}
}
