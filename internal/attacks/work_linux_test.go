//go:build instruments

package attacks

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// work lists commands that must work inside: their status is 0.
func work() []row {
	return []row{
		{name: "a-file", script: `echo x > new && mkdir -p d/e && mv new d/e/ && ln d/e/new d/l && rm -r d`},
		{name: "a-mode", script: `echo x > m && chmod 700 m && [ -x m ] && touch -d 2001-01-01 m && rm m`},
		{name: "a-link", script: `ln -s f l && [ "$(cat l)" = "$(cat f)" ] && rm l`},
		{name: "a-pipe", script: `mkfifo p && { echo x > p & } && [ "$(cat p)" = x ] && rm p`},
		{name: "a-lock", script: `flock lock -c true && flock -n lock -c 'echo held' && rm lock`},
		{name: "a-socket", script: `$A listen sock`},
		{name: "a-long-socket", script: `mkdir -p "$TMPDIR/s" && $A listen "$TMPDIR/s/sock"`},
		{name: "a-terminal", script: `$A pty`, only: "box"}, // in the other tier the user's terminals are visible
		{name: "a-database", script: `$A locks db && [ -s db-wal ] && rm db-wal`},
		{name: "temporary-files", script: `f=$(mktemp) && echo x > "$f" && mv "$f" moved-in && rm moved-in`},
		{name: "a-temporary-directory", script: `d=$(mktemp -d) && cp -r docs "$d" && (cd "$d/docs" && git init -q . && git add . ) && rm -r "$d"`},
		{name: "a-cache", script: `c=${XDG_CACHE_HOME:-$H/.cache}/tool && mkdir -p "$c" && echo x > "$c/f" && mv "$c/f" "$c/g" && [ -s "$c/g" ]`},
		{name: "an-artifact", script: `a=$UWF_ARTIFACTS_DIR && [ -d "$a" ] && mkdir "$a/d" && echo x > "$a/d/x" && mv "$a/d/x" "$a/y" && ln -s f "$a/l" && rmdir "$a/d" && rm "$a/y" "$a/l"`},
		{name: "null-and-zero", script: `head -c 10 /dev/zero > /dev/null && head -c 10 /dev/urandom > r && [ -s r ] && rm r`},
		{name: "descriptors", script: `echo x > /dev/stderr && [ "$(echo y | cat /dev/stdin)" = y ] && exec 7<f && cat /dev/fd/7 >/dev/null`},
		{name: "its-own-process", script: `[ "$(readlink /proc/self/cwd)" = "$W" ] && kill -0 $$ && ls /proc/self/fd`},
		{name: "its-own-children", script: `sleep 100 & p=$!; kill $p; wait $p; [ $? = 143 ]`},
		{name: "a-killed-child", script: `sh -c 'kill -KILL $$'; [ $? = 137 ]`},
		{name: "a-trap", script: `trap 'exit 0' TERM; kill -TERM $(sh -c 'echo $PPID'); sleep 5; exit 1`},
		{name: "a-session", script: `setsid -w true && timeout 5 true`},
		{name: "a-timeout", script: `timeout 0.2 sleep 9; [ $? = 124 ]`},
		{name: "nice", script: `nice -n 1 true && nohup true`},
		{name: "who", script: `[ "$(id -u)" = "$(stat -c %u f)" ] || [ "$(id -u)" = 0 ]`},
		{name: "home", script: `[ -d "$H" ] && [ "$HOME" = "$H" ]`},
		{name: "its-identity-in-git", script: `[ "$(git config user.name)" = u ] && git commit -q --allow-empty -m x`},
		{name: "an-inner-repository", script: `git -C inner commit -q --allow-empty -m x && git -C sub commit -q --allow-empty -m x`},
		{name: "a-stash", script: `echo x >> f && git stash -q && git stash pop -q && git checkout -q f`},
		{name: "programs", script: `for p in sh git cat sed grep find tar xargs; do command -v $p || exit 1; done; tar cf t.tar docs && tar xf t.tar && rm t.tar`},
		{name: "a-program-that-it-built", script: `cp $A mine && chmod 755 mine && ./mine locks q && rm mine q-wal`},
		{name: "names", script: `grep -q localhost /etc/hosts && [ -r /etc/passwd ]`},
		{name: "threads-of-uwf", script: `uwf inbox >/dev/null`},
	}
}

