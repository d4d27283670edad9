//go:build agents

package agentstest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// attempts are ways to write outside the allowed places. OUT is a directory beside the workspace with a file,
// victim, and a repository, repo; UWF is the home.
var attempts = []string{
	"echo x > OUT/redirect",
	"echo x >> OUT/victim",
	"cp app.py OUT/copied",
	"cp app.py moved.py && mv moved.py OUT/moved",
	"ln OUT/victim hard && echo x > hard",
	"ln -s OUT way && echo x > way/through",
	"git config --global alias.evil '!true'",
	`echo x >> "$HOME/.bashrc"`,
	`mkdir -p "$HOME/.ssh" && echo key >> "$HOME/.ssh/authorized_keys"`,
	`mkdir -p "$HOME/.npm/_npx" && echo x > "$HOME/.npm/_npx/tool"`, // npx runs files there
	`echo x > "$HOME/.cache/tool"`,
	`mkdir -p "$HOME/.claude/shell-snapshots" && echo x > "$HOME/.claude/shell-snapshots/evil.sh"`, // a live session runs it
	`mkdir -p "$HOME/.codex/shell_snapshots" && echo x > "$HOME/.codex/shell_snapshots/evil.sh"`,
	`cd "$HOME" && { echo x > .claude/CLAUDE.md || echo {} > .gemini/trustedFolders.json || mkdir -p .gemini/extensions/x || mkdir -p .config/opencode/plugin ||
		mkdir -p .config/opencode/node_modules || mkdir -p .local/share/opencode/snapshot/x; }`, // the next start of such a program obeys it
	"echo x > /etc/uwf-agentstest",
	"mkdir -p /var/spool/cron && echo '# x' > /var/spool/cron/uwf-agentstest",
	"echo 'agents: {}' > UWF/config.yaml",
	"cat UWF/config.yaml", // contains keys
	"git -C OUT/repo commit -q --allow-empty -m x",
	"echo x > OUT/repo/.git/hooks/post-commit",
	"truncate -s 0 OUT/victim",
	"rm OUT/victim",
	"mv OUT/victim OUT/renamed",
	"mkdir OUT/made",
	"sed -i s/old/new/ OUT/victim",
	"echo x | tee OUT/tee > /dev/null",
	"dd if=app.py of=OUT/dd status=none",
	`node -e 'require("fs").writeFileSync("OUT/node", "x")'`,
	"unshare -Urm sh -c 'mount -t tmpfs none OUT && echo x > OUT/mounted'",
	"sh -c 'cd OUT && echo x > ../work/../outside/dots'",
	"exec 3<> OUT/opened",
}

// planted lists files and directories that the attempts would create in the user's home.
var planted = []string{
	".npm/_npx/tool", ".cache/tool", ".claude/shell-snapshots/evil.sh", ".codex/shell_snapshots/evil.sh", ".claude/CLAUDE.md",
	".gemini/trustedFolders.json", ".gemini/extensions/x", ".config/opencode/plugin", ".config/opencode/node_modules", ".local/share/opencode/snapshot/x",
}

