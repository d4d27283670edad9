//go:build instruments

package attacks

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed testdata/overlap.yaml
var overlapWorkflow string

//go:embed testdata/overlap.sh
var overlapScript string

// start starts a workflow and returns when it has created the file made.
func (w *world) start(t *testing.T, workflow, script, made string) *exec.Cmd {
	t.Helper()
	w.write(t, "home/src/repo/got/attack.sh", script)
	w.write(t, "run/attack.yaml", workflow)
	w.write(t, "home/.uwf/config.yaml", "")
	cmd := exec.Command(w.bin+"/uwf", "run", w.dir+"/run/attack.yaml", "-p", "x")
	cmd.Dir, cmd.Env = w.repo, w.environ()
	w.user.as(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(t, made)
	return cmd
}

// await waits for a file in the workspace.
func (w *world) await(t *testing.T, name string) {
	t.Helper()
	for range 600 {
		if _, err := os.Stat(filepath.Join(w.repo, "got", name)); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s was never made", name)
}

// planting is a script that plants a program, reports it, and runs until it is stopped.
func (w *world) planting() string {
	return fmt.Sprintf(`F='%s/fire planted'
printf '#!/bin/sh\n%%s\n' "$F" > .git/hooks/post-commit; chmod 755 .git/hooks/post-commit
git config core.fsmonitor "$F"
env -i setsid "$PWD/tools/attacker" stay left &
touch got/planted
i=0; while [ ! -e got/end ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done
`, w.dir)
}

func (w *world) fired(t *testing.T) []string {
	t.Helper()
	fired, err := filepath.Glob(w.dir + "/fired/*")
	if err != nil {
		t.Fatal(err)
	}
	return fired
}

// What a user's git runs while a command has planted something. The lower tier reports that it cannot prevent
// that.
func TestUserWorksWhileACommandRuns(t *testing.T) {
	t.Parallel()
	tier := tier(t)
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, u)
			cmd := w.start(t, roleWorkflow, w.planting(), "planted")
			w.outside(t, `git status; git commit -q --allow-empty -m x`)
			during := len(w.fired(t)) > 0
			w.outside(t, `rm -f ../../../fired/*; touch got/end`)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if during != (tier == "landlock") {
				t.Errorf("while it runs: %v", during)
			}
			w.outside(t, day)
			if fired, left := w.fired(t), w.left(t); len(fired)+len(left) > 0 {
				t.Errorf("after it has ended: %v %v", fired, left)
			}
		})
	}
}

// If uwf is killed, files planted by a command are removed with the next step; in the box they never take
// effect.
func TestAfterAKill(t *testing.T) {
	t.Parallel()
	tier := tier(t)
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, u)
			cmd := w.start(t, roleWorkflow, w.planting(), "planted")
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if tier == "box" {
				w.outside(t, `git status; git commit -q --allow-empty -m x`)
			}
			w.outside(t, `touch got/end`)
			thread := strings.TrimSpace(w.outside(t, `ls ~/.uwf/runs | head -1`))
			again := w.outside(t, `timeout 50 uwf thread wait `+thread+`; uwf thread resume `+thread)
			if left := w.left(t); len(left) > 0 {
				t.Errorf("left: %v\n%s", left, again)
			}
			w.outside(t, day)
			if fired := w.fired(t); len(fired) > 0 {
				t.Errorf("it ran: %v\n%s", fired, again)
			}
		})
	}
}

// A role that exceeds its timeout is killed with all its processes, whatever signals they ignore.
func TestTimeoutEndsAll(t *testing.T) {
	t.Parallel()
	tier(t)
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, u)
			workflow := strings.Replace(roleWorkflow, "got/attack.sh] }", "got/attack.sh], timeout: 2s }", 1)
			begun := time.Now()
			cmd := w.start(t, workflow, "trap '' TERM INT HUP; "+w.planting()+"sleep 200\n", "planted")
			err := cmd.Wait()
			if took := time.Since(begun); err == nil || took > time.Minute {
				t.Errorf("%v after %s", err, took)
			}
			if left := w.left(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			w.outside(t, day)
			if fired := w.fired(t); len(fired) > 0 {
				t.Errorf("it ran: %v", fired)
			}
		})
	}
}

// Children in worktrees share a git directory: files that one has planted while another starts are not taken
// for the user's.
func TestOverlap(t *testing.T) {
	t.Parallel()
	tier(t)
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, u)
			script := w.dir + "/overlap.sh"
			w.write(t, "overlap.sh", "F='"+w.dir+"/fire overlap'\n"+overlapScript)
			w.write(t, "run/overlap.yaml", strings.ReplaceAll(overlapWorkflow, "@SCRIPT@", script))
			said := w.outside(t, `uwf run `+w.dir+`/run/overlap.yaml -p x --workspace worktree --parallel 3`)
			if !strings.Contains(said, `"completed"`) {
				t.Error(said)
			}
			w.outside(t, `set -- "$HOME/src/linked"`+"\n"+day)
			if fired := w.fired(t); len(fired) > 0 {
				t.Errorf("it ran: %v\n%s", fired, said)
			}
		})
	}
}

// Another process, such as a step in another directory, swaps directories for links while commands start:
// nothing outside becomes writable.
func TestSwappedDirectories(t *testing.T) {
	t.Parallel()
	tier(t)
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, u)
			w.outside(t, `mkdir -p ../../../outside/x && cp -r inner/.git ../../../outside/x/.git && ln -s ../../../outside/x innerlink
				cp -r .git/hooks hooks2; ln -s ../../../../outside/x hooklink`)
			before := w.snapshot(t)
			swaps := w.command(t.Context(), u, w.repo, `"$PWD/tools/attacker" swap inner innerlink 60000 & "$PWD/tools/attacker" swap .git/modules/sub hooklink 60000 & wait`)
			if err := swaps.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = syscall.Kill(-swaps.Process.Pid, syscall.SIGKILL)
				_ = swaps.Wait()
			}()
			for range 3 {
				said := w.confined(t, commandRole, `for d in `+w.dir+`/outside/x `+w.home+`; do echo evil > $d/f; echo evil >> $d/.git/config; echo evil > $d/.git/hooks/pre-commit; done; true`, "")
				if said.status != 0 && said.status != 1 {
					t.Errorf("exit %d\n%s", said.status, said.stderr)
				}
			}
			if n := len(w.left(t)); n < 2 {
				t.Errorf("%d processes swap", n)
			}
			for _, name := range changed(before, w.snapshot(t)) {
				if !strings.HasPrefix(name, "home/src/repo") {
					t.Errorf("%s was changed", name)
				}
			}
		})
	}
}
