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
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// storeless lists the commands, and groups of commands, that use neither threads nor nodes. doctor reports
// the store's version; a worker is only started by a command that would be rejected.
func storeless() []string {
	return []string{
		"config", "log", "guide", "verify", "setup", "doctor", "completion", "__complete", "thread worker", "step prompt", "import-original", "web", "remote", "version", "man", "help",
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
	known, nodes := homeArgs(), strings.NewReplacer("STEP", "44P8EP6N3NXZ5", "TURN", "44P8EP6N3NXZ5")
	for _, path := range leaves((commands{&app.App{}}).root().Commands, "") {
		if isStoreless(path) {
			continue
		}
		args, ok := known[path]
		if !assert.True(t, ok, "uwf %s: what does it do in the home of another version? Name it in homeArgs", path) {
			continue
		}
		args, _, _ = strings.Cut(nodes.Replace(args), "=")
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
		if strings.Contains(path, "import") { // a problem with the file is reported first
			require.NotZero(t, status)
		} else {
			assert.Equal(t, protocol.CodeUnsupportedVersion.ExitCode(), status, "uwf %s %s: %s%s", path, args, stdout.String(), stderr.String())
			assert.Contains(t, stderr.String(), "a newer uwf created the store", "uwf %s", path)
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

// tree returns every file below a directory with its content.
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