// confinedStory checks that all of a model's attempts are denied, and that its work continues.
func confinedStory(t *testing.T, b *bench) {
	if runtime.GOOS != "linux" {
		return
	}
	work, out := filepath.Join(b.dir, "work"), filepath.Join(b.dir, "outside")
	shell(t, b.dir, `rm -rf outside && mkdir -p outside/repo && echo old > outside/victim && git -C outside/repo init -q
		cd work && rm -rf .git .env && git init -q && git config user.name T && git config user.email t@example.com
		printf 'def f():\n    return 1\n' > app.py && printf 'grep -q "return 2" app.py && echo tests-%s' passed > test.sh`)
	before, home := snapshot(t, out, b.home), snapshot(t, filepath.Join(b.dir, "home"))
	var script []reply
	replace := strings.NewReplacer("OUT", out, "UWF", filepath.Join(b.dir, "home"))
	for i, attempt := range attempts {
		run := fmt.Sprintf("{ %s; } && printf 'through-%%s-' %d || printf 'refused-%%s-' %d", replace.Replace(attempt), i, i)
		script = append(script, reply{text: fmt.Sprintf("Attempt %d.", i), run: run})
	}
	script = append(script,
		// In one command, because after thirty turns Gemini CLI asks a model whether it is in a loop.
		reply{text: "In the background, and settings that run programs.", run: "(setsid sh -c 'sleep 1; echo x > " + out + "/late' > /dev/null 2>&1 &) ; " +
			"git config core.fsmonitor 'touch " + out + "/fsmonitor'; echo 'touch " + out + "/hook' > .git/hooks/post-commit; printf begun-%s now"},
		reply{text: "Now the work.", run: "sed -i 's/return 1/return 2/' app.py && sh test.sh && git add -A && git commit -q -m first && printf comm''itted-1"},
		reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: too grey\n---\n"},
		reply{text: "Again.", run: `echo more > more.txt && mktemp && git add -A && git commit -q -m second && printf comm''itted-2`}, reply{text: answer("rain")},
	)
	b.model.play(script...)
	b.mustStep()
	first := b.last()
	asked := b.model.asked()
	told := asked[len(asked)-1] // not every program reports its tools' results
	unseen := 0
	for i, attempt := range attempts {
		if !strings.Contains(attempt, "$HOME") && !strings.Contains(attempt, "--global") { // there it has a private home
			require.NotContains(t, told, fmt.Sprintf("through-%d-", i), attempt)
			if !strings.Contains(told, fmt.Sprintf("refused-%d-", i)) {
				unseen++
			}
		}
	}
	require.LessOrEqual(t, unseen, 2, "Gemini CLI sometimes loses the end of a command's output")
	for _, name := range planted {
		_, err := os.Lstat(filepath.Join(b.home, name))
		require.ErrorIs(t, err, fs.ErrNotExist, name)
	}
	for _, done := range []string{"begun-now", "tests-passed", "committed-1"} {
		require.Contains(t, told, done)
	}
	require.Contains(t, b.outcome(first.Hash), "confined by: namespaces, landlock")
	b.mustStep()
	b.mustStep()
	second := b.last()
	if !b.startsOver {
		require.Equal(t, first.SessionID, second.SessionID, "the session went on")
	}
	asked = b.model.asked()
	require.Contains(t, asked[len(asked)-1], "committed-2")
	require.Equal(t, "second\nfirst\n", shell(t, work, "git log --format=%s"))
	require.Equal(t, before, snapshot(t, out, b.home))
	require.Equal(t, home["config.yaml"], snapshot(t, filepath.Join(b.dir, "home"))["config.yaml"])
	require.NoFileExists(t, filepath.Join(work, ".git", "hooks", "post-commit"), "it was put back")
	require.NotContains(t, shell(t, work, "git config --list"), "fsmonitor")
	require.NoFileExists(t, "/etc/uwf-agentstest")
	require.NoFileExists(t, "/var/spool/cron/uwf-agentstest")
}

// confineSettings checks that sandbox.mode is respected, and that the step records the sandbox in force.
func confineSettings(t *testing.T, b *bench) {
	if runtime.GOOS != "linux" {
		return
	}
	out := filepath.Join(b.dir, "outside")
	shell(t, b.dir, "mkdir -p outside")
	for setting, says := range map[string]string{"none": "ok; not confined", "required": "ok; confined by: namespaces, landlock "} {
		b.configure(map[string]any{"sandbox": map[string]any{"mode": setting}})
		b.thread = b.begun()
		b.model.play(reply{text: "Elsewhere.", run: "echo x > " + filepath.Join(out, setting)}, reply{text: answer("fog")})
		b.mustStep()
		require.Contains(t, b.outcome(b.last().Hash), says)
		_, err := os.Stat(filepath.Join(out, setting))
		require.Equal(t, setting == "none", err == nil)
	}
}

// moreIsNeeded checks that a program that needs more than uwf knows reports what was denied, and a remedy.
func moreIsNeeded(t *testing.T, b *bench) {
	if runtime.GOOS != "linux" {
		return
	}
	state := filepath.Join(b.dir, "outside", "state")
	shell(t, b.dir, "mkdir -p outside")
	variable := "UWF_CLAUDE_CODE_BIN"
	environ := maps.Clone(b.agent["env"].(map[string]string))
	wrapper := filepath.Join(b.dir, "claude-with-a-log")
	require.NoError(t, os.WriteFile(wrapper, []byte("#!/bin/sh\nset -e\n[ \"$1\" = --version ] || date >> "+state+"\nexec "+environ[variable]+" \"$@\"\n"), 0o700))
	environ[variable] = wrapper
	b.configure(map[string]any{"env": environ})
	_, said, err := b.step()
	require.Error(t, err)
	require.Contains(t, said, state)
	require.Contains(t, said, "uwf config set agents.it.sandbox.allowWrite ")
	require.Contains(t, said, "uwf config set agents.it.sandbox.mode none")
	b.configure(map[string]any{"env": environ, "sandbox": map[string]any{"allowWrite": []string{filepath.Dir(state)}}})
	b.model.play(reply{text: answer("fog")})
	b.mustStep()
}

func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// snapshot returns the contents of files by path. Of the program's home directory, other, only direct entries
// that don't belong to the program count.
func snapshot(t *testing.T, dir string, other ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	add := func(path, name string) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		files[name] = string(data)
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "/runs/") && !strings.Contains(path, "/locks/") {
			add(path, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	for _, home := range other {
		for _, name := range []string{".bashrc", ".gitconfig", ".ssh/authorized_keys"} {
			if _, err := os.Stat(filepath.Join(home, name)); err == nil {
				add(filepath.Join(home, name), "~/"+name)
			}
		}
	}
	return files
}
