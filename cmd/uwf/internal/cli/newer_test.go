package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// newerArgs is a command line for every command that has to do with a home. Not
// one may work beside the store of a newer uwf.
func newerArgs() map[string]string {
	const thread, hash = "01M81S0N000000000000000000", "44P8EP6N3NXZ5"
	return map[string]string{
		"run": "greet -p hi", "tick": "", "workflow put": "greet.yaml", "workflow show": "greet", "workflow list": "", "workflow trust": "greet", "workflow diff": "a b", "workflow graph": "greet",
		"thread start": "greet -p hi", "thread step": thread, "thread resume": thread, "thread answer": thread, "thread undo": thread, "thread redo": thread, "thread apply": thread, "thread bisect": hash + " " + hash + " true", "thread worktrees": "", "thread poke": thread + " -p x", "thread wait": thread, "thread stop": thread, "thread tell": thread + " x",
		"thread kill": thread, "thread fork": hash, "thread replay": thread, "thread show": thread, "thread list": "", "inbox": "", "stats": "", "thread read": thread,
		"thread steps": thread, "thread title": thread + " x", "thread trust": thread, "thread again": thread + "/x", "thread rm": thread + " --yes", "workflow rm": "greet", "thread watch": thread, "thread diagnose": thread, "thread diff": thread + " " + thread, "thread graph": thread,
		"thread seal": thread, "thread redact": thread + " --node " + hash, "thread salvage": thread, "thread export": "@ -o y.uwfb", "thread step-details": hash, "thread running": "", "thread notify": thread, "step list": thread, "step fork": hash, "thread import": "x.uwfb",
		"thread prune": "--keep-days 0", "step show": hash, "step diff": hash, "step turns": hash, "step details": hash, "step read": hash, "step put": "--output x.md", "step extract": "--output x.md", "step turn": "--content x.md",
		"schema hash": "text",
		"cas init":    "", "cas get": hash, "cas put": "text -", "cas put-text": "hi", "cas has": hash, "cas refs": hash, "cas walk": hash, "cas list": "",
		"cas schema put": "s.json", "cas schema get": hash, "cas schema list": "", "cas schema validate": "text -", "cas verify": hash, "cas reindex": "",
		"push": thread + " ./team", "pull": thread + " ./team", "fetch": "./team",
		"cas fsck": "--repair", "cas gc": "--grace 0s", "cas prune": "--keep-days 0", "cas stat": "", "cas export": hash + " -o y.uwfb", "cas import": "x.uwfb",
	}
}

// storeless are the commands, and groups of them, that use neither threads nor
// nodes. doctor looks at the store and says what it is; a worker is only started
// by a command that would be refused.
func storeless() []string {
	return []string{
		"config", "log", "prompt", "bundle verify", "setup", "doctor", "completion", "__complete", "thread worker", "step prompt", "import-original", "web", "remote", "version", "man", "help",
		"workflow new", "workflow import", "workflow validate", "workflow update", "cas hash", "schema show", "schema workflow", "schema config",
	}
}

const greeting = `name: greet
description: Greets.
roles:
  a: {description: Greets., goal: Greet., capabilities: [greeting], procedure: Greet., output: A greeting., frontmatter: {type: object}}
graph:
  $START: {_: {role: a, prompt: Greet.}}
  a: {_: {role: $END}}
`

func TestNothingTouchesTheStoreOfANewerUwf(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for name, text := range map[string]string{
		"cas/format.json": `{"version":2,"hash":"sha256","layout":"packs"}`, "threads.yaml": "01M81S0N000000000000000000: 44P8EP6N3NXZ5\n",
		"history.jsonl": "", "registry.yaml": "greet: 44P8EP6N3NXZ5\n",
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	before := tree(t, home)
	known := newerArgs()
	for _, path := range leaves((commands{&app.App{}}).root().Commands, "") {
		if isStoreless(path) {
			continue
		}
		args, ok := known[path]
		if !assert.True(t, ok, "uwf %s: what does it do beside the store of a newer uwf? Name it in this test", path) {
			continue
		}
		var stdout, stderr bytes.Buffer
		work := t.TempDir()
		for name, text := range map[string]string{
			"greet.yaml": greeting,
			"x.md":       "hi", "s.json": `{"type":"string"}`, "x.uwfb": "UWF bundle 1\n",
		} {
			require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o644))
		}
		status := Main(t.Context(), env.Env{
			Environ: []string{"UWF_HEAD=44P8EP6N3NXZ5", "UWF_ROLE=a", "UWF_THREAD=01M81S0N000000000000000000", "UWF_RUN_DIR=" + work},
			Args:    append([]string{"--home", home}, strings.Fields(path+" "+args)...), Dir: work, Now: time.Now,
			Stdin: strings.NewReader(`"x"`), Stdout: &stdout, Stderr: &stderr, Rand: strings.NewReader(strings.Repeat("x", 100)),
		})
		if strings.Contains(path, "import") { // what is wrong with the file is said first
			require.NotZero(t, status)
		} else {
			assert.Equal(t, protocol.CodeNewer.ExitCode(), status, "uwf %s %s: %s%s", path, args, stdout.String(), stderr.String())
			assert.Contains(t, stderr.String(), "a newer uwf made the store", "uwf %s", path)
		}
		assert.Equal(t, before, tree(t, home), "uwf %s", path)
	}
}

func isStoreless(path string) bool {
	for _, s := range storeless() {
		if path == s || strings.HasPrefix(path, s+" ") {
			return true
		}
	}
	return false
}

func leaves(commands []*ucli.Command, above string) (paths []string) {
	for _, c := range commands {
		if len(c.Subcommands) > 0 {
			paths = append(paths, leaves(c.Subcommands, above+c.Name+" ")...)
			continue
		}
		paths = append(paths, above+c.Name)
	}
	return paths
}

// tree is every file below a directory, with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			files[path] = ""
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}
