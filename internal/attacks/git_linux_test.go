//go:build instruments

package attacks

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/git.sh
var gitCommands string

// differences returns the git commands that behave differently inside the sandbox, by tier.
func differences(tier string) []string {
	if tier == "box" {
		return []string{"git commit-graph write", "git sparse-checkout set d"}
	}
	return nil
}

// state prints the results of git commands, without details specific to the place.
const state = `git for-each-ref --format='%(refname) %(objectname) %(upstream)'; git status -sb; git stash list; git notes list; git worktree list --porcelain | grep -c .
git config --local --list | grep -E '^(branch|remote|user|submodule)\.' | sort; git log --all --format=%H; git ls-files -v; git -C cl log --format=%H; ls -A`

// TestGitWorksInside checks that everyday git commands have the same status and result inside the sandbox as
// outside, in an equal repository.
func TestGitWorksInside(t *testing.T) {
	t.Parallel()
	tier := tier(t)
	for _, u := range users() {
		for _, by := range []way{commandRole, runCommand} {
			t.Run(fmt.Sprint(u.name, "/", by), func(t *testing.T) {
				t.Parallel()
				const list = `LIST=$PWD/got/list; `
				outside, inside := newWorld(t, u), newWorld(t, u)
				for _, w := range []*world{outside, inside} {
					w.outside(t, `git -C ../origin.git branch x; git -C ../origin.git branch x2; git fetch -q`)
				}
				outside.outside(t, list+gitCommands)
				allow := fmt.Sprintf("sandbox: { allowWrite: [%q] }\n", inside.home+"/src/origin.git")
				said := inside.confined(t, by, list+gitCommands, allow)
				want, got := statuses(t, outside), statuses(t, inside)
				if len(want) < 60 || len(want) != len(got) {
					t.Fatalf("%d commands ran outside, %d inside\n%s", len(want), len(got), said.stderr)
				}
				var differ []string
				for i := range want {
					if want[i] != got[i] {
						name, _, _ := strings.Cut(want[i], "\t")
						differ = append(differ, name)
						t.Logf("outside %s, inside %s", want[i], got[i])
					}
				}
				if !slices.Equal(differ, differences(tier)) {
					t.Errorf("they differ: %q", differ)
				}
				if want, got := outside.outside(t, state), inside.outside(t, state); want != got {
					t.Errorf("they leave\n%s\nand\n%s\n%s", want, got, said.stderr)
				}
			})
		}
	}
}

func statuses(t *testing.T, w *world) []string {
	t.Helper()
	text, err := os.ReadFile(w.repo + "/got/list")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(strings.ReplaceAll(string(text), w.dir, "WORLD")))
}
