package workflow_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/prosetest"
)

// project writes files by name and returns their directory.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// parseIn parses base.yaml with edits, as a file in a directory.
func parseIn(t *testing.T, dir string, edits ...string) (workflow.Definition, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	return workflow.Parse(workflow.Source{
		File: "flows/base.yaml", Path: filepath.Join(dir, "base.yaml"), Dir: root, Data: []byte(base(t, edits...)),
	})
}

const metaOfWorker = "    meta:\n      type: object\n      properties:\n        summary: { type: string }\n        left: { type: [string, \"null\"] }\n"

func TestInclude(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"think.md":           "\ufeff* Think.\r\n* Again.\n",
		"parts/summary.json": "{\n\t\"type\": \"string\"\n}\n",
		"parts/worker.yaml":  "type: object\nproperties:\n  summary: !include summary.json\n",
	})
	def, err := parseIn(t, dir, "procedure: Think.", "procedure: !include think.md", metaOfWorker, "    meta: !include ./parts/worker.yaml\n")
	require.NoError(t, err)
	require.Equal(t, "* Think.\n* Again.\n", def.Roles["planner"].Procedure)
	require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"summary": map[string]any{"type": "string"}}}, def.Schemas["worker"])
}

func TestIncludedTwice(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"text.md": "Do it."})
	def, err := parseIn(t, dir, "procedure: Think.", "procedure: &p !include text.md", "goal: Do it.", "goal: *p")
	require.NoError(t, err)
	require.Equal(t, "Do it.", def.Roles["planner"].Procedure)
	require.Equal(t, "Do it.", def.Roles["worker"].Goal)
}

// A problem in an included file is reported with that file's name and line.
func TestProblemsInIncludedFiles(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"ask.md":             "* First:\n\n  {{qestion}}\n",
		"sub/graph.yaml":     "$START: { _: planer }\nplanner: !include more/edges.yml\nworker: { _: $END }\n",
		"sub/more/edges.yml": "ready: { role: worker, prompt: x }\nunclear:\n  role: $SUSPEND\n  promt: y\n",
		"broken.yaml":        "type: object\nproperties: {\n",
		"schema.json":        "{\n  \"type\": \"object\",\n  \"propertes\": {}\n}",
	})
	report := func(edits ...string) string {
		_, err := parseIn(t, dir, edits...)
		require.Error(t, err)
		return err.Error()
	}
	prosetest.Text(t, report(`prompt: "{{question}}"`, `prompt: !include ask.md`))
	prosetest.Text(t, report(metaOfWorker, "    meta: !include schema.json\n"))
	prosetest.Text(t, report(metaOfWorker, "    meta: !include broken.yaml\n"))

	text := base(t)
	graph := text[strings.Index(text, "graph:"):strings.Index(text, "limits:")]
	prosetest.Text(t, problemLines(t, func() error { _, err := parseIn(t, dir, graph, "graph: !include sub/graph.yaml\n"); return err }())[2:])
}

func TestIncludeRefuses(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"sub/up.yaml":    "a: !include ../think.md\n",
		"think.md":       "x",
		"latin1.md":      "caf\xe9",
		"self.yaml":      "a: !include self.yaml\n",
		"a.yaml":         "a: !include b.yaml\n",
		"b.yaml":         "a: !include a.yaml\n",
		"large.md":       strings.Repeat("x", 1<<20+1),
		"doubled.yaml":   "[" + strings.Repeat("!include double0.yaml,", 2) + "]",
		"sub/deeper.txt": "x",
	})
	for i := range 20 {
		name := filepath.Join(dir, fmt.Sprintf("double%d.yaml", i))
		require.NoError(t, os.WriteFile(name, []byte("["+strings.Repeat(fmt.Sprintf("!include double%d.yaml,", i+1), 2)+"]"), 0o600))
	}
	outside := filepath.Join(filepath.Dir(dir), "secret.md")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link.md")))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "within")))
	for _, name := range []string{
		"thnik.md", "../secret.md", "link.md", outside, "sub", "sub/up.yaml", "latin1.md", "large.md",
		"self.yaml", "a.yaml", "base.yaml", "doubled.yaml", `""`, "[a]",
	} {
		t.Run(strings.ReplaceAll(name, outside, "outside"), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := parseIn(t, dir, "procedure: Think.", "procedure: !include "+name)
			prosetest.Text(t, problemLines(t, err))
			require.Less(t, time.Since(began), time.Minute)
		})
	}
	_, err := parseIn(t, dir, "procedure: Think.", "procedure: !include within/deeper.txt")
	require.NoError(t, err, "a symbolic link within the directory is no way out")
}

// Repeated includes multiply, so the bound applies to the final document. The test isn't parallel, because
// another one counts allocations.
func TestIncludesAreBounded(t *testing.T) {
	dir := project(t, map[string]string{
		"wide.yaml":  "[" + strings.Repeat("x,", 40_000) + "]",
		"bytes.md":   strings.Repeat("x", 1<<20),
		"empty.yaml": "",
	})
	for _, file := range []string{
		"wide.yaml",
		"bytes.md",
		"empty.yaml",
	} {
		began := time.Now()
		_, err := parseIn(t, dir, "procedure: Think.", "procedure: ["+strings.Repeat("!include "+file+",", 300)+"]")
		prosetest.Error(t, err, file)
		require.Less(t, time.Since(began), time.Minute)
	}
}
