//go:build instruments

package attacks

import (
	"fmt"
	"testing"
)

// planting is a script that plants a program which git would run. It may fail.
type planting struct{ name, script string }

// plantingsBeside applies if the workspace is a linked worktree or a submodule, whose git settings are
// elsewhere.
func plantingsBeside() []planting {
	return []planting{
		{"hook", `hook "$(git rev-parse --git-common-dir)/hooks/post-commit"`},
		{"setting", `git config core.fsmonitor "$F"`},
		{"setting-by-hand", `printf '[core]\n\tfsmonitor = %s\n' "$F" >> "$(git rev-parse --git-common-dir)/config"`},
		{"setting-of-the-worktree", `git config extensions.worktreeConfig true; git config -f "$(git rev-parse --git-dir)/config.worktree" core.fsmonitor "$F"`},
		{"common-directory", `d=$(git rev-parse --absolute-git-dir); cp -r "$(git rev-parse --git-common-dir)" evil; git config -f evil/config core.fsmonitor "$F"; echo "$PWD/evil" > "$d/commondir"`},
		{"git-file", `cp -r "$(git rev-parse --git-common-dir)" evil2; git config -f evil2/config core.fsmonitor "$F"; git config -f evil2/config --unset core.worktree; echo "gitdir: $PWD/evil2" > .git`},
		{"repository-instead", `rm -f .git; git init -q . && git config core.fsmonitor "$F"`},
		{"repository-beside", `d=$(git rev-parse --git-common-dir); git config -f "$d/modules/sub/config" core.fsmonitor "$F"; hook "$d/modules/sub/hooks/post-commit"; git -C ../repo config core.fsmonitor "$F"; hook ../.git/hooks/post-commit`},
	}
}

func TestOtherWorkspaces(t *testing.T) {
	t.Parallel()
	tier(t)
	for i, u := range users() {
		for j, place := range []string{"linked", "repo/sub"} {
			for k, p := range plantingsBeside() {
				by := []way{commandRole, runCommand}[(i+j+k)%2]
				t.Run(fmt.Sprint(u.name, "/", place, "/", p.name), func(t *testing.T) {
					t.Parallel()
					if fired, said := plantBeside(t, u, by, place, p, ""); len(fired) > 0 {
						t.Errorf("it ran: %v\n%s", fired, said.stderr)
					}
				})
			}
		}
	}
}

// Without a sandbox the planted programs would run.
func TestJudgeSeesOtherWorkspaces(t *testing.T) {
	t.Parallel()
	u := users()[len(users())-1]
	for _, place := range []string{"linked", "repo/sub"} {
		for _, p := range plantingsBeside() {
			t.Run(place+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				fired, said := plantBeside(t, u, commandRole, place, p, "commands: { sandbox: { mode: none } }\n")
				if len(fired) == 0 {
					t.Errorf("nothing ran\n%s", said.stderr)
				}
			})
		}
	}
}

// plantBeside plants in a workspace and returns which planted programs the user's day has run.
func plantBeside(t *testing.T, u user, by way, place string, p planting, settings string) ([]string, ran) {
	t.Helper()
	w := newWorld(t, u)
	w.repo = w.home + "/src/" + place
	w.outside(t, `mkdir -p got`)
	said := w.confined(t, by, w.script("", []row{{name: p.name, script: p.script}}), settings)
	w.outside(t, `set -- "$HOME/src/linked"`+"\n"+day)
	return w.fired(t), said
}