func TestWorkContinuesInside(t *testing.T) {
	t.Parallel()
	tier := tier(t)
	rows := slices.DeleteFunc(work(), func(r row) bool { return r.only != "" && r.only != tier })
	for _, u := range users() {
		for _, by := range []way{commandRole, runCommand} {
			t.Run(fmt.Sprint(u.name, "/", by), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, u)
				said := w.confined(t, by, w.script(tier, rows), "")
				for _, r := range rows {
					status, err := os.ReadFile(w.repo + "/got/" + r.id() + ".rc")
					if complaint, _ := os.ReadFile(w.repo + "/got/" + r.id() + ".err"); err != nil || string(status) != "0\n" {
						t.Errorf("%s: %s%s", r.name, status, complaint)
					}
				}
				if t.Failed() {
					t.Logf("uwf: exit %d\n%s", said.status, said.stderr)
				}
			})
		}
	}
}

// signaled is the status of a command ended by a signal: its role has failed.
const signaled = -1

// A role has the status of its command, even if another process keeps its output open.
func TestStatusesComeOut(t *testing.T) {
	t.Parallel()
	tier(t)
	for script, want := range map[string]int{
		"exit 0": 0, "exit 7": 7, "exit 125": 125, "kill -TERM $$": signaled, "kill -KILL $$": signaled, "kill -SEGV $$": signaled,
		`"$PWD/tools/attacker" stay & exit 3`: 3, `setsid "$PWD/tools/attacker" stay & exit 4`: 4, "sh -c 'kill -TERM $$'": 143, "exec sh -c 'exit 9'": 9,
		"trap 'exit 5' TERM; (sleep 0.1; kill -TERM $$) & wait": 5,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, users()[len(users())-1])
			start := time.Now()
			said := w.confined(t, commandRole, script+"\n", "")
			var answer struct {
				Status string
				Output struct {
					ExitCode int
				}
			}
			err := json.Unmarshal([]byte(said.stdout), &answer)
			got := answer.Output.ExitCode
			if answer.Status == "error" {
				got = signaled
			}
			if err != nil || got != want {
				t.Errorf("%d instead of %d: %v\n%s%s", got, want, err, said.stdout, said.stderr)
			}
			if time.Since(start) > 50*time.Second {
				t.Error("it waited for what was left")
			}
			if left := w.left(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestGoTestsInside runs a test with the warm cache of the user who runs this test.
func TestGoTestsInside(t *testing.T) {
	tier(t)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, user{users()[0].name, -1})
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	w.write(t, "home/src/repo/go.mod", "module example.org/x\n\ngo 1.26\n")
	w.write(t, "home/src/repo/x_test.go", `package x
import ("net"; "os"; "testing")
func TestX(t *testing.T) {
	if err := os.WriteFile(t.TempDir()+"/f", nil, 0o600); err != nil { t.Fatal(err) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { t.Fatal(err) }
	if _, err := net.Dial("tcp", l.Addr().String()); err != nil { t.Fatal(err) }
}
`)
	said := w.confined(t, commandRole, "go test -vet=off . > got/out 2>&1; echo $? > got/rc\n", "sandbox: { caches: user }\n")
	status, err := os.ReadFile(w.repo + "/got/rc")
	if err != nil || string(status) != "0\n" {
		out, _ := os.ReadFile(w.repo + "/got/out")
		t.Errorf("%s%s\n%s", status, out, said.stderr)
	}
}
